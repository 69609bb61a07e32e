package main

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
)

// families lists the groups of kernels. A function writes each group for its instruction sets.
var families = []struct {
	name string
	x86  func(*x86)
	sets []isa
	neon func(*neon)
}{
	{"gemm", emitGemm, []isa{avx2, avx512}, neonGemm},
	{"pack", emitPack, []isa{avx2, avx512}, neonPack},
	{"elementwise", func(a *x86) { emitElementwise(a) }, []isa{avx2, avx512}, func(n *neon) { emitElementwise(n) }},
	{"reduce", emitReductions, []isa{avx2, avx512}, neonReductions},
	{"optim", func(a *x86) { emitOptimizers(a) }, []isa{avx2, avx512}, func(n *neon) { emitOptimizers(n) }},
	{"peak", emitPeak, []isa{avx2, avx512}, neonPeak},
	{"random", emitRandom, []isa{avx512}, neonRandom}, // AVX2 has no product of 64-bit integers
}

// generate returns the contents of the generated files by name: the assembly of each family, and one Go file for each instruction set.
func generate() (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, set := range []isa{avx2, avx512} {
		var declarations []byte
		for _, family := range families {
			if !slices.Contains(family.sets, set) {
				continue
			}
			a := newX86(set)
			family.x86(a)
			base := fmt.Sprintf("%s_%s_amd64", family.name, set.name)
			text, stubs, err := compile(a.Context)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", base, err)
			}
			files[base+".s"], declarations = text, append(declarations, stubs...)
		}
		if err := addTable(files, set, "amd64", declarations, newX86(set).tiles); err != nil {
			return nil, err
		}
	}
	var declarations []byte
	set := isa{"neon", 16}
	for _, family := range families {
		n := &neon{isa: set, file: family.name}
		family.neon(n)
		files[family.name+"_neon_arm64.s"], declarations = n.assembly(), append(declarations, n.goes.Bytes()...)
	}
	return files, addTable(files, set, "arm64", declarations, neonTiles)
}

func addTable(files map[string][]byte, set isa, architecture string, declarations []byte, tiles func(*bytes.Buffer)) error {
	text, err := table(set, architecture, declarations, tiles)
	if err != nil {
		return fmt.Errorf("table of %s: %w", set.name, err)
	}
	files["kernels_"+set.name+"_"+architecture+".go"] = text
	return nil
}

// compile allocates registers and returns the assembly and its declarations.
func compile(c *build.Context) (assembly, declarations []byte, err error) {
	file, err := c.Result()
	if err != nil {
		return nil, nil, err
	}
	if err := pass.Compile.Execute(file); err != nil {
		return nil, nil, err
	}
	config := printer.Config{Name: "asmgen", Pkg: "kernel"}
	if assembly, err = printer.NewGoAsm(config).Print(file); err != nil {
		return nil, nil, err
	}
	stubs, err := printer.NewStubs(config).Print(file)
	_, declarations, _ = bytes.Cut(stubs, []byte("package kernel\n"))
	return assembly, declarations, err
}

package main

import (
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

// generate returns the contents of the generated files by name.
func generate() (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, set := range []isa{avx2, avx512} {
		for _, family := range families {
			if !slices.Contains(family.sets, set) {
				continue
			}
			a := newX86(set)
			family.x86(a)
			base := fmt.Sprintf("%s_%s_amd64", family.name, set.name)
			if err := compile(a.Context, base, files); err != nil {
				return nil, fmt.Errorf("%s: %w", base, err)
			}
		}
		text, err := table(newX86(set))
		if err != nil {
			return nil, fmt.Errorf("table of %s: %w", set.name, err)
		}
		files["kernels_"+set.name+"_amd64.go"] = text
	}
	for _, family := range families {
		n := &neon{isa: isa{"neon", 16}, file: family.name}
		family.neon(n)
		base := family.name + "_neon_arm64"
		files[base+".s"], files[base+".go"] = n.assembly(), n.stubs()
	}
	text, err := neonTable()
	if err != nil {
		return nil, fmt.Errorf("table of neon: %w", err)
	}
	files["kernels_neon_arm64.go"] = text
	return files, nil
}

// compile allocates registers and prints the assembly and its declarations.
func compile(c *build.Context, base string, files map[string][]byte) error {
	file, err := c.Result()
	if err != nil {
		return err
	}
	if err := pass.Compile.Execute(file); err != nil {
		return err
	}
	config := printer.Config{Name: "asmgen", Pkg: "kernel"}
	if files[base+".s"], err = printer.NewGoAsm(config).Print(file); err != nil {
		return err
	}
	files[base+".go"], err = printer.NewStubs(config).Print(file)
	return err
}

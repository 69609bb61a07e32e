package main

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

//go:embed testdata/chains.c
var formulas string

// processors are those of the table of predictions.
var processors = []string{"apple-m1", "neoverse-n1", "neoverse-v1"}

// predict prints the tables of docs/dev/arm64-predicted.csv: the share of the peak that llvm-mca predicts for the loops
// of products, and the instructions per element of other kernels beside those that a compiler writes for the same formulas.
func predict() error {
	files, err := generate()
	if err != nil {
		return err
	}
	mca, err := newest("LLVM_MCA", "llvm-mca")
	if err != nil {
		return err
	}
	clang, err := newest("CLANG", "clang")
	if err != nil {
		return err
	}
	fmt.Printf("By %s, predicted, not measured: share of the peak in fused multiply-adds per cycle.\n\n| tile | %s |\n| --- |%s\n",
		filepath.Base(mca), strings.Join(processors, " | "), strings.Repeat(" --- |", len(processors)))
	for _, tile := range []string{"tile32_neon_8x3", "tile32_neon_4x3", "tile32_neon_8x1", "tile32_neon_1x3", "tile64_neon_8x3"} {
		fmt.Printf("| `%s` |", tile)
		for _, p := range processors {
			got, peak, err := share(mca, p, tile, files)
			if err != nil {
				return err
			}
			fmt.Printf(" %.0f %% of %.1f |", 100*got/peak, peak)
		}
		fmt.Println()
	}
	list, err := chains(clang, files)
	if err != nil {
		return err
	}
	fmt.Printf("\nInstructions per element, ours and those of %s -O3:\n\n| kernel | ours | compiler |\n| --- | --- | --- |\n", filepath.Base(clang))
	for _, c := range list {
		fmt.Printf("| `%s` | %.2f | %.2f |\n", c.name, c.ours, c.compiled)
	}
	return nil
}

// share returns the fused multiply-adds per cycle that are predicted for the loop of a tile, and the most that there can be.
func share(mca, processor, tile string, files map[string][]byte) (got, peak float64, err error) {
	l, err := firstLoop(string(files["gemm_neon_arm64.s"]), tile, "round")
	if err != nil {
		return 0, 0, err
	}
	arrangement := "4s"
	if strings.HasPrefix(tile, "tile64") {
		arrangement = "2d"
	}
	for _, element := range []string{"", "[0]"} { // some models have another rate for products with one element
		r, err := rate(mca, processor, independent(arrangement, element))
		if err != nil {
			return 0, 0, err
		}
		peak = max(peak, r)
	}
	got, err = rate(mca, processor, l.lines)
	return got, peak, err
}

// newest returns the program that the environment names, or the installed one with the highest version.
func newest(variable, name string) (string, error) {
	if path := os.Getenv(variable); path != "" {
		return path, nil
	}
	for version := 30; version >= 14; version-- {
		if path, err := exec.LookPath(fmt.Sprintf("%s-%d", name, version)); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%w: install Debian's llvm-19 and clang-19, or name the program in %s", err, variable)
	}
	return path, nil
}

// independent returns fused multiply-adds, none of which waits for another one of the last two dozens.
func independent(arrangement, element string) (lines []string) {
	last := arrangement
	if element != "" {
		last = arrangement[1:] + element
	}
	for i := range 24 {
		lines = append(lines, fmt.Sprintf("fmla v%d.%s, v30.%[2]s, v31.%s", i, arrangement, last))
	}
	return lines
}

// rate returns the fused multiply-adds per cycle that llvm-mca predicts for a loop.
func rate(mca, processor string, lines []string) (float64, error) {
	const iterations = 500
	c := exec.Command(mca, "-mtriple=aarch64", "-mcpu="+processor, "-iterations="+strconv.Itoa(iterations))
	c.Stdin = strings.NewReader("again:\n" + strings.Join(lines, "\n") + "\n")
	text, err := c.Output()
	if err != nil {
		return 0, fmt.Errorf("%s for %s: %w", mca, processor, err)
	}
	m := regexp.MustCompile(`Total Cycles: +(\d+)`).FindSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("%s for %s says no cycles", mca, processor)
	}
	cycles, err := strconv.Atoi(string(m[1]))
	return iterations * float64(strings.Count(strings.Join(lines, "\n"), "fmla")) / float64(cycles), err
}

// loop contains the instructions of a loop and the number of elements of an iteration.
type loop struct {
	lines    []string
	elements int
}

var count = regexp.MustCompile(`^subs\s+\w+, \w+, #(\d+)`)

// firstLoop returns the first loop of a kernel whose label begins with stem.
func firstLoop(file, kernel, stem string) (loop, error) {
	_, text, ok := strings.Cut(file, "TEXT ·"+kernel+"(SB)")
	if ok {
		_, text, ok = strings.Cut(text, "\n"+stem)
	}
	var l loop
	for line := range strings.Lines(text) {
		_, code, commented := strings.Cut(strings.TrimSpace(line), "// ")
		if !commented {
			continue
		}
		if m := count.FindStringSubmatch(code); m != nil {
			l.elements, _ = strconv.Atoi(m[1])
		}
		if strings.HasPrefix(code, "b.") {
			l.lines = append(l.lines, "b.ge again")
			return l, nil
		}
		l.lines = append(l.lines, code)
	}
	return l, fmt.Errorf("no loop %s in %s (found %v)", stem, kernel, ok)
}

// chain is a kernel with its instructions per element, ours and those of a compiler.
type chain struct {
	name           string
	ours, compiled float64
}

// chains compares the loops of the kernels whose formulas are in chains.c.
func chains(clang string, files map[string][]byte) (list []chain, err error) {
	c := exec.Command(clang, "--target=aarch64-linux-gnu", "-O3", "-ffp-contract=on", "-fno-math-errno", "-S", "-o", "-", "-xc", "-")
	c.Stdin = strings.NewReader(formulas)
	text, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", clang, err)
	}
	perElement := func(l loop) float64 { return float64(len(l.lines)) / float64(max(1, l.elements)) }
	for _, m := range regexp.MustCompile(`(?m)^(\w+):\s+// @`).FindAllStringSubmatch(string(text), -1) {
		name, ours := m[1], loop{}
		for _, family := range []string{"elementwise", "reduce", "optim"} {
			if l, err := firstLoop(string(files[family+"_neon_arm64.s"]), isa{name: "neon"}.kernelName(name), "loop"); err == nil {
				ours = l
			}
		}
		if ours.elements == 0 {
			return nil, fmt.Errorf("no kernel %s", name)
		}
		list = append(list, chain{name, perElement(ours), perElement(vectorLoop(string(text), name))})
	}
	return list, nil
}

// vectorLoop returns the loop of a compiled function that has the most instructions on vectors.
func vectorLoop(file, function string) (best loop) {
	_, text, _ := strings.Cut(file, "\n"+function+":")
	text, _, _ = strings.Cut(text, ".Lfunc_end")
	var here loop
	most := 0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, ".LBB"):
			here = loop{}
		case line == "" || line[0] == '.' || line[0] == '/':
		default:
			code := strings.Join(strings.Fields(line), " ")
			here.lines = append(here.lines, code)
			if m := count.FindStringSubmatch(code); m != nil {
				here.elements, _ = strconv.Atoi(m[1])
			}
			if vectors := strings.Count(strings.Join(here.lines, "\n"), "4s"); strings.HasPrefix(code, "b.ne") && vectors > most {
				best, most = here, vectors
			}
		}
	}
	return best
}

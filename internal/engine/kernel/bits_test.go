package kernel

import (
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

var update = flag.Bool("update", false, "write testdata/bits.golden: the bits of the kernels of this machine")

// hashed hashes numbers. All NaN are one: which of them an operation gives depends on the processor.
type hashed struct{ io.Writer }

func (b hashed) add(x []float32) {
	for _, v := range x {
		if v != v {
			v = float32(math.NaN())
		}
		fmt.Fprintf(b, "%08x", math.Float32bits(v))
	}
}

// arbitrary fills a slice with numbers of all sizes, or of sizes about 1. They do not depend on the processor.
func arbitrary(r *rand.Rand, x []float32, wild bool) {
	for i := range x {
		if bits := r.Uint32(); wild && i%4 > 0 {
			x[i] = math.Float32frombits(bits)
		} else {
			x[i] = float32(int32(bits)>>8) / (1 << 22) // exact, between -2 and 2
		}
	}
	if wild {
		copy(x, edges)
	}
}

// kernelBits returns a hash of the results of every kernel of a set. Those of AVX-512 differ from those of the others in reductions,
// which have one order for every number of lanes.
func kernelBits(set *Set[float32], double *Set[float64], steps *stepSet) map[string]string {
	hashes := map[string]string{}
	note := func(name string, write func(b hashed)) {
		h := fnv.New64a()
		write(hashed{h})
		hashes[name] = fmt.Sprintf("%016x", h.Sum64())
	}
	for _, k := range invocations(set) {
		if k.reduces && set.Name == "avx512" {
			continue
		}
		note(k.field, func(b hashed) {
			r := rand.New(rand.NewPCG(11, 12))
			for _, n := range []int{1, 2, 3, 4, 5, 7, 8, 11, 31, 36, 47, 64, 71, 1000, 4096} {
				for _, wild := range []bool{false, true} {
					if wild && k.reduces {
						continue // the sum would be NaN
					}
					var x [3][]float32
					for i := range x {
						x[i] = make([]float32, n)
						arbitrary(r, x[i], wild)
					}
					dst := make([]float32, n)
					k.run(dst, x, 0.3, 0.7)
					b.add(dst)
				}
			}
		})
	}
	note("FromBytes", func(b hashed) {
		src, dst := make([]uint8, 256), make([]float32, 256)
		for i := range src {
			src[i] = uint8(i)
		}
		set.FromBytes(dst, src)
		b.add(dst)
	})
	for _, rule := range rules {
		note(rule.name, func(b hashed) {
			r := rand.New(rand.NewPCG(13, 14))
			for n := range 40 {
				var x [4][]float32
				for q := range x {
					x[q] = make([]float32, n)
					arbitrary(r, x[q], false)
				}
				for i := range n {
					x[2][i], x[3][i] = x[2][i]*x[2][i], x[3][i]*x[3][i]
				}
				rule.run(steps, x[0], x[1], x[2], x[3], 3)
				for _, x := range x {
					b.add(x)
				}
			}
		})
	}
	note("Gemm", func(b hashed) { productBits(b, set.Gemm, func(x float64) float32 { return float32(x) }) })
	note("Gemm of float64", func(b hashed) { productBits(b, double.Gemm, func(x float64) float64 { return x }) })
	return hashes
}

// productBits writes products of all kinds of operands and of sizes around those of tiles and blocks.
func productBits[T Float](b hashed, gemm Gemm[T], from func(float64) T) {
	r := rand.New(rand.NewPCG(15, 16))
	random := func(n int) []T {
		x := make([]T, n)
		for i := range x {
			x[i] = from(float64(int32(r.Uint32())>>8) / (1 << 22))
		}
		return x
	}
	for flags := range 4 {
		for _, s := range [][3]int{{1, 1, 1}, {3, 5, 7}, {8, 12, 16}, {9, 13, 17}, {70, 40, 300}, {250, 30, 20}, {130, 260, 64}, {33, 520, 9}} {
			m, n, k := s[0], s[1], s[2]
			lda, ldb := k, n
			if flags&1 != 0 {
				lda = m
			}
			if flags&2 != 0 {
				ldb = k
			}
			x, y, z := random(m*k), random(k*n), random(m*n)
			gemm(flags&1 != 0, flags&2 != 0, m, n, k, from(0.75), x, lda, y, ldb, from(float64(flags)/2), z, n)
			for _, v := range z {
				fmt.Fprintf(b, "%016x", math.Float64bits(float64(v)))
			}
		}
	}
}

// The assembly for all processors has one list of results, so that a processor that is emulated or not at hand is compared with one
// that has been measured. Only numbers that depend on the number of lanes are not in the list of AVX-512.
func TestAllProcessorsGiveTheSameBits(t *testing.T) {
	path := filepath.Join("testdata", "bits.golden")
	text, _ := os.ReadFile(path)
	want := map[string]string{}
	for line := range strings.Lines(string(text)) {
		hash, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		want[name] = hash
	}
	for _, b := range slices.Backward(simd().backends) {
		if b.name == "portable" {
			continue
		}
		got := kernelBits(b.set32(), b.set64(), b.steps)
		if *update && b.name != "avx512" {
			var lines []string
			for name, hash := range got {
				lines = append(lines, hash+" "+name+"\n")
			}
			slices.SortFunc(lines, func(x, y string) int { return strings.Compare(x[17:], y[17:]) })
			fatal.If(t, os.WriteFile(path, []byte(strings.Join(lines, "")), 0o644))
			want = got
		}
		for name, hash := range got {
			expect.Equal(t, hash, want[name], b.name, "the results of", name, "have the hash", hash, "want", want[name], "other bits than on other processors")
		}
	}
}

// An instruction set that has assembly has it for every kernel.
func TestNoKernelIsMissing(t *testing.T) {
	for _, b := range simd().backends {
		if b.name == "portable" {
			continue
		}
		for what, pair := range map[string][2]any{"set": {*b.set32(), *portable[float32]()}, "steps": {*b.steps, portableSteps}} {
			got, plain := reflect.ValueOf(pair[0]), reflect.ValueOf(pair[1])
			for i := range got.NumField() {
				if got.Field(i).Kind() == reflect.Func && got.Field(i).Pointer() == plain.Field(i).Pointer() {
					t.Errorf("%s: %s of the %s is plain Go", b.name, got.Type().Field(i).Name, what)
				}
			}
		}
	}
	names := map[string][]string{}
	for _, set := range []string{"avx2", "avx512", "neon"} {
		files, err := filepath.Glob("*_" + set + "_*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("no files of %s: %v", set, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			fatal.If(t, err)
			for _, found := range regexp.MustCompile(`(?m)^func (\w+)_`+set+`\(`).FindAllSubmatch(text, -1) {
				names[set] = append(names[set], string(found[1]))
			}
		}
	}
	for set, list := range names {
		for _, name := range list {
			if !slices.Contains(names["neon"], name) {
				t.Errorf("%s is there for %s, not for neon", name, set)
			}
		}
	}
}

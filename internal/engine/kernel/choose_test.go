package kernel

import (
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

func TestBestComesFirstAndPortableLast(t *testing.T) {
	sets := choice().sets32
	expect.Equal(t, sets[0], Float32(), "order of", len(sets), "sets", sets[0].Name, "...")
	expect.Equal(t, sets[len(sets)-1].Name, "portable", "order of", len(sets), "sets", sets[0].Name, "...")
	expect.Equal(t, len(choice().sets64), len(sets), "sets in float64", len(sets), "in float32")
	for i, set := range choice().sets64 {
		expect.Equal(t, set.Name, sets[i].Name, "set", i, "is", set.Name, "in float64 and", sets[i].Name, "in float32")
	}
}

func TestInfoExplainsTheSelection(t *testing.T) {
	info := Info()
	t.Logf("%+v", info)
	if info.Name != Float32().Name || info.SIMD == "" {
		t.Errorf("%+v does not fit %s", info, Float32().Name)
	}
	if (info.BLAS == "") == (info.BLASNote == "") {
		t.Errorf("either a BLAS or a reason why there is none: %+v", info)
	}
	if named := os.Getenv("TESSERA_BLAS"); named == "none" && info.BLAS != "" {
		t.Errorf("TESSERA_BLAS=none, and %s is loaded", info.BLAS)
	} else if named != "" && named != "none" && info.BLAS != named {
		t.Errorf("TESSERA_BLAS=%s: %q is loaded: %s", named, info.BLAS, info.BLASNote)
	}
}

func TestSIMDCanBeLimited(t *testing.T) {
	limits := map[string][]string{"none": {"avx512", "avx2", "neon"}}
	switch runtime.GOARCH {
	case "amd64":
		limits["avx2"] = []string{"avx512"}
	case "arm64":
		limits["neon"] = nil
	}
	for limit, forbidden := range limits {
		s := simdBackends(limit)
		for _, b := range s.backends {
			if slices.Contains(forbidden, b.name) {
				t.Errorf("%s in spite of TESSERA_SIMD=%s", b.name, limit)
			}
		}
		if (s.note == "") != (forbidden == nil) || s.err != nil {
			t.Errorf("TESSERA_SIMD=%s: note %q, error %v", limit, s.note, s.err)
		}
	}
	if s := simdBackends("sse9"); hasAssembly() && (s.err == nil || !strings.Contains(s.err.Error(), "TESSERA_SIMD=sse9")) {
		t.Errorf("an unknown TESSERA_SIMD: %v", s.err)
	}
}

func TestBLASIsOpenedOnlyWhereItIsNamedOrNeeded(t *testing.T) {
	if c := choose(simd(), "none"); c.blas != nil || c.err != nil || !strings.Contains(c.blasNote, "TESSERA_BLAS=none") {
		t.Errorf("none: %v, error %v, note %q", c.blas, c.err, c.blasNote)
	}
	if c := choose(simd(), ""); hasAssembly() && (c.blas != nil || c.err != nil) {
		t.Errorf("nothing named on a machine with assembly: %v, error %v", c.blas, c.err)
	}
}

func TestBLASThatCannotBeLoadedIsAnError(t *testing.T) {
	path := t.TempDir() + "/libnothing.so"
	refused := func(what string) {
		t.Helper()
		c := choose(simd(), path)
		if c.blas != nil || c.err == nil || !strings.Contains(c.err.Error(), "TESSERA_BLAS="+path) {
			t.Errorf("%s: %v, error %v", what, c.blas, c.err)
		}
		expect.Equal(t, len(c.sets32), len(simd().backends), what, "sets of kernels")
	}
	refused("a missing file")
	fatal.If(t, os.WriteFile(path, []byte("not a library"), 0o644))
	refused("a damaged file")
}

func TestDenormalsSurviveTheLibrary(t *testing.T) {
	before := floatModes()
	a, c := []float32{0x1p-140}, []float32{0}
	for _, set := range choice().sets32 {
		set.Gemm(false, false, 1, 1, 1, 1, a, 1, []float32{0.5}, 1, 0, c, 1)
		expect.Equal(t, c[0], 0x1p-141, set.Name, "2^-140 / 2")
	}
	if after := floatModes(); after&^0x3f != before&^0x3f { // the low bits are sticky exception flags
		t.Errorf("floating-point modes changed from %#x to %#x", before, after)
	}
}

func TestGemmAllocatesNothing(t *testing.T) {
	for _, set := range choice().sets32 {
		a, b, c := make([]float32, 64*64), make([]float32, 64*64), make([]float32, 64*64)
		for _, transB := range []bool{false, true} {
			run := func() { set.Gemm(false, transB, 64, 64, 64, 1, a, 64, b, 64, 0, c, 64) }
			if n := testing.AllocsPerRun(100, run); n != 0 && !raceEnabled {
				t.Errorf("%s: %v allocations per product", set.Name, n)
			}
		}
	}
}

func TestElementwiseKernelsAllocateNothing(t *testing.T) {
	x := make([]float32, 100)
	for _, set := range elementwiseSets() {
		for _, k := range invocations(set) {
			run := func() { k.run(x, [3][]float32{x, x, x}, 1, 2) }
			expect.Equal(t, testing.AllocsPerRun(20, run), 0, set.Name, k.field)
		}
	}
	for _, rule := range rules {
		run := func() { rule.run(steps(), x, x, x, x, 1) }
		expect.Equal(t, testing.AllocsPerRun(20, run), 0, rule.name)
	}
}

func TestProductsRunSideBySideWithEqualBytes(t *testing.T) {
	const n = 90
	r := rand.New(rand.NewPCG(1, 1))
	a, b := matrix[float32](r, n, n, n), matrix[float32](r, n, n, n)
	for _, set := range choice().sets32 {
		want := make([]float32, n*n)
		set.Gemm(false, true, n, n, n, 1, a, n, b, n, 0, want, n)
		var wait sync.WaitGroup
		for range 4 {
			wait.Go(func() {
				c := make([]float32, n*n)
				for range 20 {
					set.Gemm(false, true, n, n, n, 1, a, n, b, n, 0, c, n)
					for i := range c {
						if math.Float32bits(c[i]) != math.Float32bits(want[i]) {
							t.Errorf("%s: element %d is %v, alone it was %v", set.Name, i, c[i], want[i])
							return
						}
					}
				}
			})
		}
		wait.Wait()
	}
}

// The operands of these products are on the stacks of goroutines. A call that passes addresses to C must handle this,
// because a stack moves when it grows.
func TestOperandsMayComeFromAStack(t *testing.T) {
	for _, set := range choice().sets32 {
		done := make(chan float32)
		go func() {
			var a, b, c [9]float32
			for i := range a {
				a[i], b[i] = float32(i), 1
			}
			grow(200)
			set.Gemm(false, false, 3, 3, 3, 1, a[:], 3, b[:], 3, 0, c[:], 3)
			grow(2000)
			done <- c[8]
		}()
		expect.Equal(t, <-done, 21, set.Name, "C[2,2] =")
	}
}

func grow(depth int) int {
	var pad [64]int
	if depth == 0 {
		return pad[0]
	}
	return grow(depth-1) + pad[depth%64]
}

func TestShortMatricesAreRefusedBeforeMemoryIsTouched(t *testing.T) {
	refused := func(run func()) (ok bool) {
		defer func() { ok = recover() != nil }()
		run()
		return false
	}
	x := make([]float32, 12)
	for _, set := range choice().sets32 {
		for i, run := range []func(){
			func() { set.Gemm(false, false, 4, 3, 4, 1, x, 4, x, 3, 0, x, 3) },
			func() { set.Gemm(false, false, 3, 4, 4, 1, x, 4, x, 4, 0, x, 4) },
			func() { set.Gemm(true, false, 3, 3, 3, 1, x, 2, x, 3, 0, x, 3) },
			func() { set.Gemm(false, true, 2, 5, 3, 1, x, 3, x, 3, 0, x, 5) },
			func() { set.Gemm(false, false, -1, 3, 3, 1, x, 3, x, 3, 0, x, 3) },
			func() { set.Gemm(false, false, 5, 3, 1, 1, x, 1, x, 3, 0, x, 3) },
		} {
			if !refused(run) {
				t.Errorf("%s: call %d went through", set.Name, i)
			}
		}
	}
}

func TestAssemblyReadsTilesWhereTheyAre(t *testing.T) {
	var single tile[float32]
	var double tile[float64]
	for name, pair := range map[string][2]uintptr{
		"c": {unsafe.Offsetof(single.c), 16}, "k": {unsafe.Offsetof(single.k), 24}, "aRow": {unsafe.Offsetof(single.aRow), 32},
		"aStep": {unsafe.Offsetof(single.aStep), 40}, "bStep": {unsafe.Offsetof(single.bStep), 48},
		"cRow": {unsafe.Offsetof(single.cRow), 56}, "last": {unsafe.Offsetof(single.last), 64},
		"alpha": {unsafe.Offsetof(single.alpha), 72}, "beta": {unsafe.Offsetof(single.beta), 76},
		"alpha of float64": {unsafe.Offsetof(double.alpha), 72}, "beta of float64": {unsafe.Offsetof(double.beta), 80},
	} {
		expect.Equal(t, pair[0], pair[1], name, "is at", pair[0], "the assembly reads it at")
	}
}

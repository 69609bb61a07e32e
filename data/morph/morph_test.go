package morph

import (
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
)

var allOperators = []Operator{Dilation, Erosion, Opening, Closing}

func TestOperatorsEqualTheirDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, shape := range testShapes {
		g, _ := newGrid(shape)
		for _, op := range allOperators {
			for radius := range 6 {
				images := randomImages(r, 3, shape)
				got := mustApply(t, op, radius, images, shape)
				for i := range 3 {
					at := i * g.pixels()
					want := plainApply(op, radius, images[at:at+g.pixels()], g)
					if !equal(got[at:at+g.pixels()], want) {
						t.Fatalf("%s radius %d shape %v: got %v, want %v", op, radius, shape, got[at:at+g.pixels()], want)
					}
				}
			}
		}
	}
}

func TestTheDiskOfRadiusOneIsTheCross(t *testing.T) {
	point := make([]float32, 25)
	point[12] = 1
	got := mustApply(t, Dilation, 1, point, []int{5, 5})
	want := []float32{
		0, 0, 0, 0, 0,
		0, 0, 1, 0, 0,
		0, 1, 1, 1, 0,
		0, 0, 1, 0, 0,
		0, 0, 0, 0, 0,
	}
	if !equal(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestRadiiBeyondTheImageReachEveryPixel(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	images := randomImages(r, 1, []int{6, 5})
	most := float32(math.Inf(-1))
	for _, v := range images {
		most = max(most, v)
	}
	for _, radius := range []int{8, 100, math.MaxInt32} {
		for _, v := range mustApply(t, Dilation, radius, images, []int{6, 5}) {
			if v != most {
				t.Fatalf("radius %d: %g, want %g everywhere", radius, v, most)
			}
		}
	}
}

func TestInfinitiesAreOrdinaryValues(t *testing.T) {
	inf := float32(math.Inf(1))
	row := []float32{-inf, -inf, -inf, 3, inf}
	if got := mustApply(t, Dilation, 1, row, []int{1, 5}); !equal(got, []float32{-inf, -inf, 3, inf, inf}) {
		t.Errorf("dilation %v", got)
	}
	if got := mustApply(t, Erosion, 1, row, []int{1, 5}); !equal(got, []float32{-inf, -inf, -inf, -inf, 3}) {
		t.Errorf("erosion %v", got)
	}
}

func TestLawsOfTheOperators(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	for _, shape := range testShapes {
		for radius := range 5 {
			x := randomImages(r, 4, shape)
			y := make([]float32, len(x)) // y >= x
			for i, v := range x {
				y[i] = v + float32(r.IntN(2))
			}
			dilated, eroded := mustApply(t, Dilation, radius, x, shape), mustApply(t, Erosion, radius, x, shape)
			opened, closed := mustApply(t, Opening, radius, x, shape), mustApply(t, Closing, radius, x, shape)
			if !below(eroded, opened) || !below(opened, x) || !below(x, closed) || !below(closed, dilated) {
				t.Fatalf("shape %v radius %d: erosion <= opening <= x <= closing <= dilation fails", shape, radius)
			}
			if !equal(mustApply(t, Opening, radius, opened, shape), opened) || !equal(mustApply(t, Closing, radius, closed, shape), closed) {
				t.Fatalf("shape %v radius %d: opening and closing are not idempotent", shape, radius)
			}
			for _, op := range allOperators {
				if !below(mustApply(t, op, radius, x, shape), mustApply(t, op, radius, y, shape)) {
					t.Fatalf("%s shape %v radius %d: not increasing", op, shape, radius)
				}
			}
			if !equal(negated(mustApply(t, Dilation, radius, negated(x), shape)), eroded) ||
				!equal(negated(mustApply(t, Opening, radius, negated(x), shape)), closed) {
				t.Fatalf("shape %v radius %d: erosion and closing are not the duals", shape, radius)
			}
			if !below(mustApply(t, Dilation, radius, x, shape), mustApply(t, Dilation, radius+1, x, shape)) {
				t.Fatalf("shape %v: dilation by radius %d exceeds radius %d", shape, radius, radius+1)
			}
		}
	}
}

func TestErosionAndDilationAreAdjoint(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	shape := []int{6, 7}
	for range 200 {
		x, y := randomImages(r, 1, shape), randomImages(r, 1, shape)
		if r.IntN(2) == 0 {
			y = mustApply(t, Dilation, 2, x, shape)
		}
		if below(mustApply(t, Dilation, 2, x, shape), y) != below(x, mustApply(t, Erosion, 2, y, shape)) {
			t.Fatal("dilate(x) <= y and x <= erode(y) disagree")
		}
	}
}

func TestResultsDoNotDependOnTheNumberOfGoroutines(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	r := rand.New(rand.NewPCG(5, 1))
	shape := []int{9, 8, 2}
	images := randomImages(r, 3*grain+5, shape)
	var first [][]float32
	for _, procs := range []int{1, 2, 7} {
		runtime.GOMAXPROCS(procs)
		d, _, err := Decomposition{Method: AMD, Levels: 3, Start: 1, Step: 1}.Apply(images, shape)
		fatal.If(t, err)
		now := [][]float32{mustApply(t, Closing, 2, images, shape), d}
		if first == nil {
			first = now
		}
		if !equal(first[0], now[0]) || !equal(first[1], now[1]) {
			t.Fatalf("%d processors: other values than with one", procs)
		}
	}
}

func TestFilterWorksInPlace(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 1))
	for _, op := range allOperators {
		x := randomImages(r, 1, []int{6, 5})
		want := mustApply(t, op, 1, x, []int{6, 5})
		f, err := NewFilter(op, Disk, 1, []int{6, 5})
		fatal.If(t, err)
		f.Image(x, x)
		if !equal(x, want) {
			t.Errorf("%s in place differs", op)
		}
	}
}

func TestWrongArgumentsAreErrors(t *testing.T) {
	for _, c := range []struct {
		name   string
		op     Operator
		radius int
		values int
		shape  []int
		want   string
	}{
		{"operator", "dilate", 1, 4, []int{2, 2}, `unknown operator "dilate"`},
		{"radius", Dilation, -1, 4, []int{2, 2}, "radius -1"},
		{"one axis", Dilation, 1, 4, []int{4}, "shape [4]"},
		{"zero axis", Dilation, 1, 4, []int{0, 4}, "shape [0 4]"},
		{"too large", Dilation, 1, 4, []int{1 << 40, 1 << 40}, "fewer than 2^31 values"},
		{"half an image", Dilation, 1, 6, []int{2, 2}, "6 values"},
	} {
		expect.Error(t, expect.Err(Apply(c.op, Disk, c.radius, make([]float32, c.values), c.shape)), c.want, c.name, "error")
	}
}

func below(a, b []float32) bool {
	for i := range a {
		if a[i] > b[i] {
			return false
		}
	}
	return true
}

func negated(v []float32) []float32 {
	out := lists.Of(len(v), func(i int) float32 { return -v[i] })
	return out
}

func BenchmarkDilation(b *testing.B) {
	images := make([]float32, 1000*784)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range images {
		images[i] = r.Float32()
	}
	f, _ := NewFilter(Dilation, Disk, 1, []int{28, 28})
	for b.Loop() {
		for i := range 1000 {
			f.Image(images[i*784:(i+1)*784], images[i*784:(i+1)*784])
		}
	}
}

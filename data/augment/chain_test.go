package augment_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"tessera/config/part"
	"tessera/data/augment"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
)

func newChain(t *testing.T, shape []int, steps ...augment.Augmentation) *augment.Chain {
	t.Helper()
	c, err := augment.NewChain(steps, shape)
	fatal.If(t, err)
	return c
}

// every returns one augmentation of every kind, with its defaults.
func every() []augment.Augmentation {
	steps := lists.Map(augment.Registry.All(), func(e part.Entry[augment.Augmentation]) augment.Augmentation { return e.New() })
	return steps
}

// apply applies c to src and ends the test on an error.
func apply(t *testing.T, c *augment.Chain, dst, src []float32, r *rand.Rand) {
	t.Helper()
	expect.NoError(t, c.Apply(dst, src, r))
}

func generator(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 5)) }

// images returns n equal images of the given shape.
func images(n int, shape []int) []float32 {
	var all []float32
	for range n {
		all = append(all, randomImage(shape)...)
	}
	return all
}

func TestAChainAppliesItsStepsInOrder(t *testing.T) {
	shape, src := []int{1, 3}, []float32{0.25, 0, 0.5}
	white := &augment.Erase{Probability: 1, Scale: []float64{1, 1}, Ratio: []float64{1, 1}, Fill: "white"}
	black := &augment.Erase{Probability: 1, Scale: []float64{1, 1}, Ratio: []float64{1, 1}, Fill: "black"}
	mirror := &augment.Flip{Horizontal: true, Probability: 1}
	for _, c := range []struct {
		steps []augment.Augmentation
		want  []float32
	}{
		{nil, src},
		{[]augment.Augmentation{mirror}, []float32{0.5, 0, 0.25}},
		{[]augment.Augmentation{mirror, mirror}, src},
		{[]augment.Augmentation{white, black}, []float32{0, 0, 0}},
		{[]augment.Augmentation{black, mirror, white}, []float32{1, 1, 1}},
	} {
		dst := make([]float32, 3)
		apply(t, newChain(t, shape, c.steps...), dst, src, generator(1))
		expect.Slice(t, dst, c.want, len(c.steps), "steps give")
	}
}

// The number of images, the number of goroutines and earlier calls do not change any bit.
func TestAnImageOfABatchDependsOnTheGeneratorAndItsPlaceOnly(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	shape, n := []int{9, 7, 2}, 41
	src := images(n, shape)
	pixels := len(src) / n
	var want []float32
	for _, procs := range []int{1, 4} {
		runtime.GOMAXPROCS(procs)
		c := newChain(t, shape, every()...)
		for _, count := range []int{n, 1, 17, n} {
			dst := make([]float32, count*pixels)
			apply(t, c, dst, src[:len(dst)], generator(3))
			if want == nil {
				want = dst
			}
			expect.Slice(t, dst, want[:len(dst)], count, "images on", procs, "processors")
		}
	}
	if slices.Equal(want[:pixels], want[pixels:2*pixels]) {
		t.Error("equal images become equal ones")
	}
}

func TestManyGoroutinesShareAChain(t *testing.T) {
	shape := []int{8, 8}
	src := images(5, shape)
	c := newChain(t, shape, every()...)
	want := make([]float32, len(src))
	apply(t, c, want, src, generator(9))
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			dst := make([]float32, len(src))
			for range 20 {
				apply(t, c, dst, src, generator(9))
				expect.Slice(t, dst, want, "another goroutine changes the result")
			}
		})
	}
	wait.Wait()
}

// The random numbers that one step draws do not affect the other steps.
func TestEveryStepHasAStreamOfItsOwn(t *testing.T) {
	shape := []int{6, 6}
	src := images(8, shape)
	erase := func(scale float64) augment.Augmentation {
		return &augment.Erase{Scale: []float64{scale, scale}, Ratio: []float64{1, 1}, Fill: "random"}
	}
	none, noise := erase(0.1), &augment.Noise{Std: 0.1}
	few, many := make([]float32, len(src)), make([]float32, len(src))
	apply(t, newChain(t, shape, none, noise), few, src, generator(2))
	apply(t, newChain(t, shape, &augment.Noise{}, noise), many, src, generator(2)) // draws random numbers, but does not change the image
	expect.Slice(t, few, many, "noise depends on what the step before draws")
}

func TestAChainAllocatesNothingPerImage(t *testing.T) {
	shape := []int{12, 12}
	src := images(100, shape)
	dst, c, r := make([]float32, len(src)), newChain(t, shape, every()...), generator(1)
	if n := testing.AllocsPerRun(20, func() { apply(t, c, dst, src, r) }); n > 20 {
		t.Errorf("%v allocations for 100 images", n)
	}
}

// grey is an augmentation that accepts only images without channels.
type grey struct{ augment.Flip }

func (g *grey) Prepare(shape []int) (augment.Change, error) {
	if len(shape) != 2 {
		return nil, errors.New("grey images only")
	}
	return g.Flip.Prepare(shape)
}

func TestAChainRefusesWhatItCannotApply(t *testing.T) {
	good := []int{4, 4}
	for _, c := range []struct {
		steps []augment.Augmentation
		shape []int
		want  string
	}{
		{nil, []int{16}, "images of shape [16]"},
		{nil, []int{4, 0}, "images of shape [4 0]"},
		{nil, nil, "images of shape []"},
		{nil, []int{1 << 20, 1 << 20}, "want fewer than 2^31 values"},
		{[]augment.Augmentation{&augment.Flip{}, nil}, good, "step 1 is nil"},
		{[]augment.Augmentation{&grey{}}, []int{4, 4, 3}, "step 0: grey images only"},
		{[]augment.Augmentation{&augment.Crop{}}, good, "step 0: scale: got []"},
		{[]augment.Augmentation{&augment.Erase{Scale: []float64{0.1, 1}, Ratio: []float64{2, 1}, Fill: "mean"}}, good, "step 0: ratio: got [2 1]"},
		{[]augment.Augmentation{&augment.Blur{Sigma: []float64{1}}}, good, "step 0: sigma: got [1], want two numbers"},
		{[]augment.Augmentation{(*augment.Shift)(nil)}, good, "step 0: got a nil *augment.Shift"},
		{[]augment.Augmentation{&augment.Shift{Pixels: -1}}, good, "step 0: pixels: got -1, want >= 0"},
		{[]augment.Augmentation{&augment.Dilate{Radius: -1}}, good, "step 0: radius: got -1, want >= 0"},
		{[]augment.Augmentation{&augment.Erode{Radius: -1}}, good, "step 0: radius: got -1, want >= 0"},
		{[]augment.Augmentation{&augment.Crop{Scale: []float64{-1, 1}, Ratio: []float64{1, 1}}}, good, "step 0: scale: got -1, want in (0,1]"},
		{[]augment.Augmentation{&augment.Crop{Scale: []float64{1, 1}, Ratio: []float64{-1, 1}}}, good, "step 0: ratio: got -1, want > 0"},
		{[]augment.Augmentation{&augment.Blur{Sigma: []float64{1, math.Inf(1)}}}, good, "step 0: sigma: got +Inf, want in [0,1000]"},
		{[]augment.Augmentation{&augment.Erase{Scale: []float64{1, 1}, Ratio: []float64{1, 1}, Fill: "grey"}}, good, "step 0: fill: got grey, want one of"},
		{[]augment.Augmentation{&augment.Rotate{Fill: 7}}, good, "step 0: fill: got 7, want in [0,1]"},
		{[]augment.Augmentation{&augment.Noise{Std: math.NaN()}}, good, "step 0: std: got NaN, want >= 0"},
	} {
		expect.Error(t, expect.Err(augment.NewChain(c.steps, c.shape)), c.want, c.steps, "of", c.shape)
	}
	var key part.KeyError
	if _, err := augment.NewChain([]augment.Augmentation{&augment.Blur{}}, good); !errors.As(err, &key) || key.Key != "sigma" {
		t.Errorf("the key is not named: %v", err)
	}
	newChain(t, good, &grey{})
}

// Zero settings, as in a Go program that sets no fields, give an error or work.
func TestZeroSettingsDoNotPanic(t *testing.T) {
	for _, a := range []augment.Augmentation{&augment.Crop{}, &augment.Flip{}, &augment.Rotate{}, &augment.Shift{}, &augment.Erase{},
		&augment.Brightness{}, &augment.Contrast{}, &augment.Blur{}, &augment.Noise{}, &augment.Dilate{}, &augment.Erode{}} {
		if change, err := augment.Prepare(a, []int{3, 3}); err == nil {
			change(make([]float32, 9), make([]float32, 9), generator(1))
		}
		if c, err := augment.NewChain([]augment.Augmentation{a}, []int{3, 3}); err == nil {
			apply(t, c, make([]float32, 9), make([]float32, 9), generator(1))
		}
	}
}

// Prepare, called without a chain, also checks the settings and the shape. Later changes of the settings have no
// effect.
func TestOnlyAValidAugmentationIsPrepared(t *testing.T) {
	for _, a := range []augment.Augmentation{&augment.Dilate{Radius: -1, Probability: 1}, &augment.Erode{Radius: -1, Probability: 1},
		&augment.Shift{Pixels: -1}, &augment.Blur{Probability: 1}, &augment.Crop{Ratio: []float64{1, 1}}, &augment.Erase{Fill: "mean"}, (*augment.Flip)(nil)} {
		expect.AnyError(t, expect.Err(augment.Prepare(a, []int{3, 3})), a, a, "is prepared")
	}
	for _, a := range every() {
		for _, shape := range [][]int{nil, {9}, {3, -3}, {3, 3, 0}, {1, 2, 3, 4}, {1 << 40, 1 << 40}} {
			expect.AnyError(t, expect.Err(augment.Prepare(a, shape)), a, "is prepared for images of shape", shape)
		}
	}
	a := &augment.Shift{Pixels: 1}
	change, err := augment.Prepare(a, []int{3, 3})
	fatal.If(t, err)
	a.Pixels = -1
	change(make([]float32, 9), make([]float32, 9), generator(1))
}

func TestAChainReturnsAnErrorForOtherLengths(t *testing.T) {
	c := newChain(t, []int{2, 2}, every()...)
	for _, n := range [][2]int{{4, 8}, {8, 4}, {5, 5}, {0, 4}} {
		expect.Error(t, c.Apply(make([]float32, n[0]), make([]float32, n[1]), generator(1)), "values into", n[1], "values into", n[0])
	}
	apply(t, c, nil, nil, generator(1))
}

// once is an augmentation that can be prepared only once. Its change calls inside.
type once struct {
	augment.Noise
	prepared bool
	inside   func()
}

func (o *once) Prepare([]int) (augment.Change, error) {
	if o.prepared {
		return nil, errors.New("no memory left")
	}
	o.prepared = true
	return func([]float32, []float32, *rand.Rand) { o.inside() }, nil
}

// While one goroutine runs a chain, another goroutine needs another worker.
func TestAChainReturnsAnErrorOfALaterPreparation(t *testing.T) {
	shape, a := []int{2, 2}, &once{}
	c := newChain(t, shape, a)
	var err error
	a.inside = func() { err = c.Apply(make([]float32, 4), make([]float32, 4), generator(1)) }
	apply(t, c, make([]float32, 4), make([]float32, 4), generator(1))
	expect.Error(t, err, "step 0: no memory left")
}

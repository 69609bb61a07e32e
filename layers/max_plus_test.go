package layers_test

import (
	"math"
	"slices"
	"testing"

	"gorgonia.org/gorgonia"
	"tessera/data/morph"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/random"
	"tessera/laws/gradcheck"
	"tessera/layers"
)

const (
	maxPlusBatch, maxPlusUnits = 5, 7
	maxPlusRows, maxPlusPixels = 6, 36
)

// maxPlus returns the output of the layer for input h and weight w.
func maxPlus(t *testing.T, h, w []float32) []float32 {
	t.Helper()
	g, err := gradcheck.Compile(gradcheck.Layer(&layers.MaxPlus{Units: len(w) / maxPlusUnits, Init: &layers.Zeros{}}, h, len(h)/maxPlusUnits,
		[]int{maxPlusUnits}, false), false)
	fatal.If(t, err)
	defer g.Close()
	copy(g.Leaf("weight").Values, w)
	fatal.If(t, g.Run())
	return g.Output()
}

func normal(n int, name string) []float32 {
	r := random.Stream(1, name, 0)
	values := lists.Of(n, func(int) float32 { return float32(r.NormFloat64()) })
	return values
}

func TestMaxPlusEqualsPlainLoops(t *testing.T) {
	h, w := normal(maxPlusBatch*maxPlusUnits, "h"), normal(maxPlusUnits*maxPlusPixels, "w")
	want := slices.Repeat([]float32{float32(math.Inf(-1))}, maxPlusBatch*maxPlusPixels)
	for b := range maxPlusBatch {
		for j := range maxPlusUnits {
			for i := range maxPlusPixels {
				want[b*maxPlusPixels+i] = max(want[b*maxPlusPixels+i], h[b*maxPlusUnits+j]+w[j*maxPlusPixels+i])
			}
		}
	}
	expect.Slice(t, maxPlus(t, h, w), want)
}

func TestFlatOperatorsOfMaximaCommuteWithMaxPlus(t *testing.T) {
	dilate, err := morph.NewFilter(morph.Dilation, morph.Disk, 1, []int{maxPlusRows, maxPlusRows})
	fatal.If(t, err)
	dilated := func(images []float32) []float32 {
		out := make([]float32, len(images))
		for at := 0; at < len(images); at += maxPlusPixels {
			dilate.Image(out[at:at+maxPlusPixels], images[at:at+maxPlusPixels])
		}
		return out
	}
	h, w := normal(maxPlusBatch*maxPlusUnits, "h"), normal(maxPlusUnits*maxPlusPixels, "w")
	expect.Slice(t, maxPlus(t, h, dilated(w)), dilated(maxPlus(t, h, w)), "dilated atoms give")
}

// If several units attain the maximum, the first one gets the whole gradient.
func TestMaxPlusPassesTheGradientToTheFirstOfEqualUnits(t *testing.T) {
	e := gradcheck.Layer(&layers.MaxPlus{Units: 2, Init: &layers.Zeros{}}, []float64{3, 3, 1, 1, 2, 2}, 2, []int{3}, true)
	g, err := gradcheck.Compile(func(b *gradcheck.Builder[float64]) (*gorgonia.Node, error) {
		y, err := e(b)
		if err != nil {
			return nil, err
		}
		return gorgonia.Sum(y)
	}, true)
	fatal.If(t, err)
	defer g.Close()
	fatal.If(t, g.Run())
	expect.Slice(t, g.Leaf(gradcheck.Input).Gradient(), []float64{2, 0, 0, 0, 2, 0}, "code")
	expect.Slice(t, g.Leaf("weight").Gradient(), []float64{1, 1, 1, 1, 0, 0}, "weight")
}

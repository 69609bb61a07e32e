package augment_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"tessera/data/augment"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/laws"
)

func TestEveryAugmentationObeysTheLaws(t *testing.T) {
	for _, e := range augment.Registry.All() {
		t.Run(e.Name, func(t *testing.T) {
			laws.Check(t, laws.Augmentation, e.New)
		})
	}
}

func TestAugmentationsObeyTheLawsWithOtherSettings(t *testing.T) {
	for name, a := range map[string]augment.Augmentation{
		"crop of a pixel":       &augment.Crop{Scale: []float64{1e-6, 1e-3}, Ratio: []float64{1, 1}},
		"crop of a strip":       &augment.Crop{Scale: []float64{0.1, 0.9}, Ratio: []float64{1e-3, 1e3}},
		"flip both ways":        &augment.Flip{Horizontal: true, Vertical: true, Probability: 1},
		"rotate in any way":     &augment.Rotate{Degrees: 180, Fill: 1},
		"shift out of sight":    &augment.Shift{Pixels: math.MaxInt32, Fill: 0.5},
		"erase by the mean":     &augment.Erase{Probability: 1, Scale: []float64{0.1, 1}, Ratio: []float64{0.1, 10}, Fill: "mean"},
		"erase to black":        &augment.Erase{Probability: 1, Scale: []float64{0.1, 1}, Ratio: []float64{1, 1}, Fill: "black"},
		"erase to white":        &augment.Erase{Probability: 1, Scale: []float64{1, 1}, Ratio: []float64{1, 1}, Fill: "white"},
		"brightness up to 11":   &augment.Brightness{By: 10},
		"contrast up to 11":     &augment.Contrast{By: 10},
		"blur of every image":   &augment.Blur{Sigma: []float64{0, 9}, Probability: 1},
		"noise, mostly clipped": &augment.Noise{Std: 1e30},
		"dilate all":            &augment.Dilate{Radius: 50, Probability: 1},
		"erode all":             &augment.Erode{Radius: 3, Probability: 1},
	} {
		t.Run(name, func(t *testing.T) {
			laws.Check(t, laws.Augmentation, func() augment.Augmentation { return a })
		})
	}
}

// neutral lists settings with which an augmentation does not change any image.
var neutral = map[string][]augment.Augmentation{
	"crop":       {&augment.Crop{Scale: []float64{1, 1}, Ratio: []float64{0.75, 4.0 / 3}}, &augment.Crop{Scale: []float64{1, 1}, Ratio: []float64{7, 9}}},
	"flip":       {&augment.Flip{Horizontal: true, Vertical: true}, &augment.Flip{Probability: 1}},
	"rotate":     {&augment.Rotate{Fill: 0.3}},
	"shift":      {&augment.Shift{Fill: 0.3}},
	"erase":      {&augment.Erase{Scale: []float64{1, 1}, Ratio: []float64{1, 1}, Fill: "random"}},
	"brightness": {&augment.Brightness{}},
	"contrast":   {&augment.Contrast{}},
	"blur":       {&augment.Blur{Sigma: []float64{1, 2}}, &augment.Blur{Sigma: []float64{0, 0}, Probability: 1}},
	"noise":      {&augment.Noise{}},
	"dilate":     {&augment.Dilate{Radius: 1}, &augment.Dilate{Probability: 1}},
	"erode":      {&augment.Erode{Radius: 1}, &augment.Erode{Probability: 1}},
}

func TestNeutralSettingsLeaveEveryImageAsItIs(t *testing.T) {
	for _, e := range augment.Registry.All() {
		if len(neutral[e.Name]) == 0 {
			t.Errorf("%s: no neutral settings are tried", e.Name)
		}
		for _, a := range neutral[e.Name] {
			expect.Equal(t, reflect.TypeOf(a), reflect.TypeOf(e.New()), e.Name, a, "stands in its place")
			for _, shape := range [][]int{{1, 1}, {1, 5}, {28, 28}, {7, 9, 3}} {
				change, err := augment.Prepare(a, shape)
				fatal.If(t, err, e.Name, a, shape)
				src, r := randomImage(shape), rand.New(rand.NewPCG(1, 2))
				for range 20 {
					dst := make([]float32, len(src))
					if change(dst, src, r); !slices.Equal(dst, src) {
						t.Fatalf("%s %+v of %v: %v becomes %v", e.Name, a, shape, src, dst)
					}
				}
			}
		}
	}
}

// randomImage returns an image of the given shape. Every call returns the same image.
func randomImage(shape []int) []float32 {
	n, r := 1, rand.New(rand.NewPCG(28, 28))
	for _, d := range shape {
		n *= d
	}
	image := lists.Of(n, func(int) float32 { return r.Float32() })
	return image
}

package metrics

import (
	"math"
	"math/rand/v2"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// plainJaccard computes the mean Jaccard index from its definition, for every image, pair and pixel.
func plainJaccard(atoms *Atoms, codes []float32) float64 {
	k, pixels := atoms.Count, atoms.Pixels()
	total, pairs := 0.0, 0
	for image := 0; image < len(codes); image += k {
		for i := range k {
			for j := i + 1; j < k; j++ {
				var least, most float64
				for p := range pixels {
					a := math.Abs(float64(codes[image+i]) * float64(atoms.Values[i*pixels+p]))
					b := math.Abs(float64(codes[image+j]) * float64(atoms.Values[j*pixels+p]))
					least += math.Min(a, b)
					most += math.Max(a, b)
				}
				if most > 0 {
					total += least / most
				}
				pairs++
			}
		}
	}
	return total / float64(pairs)
}

func TestJaccardEqualsItsDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	for trial := range 40 {
		atoms := &Atoms{Shape: []int{5, 4}, Count: 2 + trial%6, Values: nil}
		atoms.Values = normal(r, atoms.Count*20)
		codes := normal(r, 13*atoms.Count)
		thin := r.Float32()
		for _, v := range [][]float32{atoms.Values, codes} {
			for i := range v {
				switch u := r.Float32(); {
				case u < thin:
					v[i] = 0
				case u < thin+0.1:
					v[i] = float32(r.IntN(3)) // ties
				}
			}
		}
		got, err := meanJaccard(atoms, codes)
		fatal.If(t, err)
		close6(t, "jaccard", got, plainJaccard(atoms, codes))
	}
}

func TestJaccardOfKnownAtoms(t *testing.T) {
	shape := []int{1, 4}
	for name, c := range map[string]struct {
		values, codes []float32
		want          float64
	}{
		"disjoint":             {[]float32{1, 2, 0, 0, 0, 0, 3, 4}, []float32{1, 1}, 0},
		"equal":                {[]float32{1, 2, 3, 4, 1, 2, 3, 4}, []float32{0.7, 0.7}, 1},
		"equal up to its sign": {[]float32{1, 2, 3, 4, 1, -2, 3, 4}, []float32{-1, 1}, 1},
		"half the weight":      {[]float32{1, 2, 3, 4, 1, 2, 3, 4}, []float32{1, 0.5}, 0.5},
		"one unit off":         {[]float32{1, 2, 3, 4, 1, 2, 3, 4}, []float32{1, 0}, 0},
		"all off":              {[]float32{1, 2, 3, 4, 1, 2, 3, 4}, []float32{0, 0}, 0},
		"a zero atom":          {[]float32{0, 0, 0, 0, 0, 0, 0, 0}, []float32{1, 1}, 0},
		"two images":           {[]float32{1, 0, 0, 0, 1, 0, 0, 0}, []float32{1, 1, 1, 0}, 0.5},
	} {
		got, err := meanJaccard(&Atoms{Shape: shape, Count: 2, Values: c.values}, c.codes)
		if err != nil || math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %g %v, want %g", name, got, err, c.want)
		}
	}
	if got, err := meanJaccard(&Atoms{Shape: shape, Count: 1, Values: make([]float32, 4)}, []float32{1}); got != 0 || err != nil {
		t.Errorf("one atom: %g %v", got, err)
	}
	expect.AnyError(t, expect.Err(meanJaccard(&Atoms{Shape: shape, Count: 2, Values: make([]float32, 8)}, []float32{1})), "half a code was accepted")
}

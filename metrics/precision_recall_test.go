package metrics

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Precision and recall agree with plain loops in float64.
func TestPrecisionAndRecallByPlainLoops(t *testing.T) {
	const width, k = 3, 3
	r := rand.New(rand.NewPCG(3, 4))
	real, generated := normal(r, 60*width), normal(r, 45*width)
	for i := range generated { // narrower: precise, but less varied
		generated[i] *= 0.5
	}
	distance := func(a, b []float32) (sum float64) {
		for i := range a {
			sum += (float64(a[i]) - float64(b[i])) * (float64(a[i]) - float64(b[i]))
		}
		return math.Sqrt(sum)
	}
	share := func(x, y []float32) (share float64) {
		rows := slices.Collect(slices.Chunk(y, width))
		n := 0
		for a := range slices.Chunk(x, width) {
			inside := false
			for i, b := range rows {
				var others []float64
				for j, c := range rows {
					if j != i {
						others = append(others, distance(b, c))
					}
				}
				slices.Sort(others)
				inside = inside || distance(a, b) <= others[k-1]
			}
			if n++; inside {
				share++
			}
		}
		return share / float64(n)
	}
	precision, recall, err := PrecisionRecall(real, generated, width, k)
	if err != nil || precision != share(generated, real) || recall != share(real, generated) {
		t.Errorf("precision %v and recall %v (%v), want %v and %v", precision, recall, err, share(generated, real), share(real, generated))
	}
	if !(precision > recall) {
		t.Errorf("precision %v of narrower samples is not larger than their recall %v", precision, recall)
	}
}

func TestPrecisionAndRecallOfExtremes(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	x := normal(r, 50*4)
	far := slices.Clone(x)
	for i := range far {
		far[i] += 100
	}
	for _, c := range []struct {
		generated []float32
		want      float64
	}{{x, 1}, {far, 0}} {
		if p, q, err := PrecisionRecall(x, c.generated, 4, 3); err != nil || p != c.want || q != c.want {
			t.Errorf("precision %v, recall %v (%v), want both %v", p, q, err, c.want)
		}
	}
	for _, wrong := range []struct {
		real, neighbours int
	}{{12, 3}, {199, 3}, {200, 0}} { // three images, part of an image, no neighbour
		if _, _, err := PrecisionRecall(x[:wrong.real], x, 4, wrong.neighbours); err == nil {
			t.Errorf("no error for %v", wrong)
		}
	}
}

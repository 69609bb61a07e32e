package metrics

import (
	"math/rand/v2"
	"testing"
)

func TestVarianceIsExplainedByMoreThanTheMeanOnly(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 2))
	c := newAffine(r, []int{6}, 3)
	x := uniform(r, 60)
	for i := range x {
		x[i] += 1000 // a mean far from 0 must cost no digits
	}
	mean := make([]float32, 6)
	for i, v := range x {
		mean[i%6] += v / 10
	}
	outputs := func(of func(i int) float32) *Batch {
		b := &Batch{Images: x, Outputs: make([]float32, len(x))}
		for i := range x {
			b.Outputs[i] = of(i)
		}
		return b
	}
	for name, one := range map[string]struct {
		outputs func(i int) float32
		want    float64
	}{
		"perfect":  {func(i int) float32 { return x[i] }, 1},
		"the mean": {func(i int) float32 { return mean[i%6] }, 0},
	} {
		got := added(t, metricOf("explained_variance"), Subject{Coder: c, Shape: c.Shape(), Units: 3}, *outputs(one.outputs))[0].Number
		if d := got - one.want; d > 1e-4 || d < -1e-4 {
			t.Errorf("%s: got %g, want %g", name, got, one.want)
		}
	}
	same := Batch{Images: []float32{1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}, Outputs: make([]float32, 12)}
	if v := added(t, metricOf("explained_variance"), Subject{Coder: c, Shape: c.Shape(), Units: 3}, same)[0]; v.Missing == "" {
		t.Errorf("equal samples have no variance to explain: got %v", v.Number)
	}
}

func TestWhatNeedsPicturesIsNotApplicableToVectors(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 3))
	of := func(shape []int, low float32) Values {
		c := newAffine(r, shape, 3)
		x := uniform(r, 48)
		for i := range x {
			x[i] += low
		}
		return measured(t, c, x).Values
	}
	vectors, images, signed := of([]int{16}, 0), of([]int{4, 4}, 0), of([]int{4, 4}, -0.5)
	for _, name := range []string{"max_approx", "max_approx_clipped", "max_approx_reconstructed", "mse_clipped", "atom_area"} {
		if v, ok := vectors.Number(name); ok {
			t.Errorf("%s of vectors: got %g", name, v)
		}
		if _, ok := images.Number(name); !ok {
			t.Errorf("%s of images is missing", name)
		}
	}
	if v, ok := signed.Number("mse_clipped"); ok {
		t.Errorf("mse_clipped of images outside [0,1]: got %g", v)
	}
	for _, name := range []string{"mse", "explained_variance", "cosine", "active_units"} {
		if _, ok := vectors.Number(name); !ok {
			t.Errorf("%s of vectors is missing", name)
		}
	}
}

package layers_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"tessera/config/part"
	"tessera/internal/expect"
	"tessera/internal/random"
	"tessera/layers"
)

// moments returns the mean and the standard deviation.
func moments(x []float64) (mean, stddev float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		stddev += (v - mean) * (v - mean) / float64(len(x))
	}
	return mean, math.Sqrt(stddev)
}

// The noise of each layer is measured on an input of ones: its mean, its standard deviation and its possible values.
func TestNoiseHasItsMomentsInTraining(t *testing.T) {
	for _, c := range []struct {
		name         string
		layer        layers.Layer
		mean, stddev float64
		values       []float64 // possible values; nil for any
	}{
		{"dropout", &layers.Dropout{Rate: 0.2}, 1, math.Sqrt(0.2 / 0.8), []float64{0, 1.25}},
		{"masking_noise", &layers.MaskingNoise{Rate: 0.2}, 0.8, math.Sqrt(0.2 * 0.8), []float64{0, 1}},
		{"gaussian_noise", &layers.GaussianNoise{Stddev: 0.3}, 1, 0.3, nil},
	} {
		const n = 40000
		y := apply(t, c.layer, slices.Repeat([]float64{1}, n), n/100, []int{10, 10}, true)
		mean, stddev := moments(y)
		expect.Near(t, mean, c.mean, 5*c.stddev/math.Sqrt(n), c.name, "mean")
		expect.Near(t, stddev, c.stddev, 0.02*c.stddev, c.name, "standard deviation")
		for _, v := range y {
			if c.values != nil && !slices.Contains(c.values, v) {
				t.Fatalf("%s: value %v, want one of %v", c.name, v, c.values)
			}
		}
		if x := []float64{1, -2, 0.5, 3}; !slices.Equal(apply(t, c.layer, x, 1, []int{4}, false), x) {
			t.Errorf("%s: not the identity at inference", c.name)
		}
	}
}

type initCase struct {
	name         string
	init         layers.Init
	mean, stddev float64
	bound        float64 // largest |value|, 0 for none
}

// inits lists initialisations with their settings and the expected moments for 300 inputs and 200 units.
var inits = []initCase{
	{"glorot_uniform", &layers.GlorotUniform{}, 0, math.Sqrt(2. / 500), math.Sqrt(6. / 500)},
	{"glorot_normal", &layers.GlorotNormal{}, 0, math.Sqrt(2. / 500), 0},
	{"he_uniform", &layers.HeUniform{}, 0, math.Sqrt(2. / 300), math.Sqrt(6. / 300)},
	{"he_normal", &layers.HeNormal{}, 0, math.Sqrt(2. / 300), 0},
	{"uniform", &layers.Uniform{Low: 0.0125, High: 0.0625}, 0.0375, 0.05 / math.Sqrt(12), 0.0625},
	{"normal", &layers.Normal{Mean: 2, Stddev: 0.5}, 2, 0.5, 0},
	{"zeros", &layers.Zeros{}, 0, 0, 0},
	{"constant", &layers.Constant{Value: -3}, -3, 0, 3},
	{"orthogonal", &layers.Orthogonal{Gain: 2}, 0, 2 / math.Sqrt(300), 2},
	{"sparse", &layers.SparseInit{Sparsity: 0.75, Stddev: 0.2}, 0, 0.1, 0},
}

func TestEveryInitHasItsMoments(t *testing.T) {
	const in, out = 300, 200
	for _, c := range inits {
		w := slices.Repeat([]float32{float32(math.NaN())}, in*out)
		c.init.Fill(w, in, out, random.Stream(1, c.name, 0))
		x := make([]float64, len(w))
		for i, v := range w {
			x[i] = float64(v)
			if c.bound > 0 && math.Abs(x[i]) > c.bound*(1+1e-6) {
				t.Fatalf("%s: value %v beyond %v", c.name, v, c.bound)
			}
		}
		mean, stddev := moments(x)
		expect.Near(t, mean, c.mean, 5*c.stddev/math.Sqrt(in*out)+1e-9, c.name, "mean")
		expect.Near(t, stddev, c.stddev, 0.02*c.stddev+1e-9, c.name, "standard deviation")
	}
}

// The columns of a tall matrix, and the rows of a wide one, are orthogonal; a tensor is read as a matrix whose columns lie
// along the last axis.
func TestOrthogonalMatricesAreOrthogonal(t *testing.T) {
	for _, shape := range [][]int{{7, 4}, {4, 7}, {5, 5}, {2, 2, 3, 4}, {1, 6}} {
		rows, columns := 1, shape[len(shape)-1]
		for _, n := range shape[:len(shape)-1] {
			rows *= n
		}
		w := make([]float32, rows*columns)
		p := layers.Parameter{Shape: shape, Init: &layers.Orthogonal{Gain: 3}, FanIn: 1, FanOut: 1}
		p.Fill(w, random.Stream(1, "w", 0))
		at := func(vector, i int) float64 { return float64(w[i*columns+vector]) }
		if rows < columns {
			at = func(vector, i int) float64 { return float64(w[vector*columns+i]) }
		}
		for a := range min(rows, columns) {
			for b := range a + 1 {
				sum, want := 0.0, 0.0
				for i := range max(rows, columns) {
					sum += at(a, i) * at(b, i)
				}
				if a == b {
					want = 9
				}
				expect.Near(t, sum, want, 1e-5, shape, "the product of vectors", a, "and", b)
			}
		}
	}
}

func TestSparseInitLeavesTheSameNumberOfInputsToEveryUnit(t *testing.T) {
	const inputs, units = 30, 5
	w := make([]float32, inputs*units)
	(&layers.SparseInit{Sparsity: 0.81, Stddev: 1}).Fill(w, inputs, units, random.Stream(1, "w", 0))
	for j := range units {
		zeros := 0
		for i := range inputs {
			if w[i*units+j] == 0 {
				zeros++
			}
		}
		if zeros != 25 { // 24.3, rounded up
			t.Errorf("unit %d has %d zeros, want 25", j, zeros)
		}
	}
}

func TestInitsRepeatWithTheSeed(t *testing.T) {
	for _, e := range layers.Inits.All() {
		fill := func(seed uint64) []float32 {
			w := make([]float32, 64)
			e.New().Fill(w, 8, 8, random.Stream(seed, "w", 0))
			return w
		}
		expect.Slice(t, fill(7), fill(7), e.Name, "two fills with one seed")
		if drawn := slices.Max(fill(7)) > slices.Min(fill(7)); drawn && slices.Equal(fill(7), fill(8)) {
			t.Errorf("%s: fills with two seeds are equal", e.Name)
		}
	}
}

func TestUniformRefusesLimitsInTheWrongOrder(t *testing.T) {
	var key part.KeyError
	if err := (&layers.Uniform{Low: 1, High: 0}).Check(); !errors.As(err, &key) || key.Key != "high" {
		t.Errorf("got %v, want an error of the key high", err)
	}
	expect.NoError(t, (&layers.Uniform{Low: 0, High: 1}).Check())
}

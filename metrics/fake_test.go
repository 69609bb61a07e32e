package metrics

import (
	"errors"
	"math/rand/v2"

	"tessera/internal/lists"
	"tessera/internal/volume"
)

// affine is a coder for tests: h = relu(x V + c), y = leaky(h W + b) with slope 0.1, by plain loops.
type affine struct {
	shape   []int
	units   int
	encoder []float32 // pixels x units
	offset  []float32 // units
	atoms   *Atoms
	hidden  bool // the coder does not return its atoms, like a decoder that ends in a convolution
	fail    error
}

func newAffine(r *rand.Rand, shape []int, units int) *affine {
	pixels := volume.Of(shape)
	a := &affine{shape: shape, units: units, encoder: normal(r, pixels*units), offset: normal(r, units)}
	a.atoms = &Atoms{Shape: shape, Count: units, Values: normal(r, units*pixels), Bias: normal(r, pixels)}
	return a
}

func (a *affine) Shape() []int { return a.shape }
func (a *affine) Units() int   { return a.units }

func (a *affine) Encode(images []float32) ([]float32, error) {
	if a.fail != nil {
		return nil, a.fail
	}
	h := matrixProduct(images, a.encoder, volume.Of(a.shape), a.units)
	for i := range h {
		h[i] = max(h[i]+a.offset[i%a.units], 0)
	}
	return h, nil
}

func (a *affine) Decode(codes []float32) ([]float32, error) {
	pixels := volume.Of(a.shape)
	y := matrixProduct(codes, a.atoms.Values, a.units, pixels)
	for i := range y {
		if a.atoms.Bias != nil {
			y[i] += a.atoms.Bias[i%pixels]
		}
		if y[i] < 0 {
			y[i] *= 0.1
		}
	}
	return y, nil
}

func (a *affine) Atoms() *Atoms {
	if a.hidden {
		return nil
	}
	c := *a.atoms
	return &c
}

func (a *affine) WithAtoms(atoms *Atoms) (Coder, error) {
	if a.hidden {
		return nil, errors.New("no atoms")
	}
	c := *a
	c.atoms = atoms
	return &c, nil
}

// matrixProduct returns the matrix product of rows (n x inner) with m (inner x outer).
func matrixProduct(rows, m []float32, inner, outer int) []float32 {
	n := len(rows) / inner
	out := make([]float32, n*outer)
	for i := range n {
		o := out[i*outer : (i+1)*outer]
		for k, v := range rows[i*inner : (i+1)*inner] {
			if v == 0 {
				continue
			}
			for j, w := range m[k*outer : (k+1)*outer] {
				o[j] += v * w
			}
		}
	}
	return out
}

func normal(r *rand.Rand, n int) []float32 {
	v := lists.Of(n, func(int) float32 { return float32(r.NormFloat64()) })
	return v
}

func uniform(r *rand.Rand, n int) []float32 {
	v := lists.Of(n, func(int) float32 { return r.Float32() })
	return v
}

// unstarted is an incorrect metric: Start returns no meter.
type unstarted struct{}

func (unstarted) Describe() Description         { return Description{Measures: []Measure{{Name: "unstarted"}}} }
func (unstarted) Start(*Subject) (Meter, error) { return nil, nil }

// metricOf returns a registered metric with its default settings.
func metricOf(name string) Metric {
	e, ok := Registry.Lookup(name)
	if !ok {
		panic(name)
	}
	return e.New()
}

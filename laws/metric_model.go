package laws

import (
	"errors"
	"math"
	"slices"

	"tessera/internal/volume"
	"tessera/metrics"
)

// measured is a model for the laws of metrics, in plain loops: h = f(x V + c) times a factor for each unit, y = leaky(h W +
// b) with the atoms W divided by these factors, and heads x U.
type measured struct {
	name    string
	shape   []int
	units   int
	encoder []float32 // pixels x units
	offset  []float32 // units
	factors []float32 // of the units; nil: 1 each
	atoms   *metrics.Atoms
	heads   map[string][]float32 // pixels x classes
	sigmoid bool                 // f is the sigmoid, else relu
	opaque  bool                 // the model does not return its atoms
	encodes bool                 // there is no decoder
	sample  metrics.Sample
}

// classesOfHeads is the number of classes of the samples.
const classesOfHeads = 3

// newMeasured returns a model of images of that shape, and n images with labels, some of them unknown.
func newMeasured(name string, shape []int, units, n int, edit func(*measured)) *measured {
	r, pixels := source(), volume.Of(shape)
	m := &measured{name: name, shape: shape, units: units, encoder: normal(r, pixels*units, 1), offset: normal(r, units, 1)}
	m.atoms = &metrics.Atoms{Shape: shape, Count: units, Values: normal(r, units*pixels, 1), Bias: normal(r, pixels, 1)}
	m.heads = map[string][]float32{"class": normal(r, pixels*classesOfHeads, 1)}
	m.sample = metrics.Sample{Images: make([]float32, n*pixels), Labels: make([]int, n), Seed: 3}
	for i := range m.sample.Images {
		m.sample.Images[i] = r.Float32()
	}
	for i := range m.sample.Labels {
		m.sample.Labels[i] = i % classesOfHeads
		if i%11 == 5 {
			m.sample.Labels[i] = -1
		}
	}
	if edit != nil {
		edit(m)
	}
	return m
}

// measuredModels are models of every kind.
func measuredModels() []*measured {
	return []*measured{
		newMeasured("a dense model", []int{6, 5}, 7, 260, nil),
		newMeasured("codes in [0,1]", []int{6, 5}, 7, 260, func(m *measured) { m.sigmoid = true }),
		newMeasured("images with channels", []int{4, 3, 2}, 5, 260, nil),
		newMeasured("vectors", []int{12}, 5, 260, nil),
		newMeasured("atoms without a bias", []int{5, 4}, 4, 260, func(m *measured) { m.atoms.Bias = nil }),
		newMeasured("no atoms", []int{5, 4}, 4, 260, func(m *measured) { m.opaque = true }),
		newMeasured("no decoder", []int{5, 4}, 4, 260, func(m *measured) { m.encodes, m.opaque = true, true }),
		newMeasured("no labels", []int{5, 4}, 4, 260, func(m *measured) { m.sample.Labels = nil }),
		newMeasured("unknown labels", []int{5, 4}, 4, 20, func(m *measured) {
			for i := range m.sample.Labels {
				m.sample.Labels[i] = -1
			}
		}),
		newMeasured("no heads", []int{5, 4}, 4, 260, func(m *measured) { m.heads = nil }),
		newMeasured("two heads", []int{5, 4}, 4, 260, func(m *measured) { m.heads["other"] = m.encoder[:20*3] }),
		newMeasured("one image", []int{5, 4}, 4, 1, nil),
		newMeasured("sums of disjoint parts", []int{6, 5}, 7, 260, sumOfParts),
		newMeasured("black images and dead units", []int{5, 4}, 4, 260, func(m *measured) {
			clear(m.sample.Images)
			for j := range m.offset {
				m.offset[j] = -1
			}
		}),
	}
}

// sumOfParts makes the images sums of disjoint non-negative atoms, of which the latter matter less and less, and the encoder
// the one that finds their weights.
func sumOfParts(m *measured) {
	r, pixels := source(), volume.Of(m.shape)
	m.atoms.Bias = nil
	m.sample.Parts = [][]float32{make([]float32, pixels), make([]float32, pixels)}
	for p := range pixels {
		m.sample.Parts[p%2][p] = 1
	}
	clear(m.atoms.Values)
	clear(m.encoder)
	clear(m.offset)
	clear(m.sample.Images)
	for p := range pixels {
		j := p % m.units
		m.atoms.Values[j*pixels+p] = 1
		m.encoder[p*m.units+j] = 1 / float32((pixels-j+m.units-1)/m.units) // the mean of the atom's pixels
	}
	for i := range len(m.sample.Images) / pixels {
		image := m.sample.Images[i*pixels : (i+1)*pixels]
		weights := make([]float64, m.units)
		for j := range weights {
			if r.IntN(2) == 0 {
				weights[j] = math.Pow(0.3, float64(j)) * r.Float64()
			}
		}
		for p := range image {
			image[p] = float32(weights[p%m.units]) + 0.02*r.Float32()
		}
	}
}

// Shape implements [metrics.Coder].
func (m *measured) Shape() []int { return slices.Clone(m.shape) }

// Units implements [metrics.Coder].
func (m *measured) Units() int { return m.units }

// Encode implements [metrics.Coder].
func (m *measured) Encode(images []float32) ([]float32, error) {
	h := product(images, m.encoder, volume.Of(m.shape), m.units)
	for i, v := range h {
		if v += m.offset[i%m.units]; m.sigmoid {
			v = float32(1 / (1 + math.Exp(-float64(v))))
		}
		if h[i] = max(v, 0); m.factors != nil {
			h[i] *= m.factors[i%m.units]
		}
	}
	return h, nil
}

// Decode implements [metrics.Coder].
func (m *measured) Decode(codes []float32) ([]float32, error) {
	if m.encodes {
		return nil, errors.New("the model has no decoder")
	}
	pixels := volume.Of(m.shape)
	y := product(codes, m.atoms.Values, m.units, pixels)
	for i := range y {
		if m.atoms.Bias != nil {
			y[i] += m.atoms.Bias[i%pixels]
		}
		if y[i] < 0 {
			y[i] *= 0.1
		}
	}
	return y, nil
}

// Atoms implements [metrics.Coder].
func (m *measured) Atoms() *metrics.Atoms {
	if m.opaque {
		return nil
	}
	return &metrics.Atoms{Shape: m.shape, Count: m.units, Values: slices.Clone(m.atoms.Values), Bias: slices.Clone(m.atoms.Bias)}
}

// WithAtoms implements [metrics.Coder].
func (m *measured) WithAtoms(a *metrics.Atoms) (metrics.Coder, error) {
	other := *m
	other.atoms = a
	return &other, nil
}

// LastWeight implements [metrics.Weighted].
func (m *measured) LastWeight() []float32 {
	if m.encodes {
		return nil
	}
	return m.atoms.Values
}

// Values implements [metrics.ValueCoder].
func (m *measured) Values() []string {
	names := append([]string{"code"}, m.ClassHeads()...)
	if !m.encodes {
		names = append(names, metrics.OutputName)
	}
	return names
}

// ClassHeads implements [metrics.ValueCoder].
func (m *measured) ClassHeads() []string {
	var names []string
	for _, name := range []string{"class", "other"} {
		if m.heads[name] != nil {
			names = append(names, name)
		}
	}
	return names
}

// Value implements [metrics.ValueCoder].
func (m *measured) Value(name string, images []float32) ([]float32, error) {
	pixels := volume.Of(m.shape)
	return product(images, m.heads[name], pixels, len(m.heads[name])/pixels), nil
}

// scaled returns the same model with the code of every unit multiplied by a factor from 0.01 to 100, and its atom divided by
// it: outputs differ by rounding only.
func (m *measured) scaled() *measured {
	other := *m
	atoms := *m.atoms
	atoms.Values = slices.Clone(atoms.Values)
	other.atoms, other.factors = &atoms, make([]float32, m.units)
	pixels := volume.Of(m.shape)
	for j := range other.factors {
		other.factors[j] = float32(math.Pow(10, 2-4*float64(j*5%7)/6)) // 100, 0.046, 2.15 ...
		for p := range pixels {
			atoms.Values[j*pixels+p] /= other.factors[j]
		}
	}
	return &other
}

// product is the matrix product of rows (n x inner) with w (inner x outer).
func product(rows, w []float32, inner, outer int) []float32 {
	out := make([]float32, len(rows)/inner*outer)
	for i := range out {
		for k := range inner {
			out[i] += rows[i/outer*inner+k] * w[k*outer+i%outer]
		}
	}
	return out
}

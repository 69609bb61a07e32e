package baselines

import (
	"fmt"
	"slices"

	"tessera/config"
	"tessera/internal/volume"
	"tessera/kernel"
	"tessera/metrics"
)

// coder is the common part of all models: codes times atoms, plus a bias if the method has one.
type coder struct {
	shape         []int
	pixels, units int
	atoms         []float32 // units x pixels
	bias          []float32 // pixels, or nil
}

// newCoder returns an unfitted coder of a method.
func newCoder(shape []int, s interface {
	config.Baseline
	config.Fitted
}) (coder, error) {
	if err := kernel.Err(); err != nil {
		return coder{}, err
	}
	c := coder{shape: slices.Clone(shape), pixels: volume.Of(shape), units: s.Units()}
	if len(shape) == 0 || slices.Min(shape) < 1 {
		return c, fmt.Errorf("images of shape %v have no pixels", shape)
	}
	if c.units < 1 {
		return c, fmt.Errorf("components: got %d, want > 0", c.units)
	}
	return c, s.Fits(0, c.pixels)
}

// Shape implements [metrics.Coder].
func (c *coder) Shape() []int { return slices.Clone(c.shape) }

// Units implements [metrics.Coder].
func (c *coder) Units() int { return c.units }

// Atoms implements [metrics.Coder].
func (c *coder) Atoms() *metrics.Atoms {
	return &metrics.Atoms{Shape: c.Shape(), Count: c.units, Values: slices.Clone(c.atoms), Bias: slices.Clone(c.bias)}
}

// Decode implements [metrics.Coder].
func (c *coder) Decode(codes []float32) ([]float32, error) {
	if c.atoms == nil {
		return nil, errUnfitted
	}
	return decode(codes, c.atoms, c.bias, c.units, c.pixels)
}

var errUnfitted = fmt.Errorf("baselines: the model has not been fitted")

// decode returns codes x atoms + bias.
func decode(codes, atoms, bias []float32, units, pixels int) ([]float32, error) {
	if len(codes)%units != 0 {
		return nil, fmt.Errorf("baselines: got %d values, want whole codes of %d values", len(codes), units)
	}
	n := len(codes) / units
	images := make([]float32, n*pixels)
	multiply(false, false, n, pixels, units, codes, atoms, images)
	for i := 0; i < n && bias != nil; i++ {
		row := images[i*pixels : (i+1)*pixels]
		for j, b := range bias {
			row[j] += b
		}
	}
	return images, nil
}

// imageCount returns the number of images.
func (c *coder) imageCount(images []float32) (int, error) {
	if c.atoms == nil {
		return 0, errUnfitted
	}
	if len(images)%c.pixels != 0 {
		return 0, fmt.Errorf("baselines: got %d values, want whole images of shape %v", len(images), c.shape)
	}
	return len(images) / c.pixels, nil
}

// replaced is a coder with other atoms: it encodes with its own and decodes with the others.
type replaced struct {
	metrics.Coder
	atoms *metrics.Atoms
}

// replaceAtoms is WithAtoms of every model.
func replaceAtoms(c metrics.Coder, a *metrics.Atoms) (metrics.Coder, error) {
	pixels := volume.Of(c.Shape())
	if a == nil || a.Count != c.Units() || len(a.Values) != a.Count*pixels || a.Bias != nil && len(a.Bias) != pixels {
		return nil, fmt.Errorf("baselines: replaced atoms: want %d images of shape %v", c.Units(), c.Shape())
	}
	return replaced{c, &metrics.Atoms{Shape: c.Shape(), Count: a.Count,
		Values: slices.Clone(a.Values), Bias: slices.Clone(a.Bias)}}, nil
}

// Atoms implements [metrics.Coder].
func (r replaced) Atoms() *metrics.Atoms {
	return &metrics.Atoms{Shape: slices.Clone(r.atoms.Shape), Count: r.atoms.Count,
		Values: slices.Clone(r.atoms.Values), Bias: slices.Clone(r.atoms.Bias)}
}

// Decode implements [metrics.Coder].
func (r replaced) Decode(codes []float32) ([]float32, error) {
	return decode(codes, r.atoms.Values, r.atoms.Bias, r.atoms.Count, len(r.atoms.Values)/r.atoms.Count)
}

// WithAtoms implements [metrics.Coder].
func (r replaced) WithAtoms(a *metrics.Atoms) (metrics.Coder, error) { return replaceAtoms(r.Coder, a) }

// save returns the tensors that decoding needs.
func (c *coder) save() map[string]Tensor {
	tensors := map[string]Tensor{}
	if c.atoms != nil {
		tensors[atomsName] = Tensor{[]int{c.units, c.pixels}, c.atoms}
	}
	if c.bias != nil {
		tensors[biasName] = Tensor{[]int{c.pixels}, c.bias}
	}
	return tensors
}

// restore reads them back, with the bias if there is one.
func (c *coder) restore(s State) error {
	atoms, err := s.tensor(atomsName, c.units, c.pixels)
	if err != nil {
		return err
	}
	if _, ok := s.Tensors[biasName]; ok {
		bias, err := s.tensor(biasName, c.pixels)
		if err != nil {
			return err
		}
		c.bias = slices.Clone(bias.Values)
	}
	c.atoms = slices.Clone(atoms.Values)
	return nil
}

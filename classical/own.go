package classical

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"tessera/config"
	"tessera/internal/random"
)

// Algorithm is the part of a method from which [NewModel] builds a model. It approximates samples X (n x values) by codes
// times atoms (units x values), plus a bias (values) if there is one. All arrays are row-major.
type Algorithm interface {
	// Start returns the initial atoms for the samples x, and the bias or nil. All its random choices use r.
	Start(x []float32, r *rand.Rand) (atoms, bias []float32, err error)
	// Improve performs one iteration: it changes atoms and bias in place and returns the objective afterwards. If ctx ends, it
	// returns the error of ctx without any change.
	Improve(ctx context.Context, x, atoms, bias []float32) (objective float64, err error)
	// Encode returns the codes of the samples x. It does not change the model.
	Encode(x, atoms, bias []float32) (codes []float32, err error)
}

// Keeper is implemented by algorithms with state other than atoms and bias, such as the weights of components.
type Keeper interface {
	Algorithm
	// Keeps returns pointers to these values by name. NewModel saves and restores the values; a restored slice may have any
	// length.
	Keeps() map[string]*[]float32
}

// Options are the options of [NewModel].
type Options struct {
	Name      string  // name of the method, for errors
	Tolerance float64 // the fit ends when an iteration lowers the objective by less than this fraction of it
	Rises     bool    // the objective may rise, which does not end the fit
	Signed    bool    // samples may have negative values
}

// NewModel returns the unfitted model of a method. It combines the algorithm with what all models have in common: checks of
// settings and samples, the count of iterations, the state, and decoding. See [Method.New].
func NewModel(m Method, shape []int, seed uint64, o Options, a Algorithm) (Model, error) {
	if m == nil || a == nil {
		return nil, errors.New("baselines.NewModel: want a method and an algorithm, got nil")
	}
	b, err := newBase(o.Name, checked{m}, shape, m.MostIterations(), o.Tolerance)
	if err != nil {
		return nil, err
	}
	b.signed, b.rises = o.Signed, o.Rises
	u := &own{base: b, algorithm: a, seed: seed}
	u.base.own = u
	return u, nil
}

// checked wraps the settings of a method of another module.
type checked struct{ Method }

// Check returns the error of the method's Check, if it has one.
func (c checked) Check() error {
	if m, ok := c.Method.(interface{ Check() error }); ok {
		return m.Check()
	}
	return nil
}

// Fits implements [config.Fitted].
func (c checked) Fits(images, pixels int) error {
	if m, ok := c.Method.(config.Fitted); ok {
		return m.Fits(images, pixels)
	}
	return nil
}

// own is a model returned by NewModel.
type own struct {
	base
	algorithm Algorithm
	seed      uint64
	samples   []float32
}

func (u *own) begin(images Images) error {
	u.samples = load(images)
	if err := u.acceptImages(u.samples); err != nil || u.atoms != nil { // restored
		return err
	}
	atoms, bias, err := u.algorithm.Start(u.samples, random.Stream(u.seed, u.name, 0))
	if err != nil {
		return err
	}
	if len(atoms) != u.units*u.pixels || bias != nil && len(bias) != u.pixels {
		return fmt.Errorf("its Start gives %d values of atoms and %d of a bias, want %d and %d or none", len(atoms), len(bias), u.units*u.pixels, u.pixels)
	}
	u.atoms, u.bias = atoms, bias
	return nil
}

func (u *own) step(ctx context.Context) (float64, error) {
	return u.algorithm.Improve(ctx, u.samples, u.atoms, u.bias)
}

func (u *own) encode(samples []float32) ([]float32, error) {
	codes, err := u.algorithm.Encode(samples, u.atoms, u.bias)
	if want := len(samples) / u.pixels * u.units; err == nil && len(codes) != want {
		return nil, fmt.Errorf("its Encode gives %d values, want %d", len(codes), want)
	}
	return codes, err
}

func (u *own) save(s State) {
	u.base.save(s)
	if k, ok := u.algorithm.(Keeper); ok {
		for name, values := range k.Keeps() {
			s.Tensors[name] = Tensor{[]int{len(*values)}, *values}
		}
	}
}

func (u *own) restore(s State) error {
	if err := u.base.restore(s); err != nil {
		return err
	}
	k, ok := u.algorithm.(Keeper)
	if !ok {
		return nil
	}
	kept := k.Keeps()
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		values, err := s.values(name, -1)
		if err != nil {
			return err
		}
		*kept[name] = values
	}
	return nil
}

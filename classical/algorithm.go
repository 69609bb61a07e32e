package classical

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"tessera/data"
	"tessera/internal/engine/kernel"
	"tessera/internal/fit"
	"tessera/internal/random"
	"tessera/internal/volume"
	"tessera/metrics"
)

var (
	_ metrics.Coder = (*Base)(nil)
	_ Model         = (*Base)(nil)
)

// Algorithm is the part of a [Model] that differs between methods. A type that embeds [Base] and has Start, Improve and Codes
// is one; [NewModel] makes a model of it.
type Algorithm interface {
	Model
	// Start takes samples whose size and number are valid and prepares the first iteration. It sets the initial parameters, unless
	// they were restored; all random choices use [Base.Random]. See [Model.Begin] for the errors.
	Start(samples Images) error
	// Improve performs one iteration and returns the objective. If ctx ends, it may return the error of ctx, and the next call
	// continues.
	Improve(ctx context.Context) (objective float64, err error)
	// Infer returns the codes of samples, n x units, without changing the model. It is called only if there are parameters.
	Infer(samples []float32) (codes []float32, err error)
	// Keep saves or restores everything that an exact resume needs. [Base.Keep] does so for the progress, the atoms and the bias.
	Keep(k *Kept)
	base() *Base
}

// NewModel returns the unfitted model of a method, or an error for settings that are invalid, in general or for samples of this
// shape. of returns the algorithm of one fit, with the given base; it is called once per fit.
func NewModel(m Method, shape []int, seed uint64, of func(b Base) Algorithm) (Model, error) {
	if m == nil || of == nil {
		return nil, errors.New("classical.NewModel: want a method and an algorithm, got nil")
	}
	b := Base{fit: m.Describe(), shape: slices.Clone(shape), pixels: volume.Of(shape)}
	b.units = b.fit.Units
	if err := b.wrap(b.check(m)); err != nil {
		return nil, err
	}
	one := func(seed uint64) Model {
		own := b
		own.seed = seed
		a := of(own)
		a.base().own = a
		return a
	}
	if b.fit.Restarts <= 1 {
		return one(seed), nil
	}
	return &restarted{Model: one(seed), one: one, seed: seed, restarts: b.fit.Restarts}, nil
}

// Base is the common part of all models. It decodes by atoms, plus a bias if the method has one, and counts iterations.
type Base struct {
	own           Algorithm // the algorithm that embeds this base
	fit           Fitting
	seed          uint64
	shape         []int
	pixels, units int

	atoms []float32 // units x pixels
	bias  []float32 // bias, pixels; nil if there is none

	iteration int
	objective float64
	done      bool
}

func (b *Base) base() *Base { return b }

func (b *Base) check(m Method) error {
	if c, ok := m.(interface{ Check() error }); ok {
		if err := c.Check(); err != nil {
			return err
		}
	}
	if err := kernel.Err(); err != nil {
		return err
	}
	if len(b.shape) == 0 || slices.Min(b.shape) < 1 {
		return fmt.Errorf("samples of shape %v have no pixels", b.shape)
	}
	if b.units < 1 {
		return fmt.Errorf("components: got %d, want > 0", b.units)
	}
	return b.fits(0)
}

// fits returns an error for settings that are invalid for a number of images, which is 0 if unknown.
func (b *Base) fits(images int) error {
	if b.fit.Sizes == nil {
		return nil
	}
	return b.fit.Sizes(images, b.pixels)
}

// wrap adds the name of the method to an error.
func (b *Base) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", b.fit.Name, err)
}

// Load returns all samples as floats (n x values), with NaN for missing entries, or an error for values that the method does not
// accept.
func (b *Base) Load(samples Images) ([]float32, error) {
	if d, ok := samples.(interface{ OnDisk() bool }); ok && d.OnDisk() {
		return nil, &data.Error{Problem: "the samples do not fit into the memory of the data set, and the method needs all of them at once",
			Hint: "nmf and kmeans with batch > 0, dictionary, and networks read them in parts; or want a larger memory in the dataset table"}
	}
	x := load(samples)
	return x, b.accepts(x)
}

// rows returns all samples as rows, or an error for values that the method does not accept. The zeros of a sparse matrix are not held.
func (b *Base) rows(samples Images) (fit.Rows, error) {
	s := sparseOf(samples)
	if s == nil {
		x, err := b.Load(samples)
		return fit.Dense(x, b.pixels), err
	}
	return fit.Read(s.n, s.p, s.rows), s.accepted(b)
}

// Random returns a stream of random numbers that depends on the seed of the fit and on the name.
func (b *Base) Random(name string) *rand.Rand { return random.Stream(b.seed, name, 0) }

// Parameters returns the atoms (units x values) and the bias (values, or nil), which Improve may change in place. The atoms are
// nil before a fit.
func (b *Base) Parameters() (atoms, bias []float32) { return b.atoms, b.bias }

// SetParameters replaces the atoms and the bias, without a copy.
func (b *Base) SetParameters(atoms, bias []float32) { b.atoms, b.bias = atoms, bias }

func (b *Base) Shape() []int { return slices.Clone(b.shape) }
func (b *Base) Units() int   { return b.units }

func (b *Base) Atoms() *metrics.Atoms {
	return &metrics.Atoms{Shape: b.Shape(), Count: b.units, Values: slices.Clone(b.atoms), Bias: slices.Clone(b.bias)}
}

func (b *Base) WithAtoms(a *metrics.Atoms) (metrics.Coder, error) { return replaceAtoms(b.own, a) }
func (b *Base) TakesHoles() bool                                  { return b.fit.TakesHoles() }

func (b *Base) Encode(images []float32) ([]float32, error) {
	if b.atoms == nil {
		return nil, errUnfitted
	}
	if len(images)%b.pixels != 0 {
		return nil, fmt.Errorf("classical: got %d values, want whole samples of shape %v", len(images), b.shape)
	}
	codes, err := b.own.Infer(images)
	if want := len(images) / b.pixels * b.units; err == nil && len(codes) != want {
		err = fmt.Errorf("its Infer gives %d values, want %d", len(codes), want)
	}
	return codes, b.wrap(err)
}

func (b *Base) Decode(codes []float32) ([]float32, error) {
	if b.atoms == nil {
		return nil, errUnfitted
	}
	return decode(codes, b.atoms, b.bias, b.units, b.pixels)
}

// Codes implements [Model]: Encode returns the same codes.
func (b *Base) Codes() []float32 { return nil }

func (b *Base) Begin(ctx context.Context, images Images) error {
	images = holed(images)
	var err error
	switch {
	case images.Pixels() != b.pixels:
		err = fmt.Errorf("samples: got %d pixels each, want %d as in the model", images.Pixels(), b.pixels)
	case images.Len() == 0:
		err = errors.New("there are no samples to fit")
	default:
		err = b.fits(images.Len())
	}
	if err == nil {
		err = b.own.Start(images)
	}
	if err == nil && (b.atoms != nil && len(b.atoms) != b.units*b.pixels || b.bias != nil && len(b.bias) != b.pixels) {
		err = fmt.Errorf("its Start gives %d values of atoms and %d of a bias, want %d and %d or none", len(b.atoms), len(b.bias), b.units*b.pixels, b.pixels)
	}
	if err != nil {
		return b.wrap(err)
	}
	return ctx.Err()
}

func (b *Base) Step(ctx context.Context) (Progress, error) {
	if err := ctx.Err(); err != nil {
		return Progress{}, err
	}
	objective, err := b.own.Improve(ctx)
	if err == nil && !finite(objective) {
		err = fmt.Errorf("iteration %d: %w", b.iteration+1, ErrDiverged)
	}
	if err != nil {
		return Progress{}, b.wrap(err)
	}
	fallen := b.objective - objective
	if b.fit.Rises {
		fallen = math.Abs(fallen)
	}
	b.iteration++
	b.done = b.iteration >= b.fit.Iterations || fallen <= b.fit.Tolerance*b.objective
	b.objective = objective
	return Progress{b.iteration, b.objective, b.done}, nil
}

func (b *Base) Done() bool { return b.done }

func (b *Base) State() State {
	k := &Kept{state: State{map[string]Tensor{}, map[string]float64{}}}
	b.own.Keep(k)
	return k.state
}

func (b *Base) Restore(s State) error {
	k := &Kept{state: s, Restores: true}
	b.own.Keep(k)
	return b.wrap(errors.Join(k.errs...))
}

// accepts returns an error for images that the method does not accept.
func (b *Base) accepts(x []float32) error {
	return acceptValues(x, b.pixels, b.fit.Signed, b.fit.TakesHoles())
}

func (b *Base) atom(j int) []float32 { return b.atoms[j*b.pixels : (j+1)*b.pixels] }

// Keep implements [Algorithm] for the progress, the atoms and the bias.
func (b *Base) Keep(k *Kept) {
	b.keepProgress(k)
	b.keepAtoms(k)
}

func (b *Base) keepProgress(k *Kept) {
	done := 0
	if b.done {
		done = 1
	}
	k.Count("iteration", &b.iteration)
	k.Number("objective", &b.objective)
	k.Count("done", &done)
	b.done = done != 0
}

func (b *Base) keepAtoms(k *Kept) {
	k.Tensor(atomsName, &b.atoms, b.units, b.pixels)
	if !k.Restores || k.has(biasName) {
		k.Tensor(biasName, &b.bias, b.pixels)
	}
}

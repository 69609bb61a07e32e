package gradcheck

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
	"tessera/internal/lists"
	"tessera/internal/random"
	"tessera/internal/volume"
	"tessera/layers"
	"tessera/losses"
)

// Seed is the seed of the initial values of all expressions of this package.
const Seed = 1

// scope implements [layers.Scope] for an expression.
type scope[T ops.Float] struct {
	builder    *Builder[T]
	training   bool
	parameters map[string]*Leaf[T]
	values     map[string]*gorgonia.Node
}

// noise adds a fixed leaf, "noise.1", "noise.2", ..., with values of the sampler.
func (b *Builder[T]) noise(s ops.Sampler, shape ...int) *gorgonia.Node {
	b.noises++
	name := fmt.Sprintf("noise.%d", b.noises)
	values := make([]float32, volume.Of(shape))
	s.Sample(values, random.Stream(Seed, name, 0))
	l := b.leaf(name, shape, convert[T](values), true)
	l.Sampler, l.Batch = s, true
	return l.Node
}

func (s *scope[T]) Parameter(name string) *gorgonia.Node {
	l, ok := s.parameters[name]
	if !ok {
		panic(fmt.Sprintf("the layer uses the parameter %q, which it does not declare", name))
	}
	l.Used = true
	return l.Node
}

func (s *scope[T]) Update(name string, value *gorgonia.Node) {
	n := s.Parameter(name)
	if !s.parameters[name].Fixed {
		panic(fmt.Sprintf("the layer updates the parameter %q, which the optimizer updates; declare it with State", name))
	}
	if !value.Shape().Eq(n.Shape()) {
		panic(fmt.Sprintf("the layer assigns shape %v to the parameter %q of shape %v", value.Shape(), name, n.Shape()))
	}
	s.builder.updates[name] = value
}

func (s *scope[T]) Publish(_ string, value *gorgonia.Node) {
	s.builder.published = append(s.builder.published, value)
}

func (s *scope[T]) Value(name string) *gorgonia.Node {
	n, ok := s.values[name]
	if !ok {
		panic(fmt.Sprintf("the layer reads the value %q, which it does not list", name))
	}
	return n
}

func (s *scope[T]) Noise(sampler ops.Sampler, shape ...int) *gorgonia.Node {
	return s.builder.noise(sampler, shape...)
}

func (s *scope[T]) Training() bool {
	s.builder.asked = true
	return s.training
}

// Teacher implements [layers.Scope]. There is no teacher.
func (s *scope[T]) Teacher() bool { return false }

// Frozen implements [layers.Scope]. No parameter is frozen.
func (s *scope[T]) Frozen(...string) bool { return false }

// Place implements [layers.Scope]: the sequences are whole.
func (s *scope[T]) Place() *gorgonia.Node { return nil }

func (s *scope[T]) Past(int) (*gorgonia.Node, func(*gorgonia.Node)) { return nil, nil }

// Input is the name of the leaf with the inputs of a layer. The name of a parameter has no space.
const Input = "the input"

// Layer returns the output of l for inputs x of shape (batch, in...). Its leaves are [Input], "value.NAME" for each value that
// the layer reads by name, the parameters by name with their initial values, and the noise. State is fixed.
func Layer[T ops.Float](l layers.Layer, x []T, batch int, in []int, training bool) Expression[T] {
	return func(b *Builder[T]) (*gorgonia.Node, error) {
		s := &scope[T]{builder: b, training: training, parameters: map[string]*Leaf[T]{}, values: map[string]*gorgonia.Node{}}
		_, indexing := l.(layers.Indexing)
		var estimates []string
		if e, ok := l.(layers.Estimated); ok {
			estimates = e.Estimates()
		}
		input := b.leaf(Input, append([]int{batch}, in...), x, indexing)
		input.Estimated = slices.Contains(estimates, layers.EstimatedInput)
		for _, r := range layers.Readings(l) {
			name := "value." + r.Name
			leaf := b.leaf(name, append([]int{batch}, r.Shape...), Values[T](batch*volume.Of(r.Shape), layers.Everything, random.Stream(Seed, name, 0)), r.Fixed)
			leaf.Batch = true
			s.values[r.Name] = leaf.Node
		}
		for _, p := range l.Parameters(in) {
			w := make([]float32, volume.Of(p.Shape))
			p.Fill(w, random.Stream(Seed, p.Name, 0))
			leaf := b.leaf(p.Name, p.Shape, convert[T](w), p.State)
			leaf.Parameter = true
			leaf.Estimated = slices.Contains(estimates, p.Name)
			s.parameters[p.Name] = leaf
		}
		return l.Apply(s, input.Node)
	}
}

// Scalar returns the sum of the elements of e's value and of the values that its layer publishes, weighted by fixed draws from
// N(0,1). The gradient of the sum involves all derivatives of these values.
func Scalar[T ops.Float](e Expression[T]) Expression[T] {
	return func(b *Builder[T]) (*gorgonia.Node, error) {
		y, err := e(b)
		if err != nil {
			return nil, err
		}
		var c ops.Chain
		sum := weighted(&c, b, "the scalar", y)
		for i, v := range b.published {
			sum = c.Add(sum, weighted(&c, b, fmt.Sprintf("scalar %d", i+1), v))
		}
		return sum, c.Err()
	}
}

// weighted returns the sum of the elements of y, weighted by the named leaf.
func weighted[T ops.Float](c *ops.Chain, b *Builder[T], name string, y *gorgonia.Node) *gorgonia.Node {
	values := make([]T, y.Shape().TotalSize())
	r := random.Stream(Seed, name, 0)
	for i := range values {
		values[i] = T(r.NormFloat64())
	}
	return c.Sum(c.Mul(y, b.Leaf(name, y.Shape().Clone(), values, true)))
}

// SquaredGradient returns the sum of [Scalar] of e and the squared norm of its gradient with respect to the first leaf: its
// gradients contain second derivatives of e.
func SquaredGradient[T ops.Float](e Expression[T]) Expression[T] {
	return func(b *Builder[T]) (*gorgonia.Node, error) {
		y, err := Scalar(e)(b)
		if err != nil {
			return nil, err
		}
		var c ops.Chain
		return c.Add(y, c.Sum(c.Square(c.Gradient(y, b.Node(0))))), c.Err()
	}
}

// Values draws n values from the interval, limited to [-1, 1]. Their distance from every multiple of 0.1 is at least 0.02,
// because kinks are at these multiples.
func Values[T ops.Float](n int, within layers.Interval, r *rand.Rand) []T {
	low, high := max(within.Low, -1), min(within.High, 1)
	values := make([]T, n)
	for i := range values {
		cell := low + 0.1*float64(r.IntN(max(1, int((high-low)*10+0.5))))
		values[i] = T(cell + 0.02 + 0.06*r.Float64())
	}
	return values
}

func convert[T ops.Float](values []float32) []T {
	return lists.Map(values, func(v float32) T { return T(v) })
}

// Loss returns the value of l on x of shape (rows, columns), the leaf "x": the value that `on` names, or the only matching
// parameter. Other inputs of the term are leaves too: "target", the target images, of the shape of x, and "labels", both
// fixed; further values, "value.NAME"; the teacher's value, "teacher", fixed; and "atoms" for a term on the atoms, as many as
// an image has pixels. For a term that reads views, the first half of the rows belongs to the first view. For a term on a
// Jacobian, x contains images, and their codes are the sigmoids of x times the leaf "weight".
func Loss[T ops.Float](l losses.Loss, x, target []T, rows, columns int) Expression[T] {
	return LossOf(l, x, target, rows, []int{columns}, nil)
}

// LossOf is like [Loss], for x of the shape (rows, on...) and targets of any size. published contains the shapes of published
// values that differ from on.
func LossOf[T ops.Float](l losses.Loss, x, target []T, rows int, on []int, published map[string][]int) Expression[T] {
	return func(b *Builder[T]) (*gorgonia.Node, error) {
		return losses.Build(l, l.On(), &values[T]{builder: b, reads: l.Reads(), learned: losses.LearnedBy(l), x: x, target: target, rows: rows, columns: volume.Of(on), on: on,
			published: published, leaves: map[string]*gorgonia.Node{}})
	}
}

type values[T ops.Float] struct {
	builder       *Builder[T]
	reads         losses.Reads
	learned       []losses.Learned
	x, target     []T
	rows, columns int
	on            []int
	published     map[string][]int
	leaves        map[string]*gorgonia.Node
	encoding      *losses.Encoding
}

// leaf returns the named leaf, with values of a shape for every image. It adds the leaf on first use.
func (v *values[T]) leaf(name string, of []T, shape []int, fixed bool) *gorgonia.Node {
	if v.leaves[name] == nil {
		l := v.builder.leaf(name, append([]int{v.rows}, shape...), of, fixed)
		l.Batch = v.reads.Per != losses.Parameter
		v.leaves[name] = l.Node
	}
	return v.leaves[name]
}

func (v *values[T]) own() *gorgonia.Node { return v.leaf("x", v.x, v.on, false) }

// drawn returns the named leaf, with values in the domain of the loss.
func (v *values[T]) drawn(name string, shape []int, fixed bool) *gorgonia.Node {
	within := layers.Everything
	if v.reads.Unit {
		within = layers.Interval{Low: 0, High: 1}
	}
	return v.leaf(name, Values[T](v.rows*volume.Of(shape), within, random.Stream(Seed, name, 0)), shape, fixed)
}

func (v *values[T]) On() (*gorgonia.Node, error) {
	if !v.reads.Jacobian {
		return v.own(), nil
	}
	e, err := v.Encoding()
	if err != nil {
		return nil, err
	}
	return e.Code, nil
}

func (v *values[T]) Value(name string) (*gorgonia.Node, error) {
	return v.drawn("value."+name, v.on, slices.Contains(v.reads.Held, name)), nil
}

// Published implements [losses.Values]. The first declared value is the leaf "x", if it has its shape.
func (v *values[T]) Published(name string) (*gorgonia.Node, error) {
	shape, other := v.published[name]
	if !other {
		shape = v.on
	}
	if name == v.reads.Published[0] && !v.reads.On && !other {
		return v.own(), nil
	}
	return v.drawn("published."+name, shape, false), nil
}

func (v *values[T]) Teacher() (*gorgonia.Node, error) { return v.drawn("teacher", v.on, true), nil }

func (v *values[T]) Clean() (*gorgonia.Node, error) { return v.drawn("clean", v.on, false), nil }

func (v *values[T]) images() *gorgonia.Node {
	shape := v.on
	if n := len(v.target) / v.rows; n != v.columns {
		shape = []int{n}
	}
	return v.leaf("target", v.target, shape, true)
}

// Against implements [losses.Values]. The class of every third image is unknown.
func (v *values[T]) Against() (*gorgonia.Node, error) {
	if !v.reads.Classes {
		return v.images(), nil
	}
	labels, r := make([]T, v.rows*v.columns), random.Stream(Seed, "labels", 0)
	for i := range v.rows {
		if class := r.IntN(v.columns); i%3 != 1 {
			labels[i*v.columns+class] = 1
		}
	}
	return v.leaf("labels", labels, v.on, true), nil
}

// Counts implements [losses.Values]: there is neither a mask nor a weight.
func (v *values[T]) Counts() (losses.Counts, error) { return losses.Counts{}, nil }

// Shape implements [losses.Values]: images of two rows, or of one.
func (v *values[T]) Shape() ([]int, error) {
	if v.columns%2 == 0 {
		return []int{2, v.columns / 2}, nil
	}
	return []int{1, v.columns}, nil
}

func (v *values[T]) Weights() ([]*gorgonia.Node, error) { return []*gorgonia.Node{v.own()}, nil }

// Learned implements [losses.Values].
func (v *values[T]) Learned(name string) (*gorgonia.Node, error) {
	for _, l := range v.learned {
		if l.Name == name {
			return v.builder.Leaf("learned."+name, []int{1}, []T{T(l.Initial)}, false), nil
		}
	}
	return nil, fmt.Errorf("the term has no parameter %q", name)
}

// Encoding implements [losses.Values] by a dense layer with a sigmoid that makes codes of as many units as an image has
// pixels.
func (v *values[T]) Encoding() (*losses.Encoding, error) {
	if v.encoding != nil {
		return v.encoding, nil
	}
	n := v.columns
	weight := v.builder.Leaf("weight", []int{n, n}, Values[T](n*n, layers.Everything, random.Stream(Seed, "weight", 0)), false)
	var c ops.Chain
	code := c.Do("sigmoid", func() (*gorgonia.Node, error) { return gorgonia.Sigmoid(c.MatMul(v.own(), weight)) })
	v.encoding = &losses.Encoding{Images: v.own(), Code: code, Noise: v.builder.noise}
	return v.encoding, c.Err()
}

// Dictionary implements [losses.Values] by a linear decoder without a bias whose atoms are images of two rows, or of one.
func (v *values[T]) Dictionary() (*losses.Dictionary, error) {
	pixels := v.columns
	shape, err := v.Shape()
	if err != nil {
		return nil, err
	}
	atoms := Values[T](pixels*pixels, layers.Everything, random.Stream(Seed, "atoms", 0))
	return &losses.Dictionary{Images: v.images(), Shape: shape, Code: v.own(),
		Atoms: v.builder.Leaf("atoms", []int{pixels, pixels}, atoms, slices.Contains(v.reads.Held, losses.Atoms)),
		Decode: func(atoms *gorgonia.Node) (*gorgonia.Node, error) {
			var c ops.Chain
			return c.MatMul(v.own(), atoms), c.Err()
		},
	}, err
}

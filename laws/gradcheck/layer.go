package gradcheck

import (
	"fmt"
	"math/rand/v2"

	"gorgonia.org/gorgonia"
	"tessera/internal/random"
	"tessera/internal/volume"
	"tessera/layers"
	"tessera/ops"
)

// Seed is the seed of the initial values of all expressions of this package.
const Seed = 1

// scope implements [layers.Scope] for an expression.
type scope[T ops.Float] struct {
	builder    *Builder[T]
	training   bool
	parameters map[string]*Leaf[T]
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

// Parameter implements [layers.Scope].
func (s *scope[T]) Parameter(name string) *gorgonia.Node {
	l, ok := s.parameters[name]
	if !ok {
		panic(fmt.Sprintf("the layer uses the parameter %q, which it does not declare", name))
	}
	l.Used = true
	return l.Node
}

// Update implements [layers.Scope].
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

// Noise implements [layers.Scope].
func (s *scope[T]) Noise(sampler ops.Sampler, shape ...int) *gorgonia.Node {
	return s.builder.noise(sampler, shape...)
}

// Training implements [layers.Scope].
func (s *scope[T]) Training() bool {
	s.builder.asked = true
	return s.training
}

// Frozen implements [layers.Scope]: nothing is.
func (s *scope[T]) Frozen(...string) bool { return false }

// Layer is the output of l for inputs x of shape (batch, in...). Its leaves are "input", the parameters by name with their
// initial values, and the noise. State is fixed.
func Layer[T ops.Float](l layers.Layer, x []T, batch int, in []int, training bool) Expression[T] {
	return func(b *Builder[T]) (*gorgonia.Node, error) {
		s := &scope[T]{builder: b, training: training, parameters: map[string]*Leaf[T]{}}
		input := b.Leaf("input", append([]int{batch}, in...), x, false)
		for _, p := range l.Parameters(in) {
			w := make([]float32, volume.Of(p.Shape))
			p.Fill(w, random.Stream(Seed, p.Name, 0))
			leaf := b.leaf(p.Name, p.Shape, convert[T](w), p.State)
			leaf.Parameter = true
			s.parameters[p.Name] = leaf
		}
		return l.Apply(s, input)
	}
}

// Scalar is the sum of the elements of e's value, weighted by fixed draws from N(0,1): its gradient involves all
// derivatives of the value.
func Scalar[T ops.Float](e Expression[T]) Expression[T] {
	return func(b *Builder[T]) (*gorgonia.Node, error) {
		y, err := e(b)
		if err != nil {
			return nil, err
		}
		values := make([]T, y.Shape().TotalSize())
		r := random.Stream(Seed, "scalar", 0)
		for i := range values {
			values[i] = T(r.NormFloat64())
		}
		var c ops.Chain
		return c.Sum(c.Mul(y, b.Leaf("scalar", y.Shape().Clone(), values, true))), c.Err()
	}
}

// SquaredGradient is the sum of [Scalar] of e and the squared norm of its gradient with respect to the first leaf: its
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

// Values draws n values of the interval, limited to [-1, 1], with a distance of at least 0.02 from every multiple of 0.1,
// where the kinks are.
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
	converted := make([]T, len(values))
	for i, v := range values {
		converted[i] = T(v)
	}
	return converted
}

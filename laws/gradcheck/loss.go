package gradcheck

import (
	"gorgonia.org/gorgonia"
	"tessera/internal/random"
	"tessera/layers"
	"tessera/losses"
	"tessera/ops"
)

// Loss is the value of l on x of shape (rows, columns), the leaf "x": the value that `on` names, or the only matching
// parameter. Other inputs of the term are leaves too: "target", the target images, of the shape of x, and "labels", both
// fixed; further values, "value.NAME"; the value of the teacher, "teacher", fixed; for a term on the atoms "atoms", as many
// as an image has pixels. Of a term that reads views the first half of the rows are those of the first view. For a term on
// a Jacobian x holds images, whose codes are the sigmoids of x times the leaf "weight".
func Loss[T ops.Float](l losses.Loss, x, target []T, rows, columns int) Expression[T] {
	return func(b *Builder[T]) (*gorgonia.Node, error) {
		v := &values[T]{builder: b, reads: l.Reads(), target: target, rows: rows, columns: columns, leaves: map[string]*gorgonia.Node{}}
		v.x = v.leaf("x", x, false)
		return losses.Build(l, l.On(), v)
	}
}

// values implements [losses.Values].
type values[T ops.Float] struct {
	builder       *Builder[T]
	reads         losses.Reads
	x             *gorgonia.Node
	target        []T
	rows, columns int
	leaves        map[string]*gorgonia.Node
	encoding      *losses.Encoding
}

// leaf returns the leaf of that name with a row for every image; it adds the leaf at its first use.
func (v *values[T]) leaf(name string, of []T, fixed bool) *gorgonia.Node {
	if v.leaves[name] == nil {
		l := v.builder.leaf(name, []int{v.rows, v.columns}, of, fixed)
		l.Batch = v.reads.Per != losses.Parameter
		v.leaves[name] = l.Node
	}
	return v.leaves[name]
}

// drawn returns the leaf of that name with values of the domain of the loss.
func (v *values[T]) drawn(name string, fixed bool) *gorgonia.Node {
	within := layers.Everything
	if v.reads.Unit {
		within = layers.Interval{Low: 0, High: 1}
	}
	return v.leaf(name, Values[T](v.rows*v.columns, within, random.Stream(Seed, name, 0)), fixed)
}

// On implements [losses.Values].
func (v *values[T]) On() (*gorgonia.Node, error) {
	if !v.reads.Jacobian {
		return v.x, nil
	}
	e, err := v.Encoding()
	if err != nil {
		return nil, err
	}
	return e.Code, nil
}

// Value implements [losses.Values].
func (v *values[T]) Value(name string) (*gorgonia.Node, error) {
	return v.drawn("value."+name, false), nil
}

// Teacher implements [losses.Values].
func (v *values[T]) Teacher() (*gorgonia.Node, error) { return v.drawn("teacher", true), nil }

// Images implements [losses.Values].
func (v *values[T]) Images() (*gorgonia.Node, error) { return v.leaf("target", v.target, true), nil }

// Shape implements [losses.Values]: images of two rows, or of one.
func (v *values[T]) Shape() ([]int, error) {
	if v.columns%2 == 0 {
		return []int{2, v.columns / 2}, nil
	}
	return []int{1, v.columns}, nil
}

// Labels implements [losses.Values]. The label of every third image is unknown.
func (v *values[T]) Labels() (*gorgonia.Node, error) {
	labels, r := make([]T, v.rows*v.columns), random.Stream(Seed, "labels", 0)
	for i := range v.rows {
		if class := r.IntN(v.columns); i%3 != 1 {
			labels[i*v.columns+class] = 1
		}
	}
	return v.leaf("labels", labels, true), nil
}

// Weights implements [losses.Values].
func (v *values[T]) Weights() ([]*gorgonia.Node, error) { return []*gorgonia.Node{v.x}, nil }

// Encoding implements [losses.Values] by a dense layer with a sigmoid that makes codes of as many units as an image has
// pixels.
func (v *values[T]) Encoding() (*losses.Encoding, error) {
	if v.encoding != nil {
		return v.encoding, nil
	}
	n := v.columns
	weight := v.builder.Leaf("weight", []int{n, n}, Values[T](n*n, layers.Everything, random.Stream(Seed, "weight", 0)), false)
	var c ops.Chain
	code := c.Do("sigmoid", func() (*gorgonia.Node, error) { return gorgonia.Sigmoid(c.MatMul(v.x, weight)) })
	v.encoding = &losses.Encoding{Images: v.x, Code: code, Noise: v.builder.noise}
	return v.encoding, c.Err()
}

// Dictionary implements [losses.Values] by a linear decoder without a bias whose atoms are images of two rows, or of one.
func (v *values[T]) Dictionary() (*losses.Dictionary, error) {
	pixels := v.columns
	shape, err := v.Shape()
	if err != nil {
		return nil, err
	}
	images, err := v.Images()
	atoms := Values[T](pixels*pixels, layers.Everything, random.Stream(Seed, "atoms", 0))
	return &losses.Dictionary{Images: images, Shape: shape, Code: v.x,
		Atoms: v.builder.Leaf("atoms", []int{pixels, pixels}, atoms, false),
		Decode: func(atoms *gorgonia.Node) (*gorgonia.Node, error) {
			var c ops.Chain
			return c.MatMul(v.x, atoms), c.Err()
		},
	}, err
}

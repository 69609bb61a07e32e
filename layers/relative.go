package layers

import (
	"fmt"
	"math"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// Relative makes the output of a block of layers proportional to the scale of its input: with the root mean square s of the
// values of a sample,
//
//	y = s block(x / s),  s = sqrt(mean of x² + 1e-20)
//
// The block sees samples of root mean square 1, whatever the unit of the data: its thresholds and biases are fractions of s.
// If the input is multiplied by c > 0, so is the output: a brighter image has a proportionally larger code. The layers of the
// block are declared like those of an encoder. The names of their parameters start with the layer's index in the block:
// "0.weight" is the weight of its first layer, the name of this weight for a [Tied] decoder is "encoder.0.0.weight". An
// all-zero sample gives 0.
type Relative struct {
	Layers []Layer `toml:"layers" doc:"layers of the block, in order" required:"true"`
}

func init() {
	Registry.Register("relative", "a block of layers that follows the scale of each sample, y = s block(x / s), s its root mean square",
		func() Layer { return &Relative{} })
}

// Check returns an error for an empty block.
func (r *Relative) Check() error { return notEmpty(r.Layers) }

func (r *Relative) Inner() []Layer { return r.Layers }

func (r *Relative) OutputShape(in []int) ([]int, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	shapes, err := StackShapes(r.Layers, in)
	if err != nil {
		return nil, err
	}
	return shapes[len(r.Layers)], nil
}

func (r *Relative) Parameters(in []int) []Parameter { return StackParameters(r.Layers, in) }
func (r *Relative) Publishes(in []int) []Value      { return StackPublishes(r.Layers, in) }

func (r *Relative) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	flat := c.Flatten(x)
	square := c.Shift(c.Mean(c.Square(flat), 1), relativeTiny)
	// One number for each sample multiplies a row of the transpose.
	each := func(x, by *gorgonia.Node) *gorgonia.Node {
		transposed := func(x *gorgonia.Node) *gorgonia.Node {
			return c.Do("transpose", func() (*gorgonia.Node, error) { return ops.Transpose(x) })
		}
		return transposed(c.MulRow(transposed(x), by))
	}
	unit := c.Reshape(each(flat, c.InvSqrt(square)), x.Shape()...)
	if err := c.Err(); err != nil {
		return nil, fmt.Errorf("relative: %w", err)
	}
	y, err := ApplyStack("relative", r.Layers, s, unit)
	if err != nil {
		return nil, err
	}
	shape := y.Shape().Clone()
	return c.Reshape(each(c.Flatten(y), c.Sqrt(square)), shape...), c.Err()
}

// relativeTiny keeps the scale of an all-zero sample positive. It is far below any relevant mean square, but large enough
// that its power -3/2, which occurs in derivatives, is finite in float32.
const relativeTiny = 1e-20

// OutputRange implements [Ranged]: all positive multiples of the block's outputs for samples of root mean square 1.
func (r *Relative) OutputRange(Interval) Interval {
	return multiples(StackRange(r.Layers, Everything))
}

// multiples returns the smallest interval that contains all positive multiples of the values of i.
func multiples(i Interval) Interval {
	if i.Low < 0 {
		i.Low = math.Inf(-1)
	} else {
		i.Low = 0
	}
	if i.High > 0 {
		i.High = math.Inf(1)
	} else {
		i.High = 0
	}
	return i
}

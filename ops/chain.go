// Package ops builds the expressions of layers and losses. Most parts need only a [Chain], which writes a formula as nested
// calls and collects the first error:
//
//	var c ops.Chain
//	return c.Mean(c.Square(c.Sub(output, target))), c.Err()
//
// The functions add single nodes that Gorgonia lacks. A new op is a [Blockwise] (independent blocks of elements), a [Unitwise]
// (independent parts of the output) or, with [Each], a function of single images: its kernel and its derivative.
//
// The types whose names end in Op are specs: exporters recognise an op by the type of its spec.
package ops

import (
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Chain collects the first error of a sequence of graph-building calls, so that a formula reads as one:
//
//	var c ops.Chain
//	return c.Mean(c.Square(c.Sub(output, target))), c.Err()
//
// After an error every call returns nil and does nothing. The zero value is ready for use.
type Chain struct{ err error }

// Err returns the first error met.
func (c *Chain) Err() error { return c.err }

// Do runs f unless an earlier call failed; name describes f in the error.
func (c *Chain) Do(name string, f func() (*gorgonia.Node, error)) *gorgonia.Node {
	if c.err != nil {
		return nil
	}
	n, err := f()
	if err != nil {
		c.err = fmt.Errorf("%s: %w", name, err)
		return nil
	}
	return n
}

type unary = func(*gorgonia.Node) (*gorgonia.Node, error)
type binary = func(a, b *gorgonia.Node) (*gorgonia.Node, error)

func (c *Chain) unary(name string, f unary, x *gorgonia.Node) *gorgonia.Node {
	return c.Do(name, func() (*gorgonia.Node, error) { return f(x) })
}

func (c *Chain) binary(name string, f binary, a, b *gorgonia.Node) *gorgonia.Node {
	return c.Do(name, func() (*gorgonia.Node, error) { return f(a, b) })
}

// Add returns a + b, for equal shapes or a scalar and a tensor; so do Sub, Mul and Div, element by element.
func (c *Chain) Add(a, b *gorgonia.Node) *gorgonia.Node { return c.binary("add", gorgonia.Add, a, b) }

// Sub returns a - b.
func (c *Chain) Sub(a, b *gorgonia.Node) *gorgonia.Node { return c.binary("sub", gorgonia.Sub, a, b) }

// Mul returns a * b, element by element.
func (c *Chain) Mul(a, b *gorgonia.Node) *gorgonia.Node {
	return c.binary("mul", gorgonia.HadamardProd, a, b)
}

// Div returns a / b, element by element.
func (c *Chain) Div(a, b *gorgonia.Node) *gorgonia.Node {
	return c.binary("div", gorgonia.HadamardDiv, a, b)
}

// MatMul returns the matrix product of a (n, k) and b (k, m).
func (c *Chain) MatMul(a, b *gorgonia.Node) *gorgonia.Node {
	return c.binary("matmul", gorgonia.Mul, a, b)
}

// AddRow returns x (n, m) with row (m) added to each of its rows.
func (c *Chain) AddRow(x, row *gorgonia.Node) *gorgonia.Node {
	return c.Do("add row", func() (*gorgonia.Node, error) { return gorgonia.BroadcastAdd(x, row, nil, []byte{0}) })
}

// SubRow returns x (n, m) with row (m) subtracted from each of its rows.
func (c *Chain) SubRow(x, row *gorgonia.Node) *gorgonia.Node {
	return c.Do("sub row", func() (*gorgonia.Node, error) { return gorgonia.BroadcastSub(x, row, nil, []byte{0}) })
}

// MulRow returns x (n, m) with each of its rows multiplied by row (m), element by element.
func (c *Chain) MulRow(x, row *gorgonia.Node) *gorgonia.Node {
	return c.Do("mul row", func() (*gorgonia.Node, error) { return gorgonia.BroadcastHadamardProd(x, row, nil, []byte{0}) })
}

// Tile is [Tile]; once adds no node.
func (c *Chain) Tile(x *gorgonia.Node, times int) *gorgonia.Node {
	return c.Do("tile", func() (*gorgonia.Node, error) {
		if times == 1 {
			return x, nil
		}
		return Tile(x, times)
	})
}

// Fold is [Fold]; once adds no node.
func (c *Chain) Fold(x *gorgonia.Node, times int) *gorgonia.Node {
	return c.Do("fold", func() (*gorgonia.Node, error) {
		if times == 1 {
			return x, nil
		}
		return Fold(x, times)
	})
}

// Neg returns -x.
func (c *Chain) Neg(x *gorgonia.Node) *gorgonia.Node { return c.unary("neg", gorgonia.Neg, x) }

// Abs returns |x|. The derivative at 0 is 0 for tensors, 1 for scalars: Gorgonia's signs differ.
func (c *Chain) Abs(x *gorgonia.Node) *gorgonia.Node { return c.unary("abs", gorgonia.Abs, x) }

// Square returns x * x.
func (c *Chain) Square(x *gorgonia.Node) *gorgonia.Node { return c.unary("square", gorgonia.Square, x) }

// Sqrt returns the square root of x. Its derivative at 0 is infinite: shift x where it can be 0.
func (c *Chain) Sqrt(x *gorgonia.Node) *gorgonia.Node { return c.unary("sqrt", gorgonia.Sqrt, x) }

// InvSqrt returns 1 / sqrt(x), x > 0. The derivative of Gorgonia's inverse square root is wrong.
func (c *Chain) InvSqrt(x *gorgonia.Node) *gorgonia.Node {
	return c.Do("inverse sqrt", func() (*gorgonia.Node, error) { return gorgonia.HadamardDiv(Scalar(x, 1), c.Sqrt(x)) })
}

// Log returns the natural logarithm of x. Write Log1p instead of the logarithm of a sum with 1: Gorgonia would rewrite
// it so and remove the sum from the graph, even where something else needs it.
func (c *Chain) Log(x *gorgonia.Node) *gorgonia.Node { return c.unary("log", gorgonia.Log, x) }

// Log1p returns log(1+x).
func (c *Chain) Log1p(x *gorgonia.Node) *gorgonia.Node { return c.unary("log1p", gorgonia.Log1p, x) }

// Lt returns 1 where x < v and 0 elsewhere; its derivative is 0.
func (c *Chain) Lt(x *gorgonia.Node, v float64) *gorgonia.Node {
	return c.Do("lt", func() (*gorgonia.Node, error) { return gorgonia.Lt(x, Scalar(x, v), true) })
}

// Ramp is [Ramp].
func (c *Chain) Ramp(x *gorgonia.Node, above, below float64) *gorgonia.Node {
	return c.Do("ramp", func() (*gorgonia.Node, error) { return Ramp(x, above, below) })
}

// Clip is [Clip].
func (c *Chain) Clip(x *gorgonia.Node, low, high float64) *gorgonia.Node {
	return c.Do("clip", func() (*gorgonia.Node, error) { return Clip(x, low, high) })
}

// Scale returns v * x; a factor of 1 adds no node.
func (c *Chain) Scale(x *gorgonia.Node, v float64) *gorgonia.Node {
	return c.Do("scale", func() (*gorgonia.Node, error) {
		if v == 1 {
			return x, nil
		}
		return gorgonia.HadamardProd(Scalar(x, v), x)
	})
}

// Shift returns x + v.
func (c *Chain) Shift(x *gorgonia.Node, v float64) *gorgonia.Node {
	return c.Do("shift", func() (*gorgonia.Node, error) { return gorgonia.Add(x, Scalar(x, v)) })
}

// From returns v - x.
func (c *Chain) From(v float64, x *gorgonia.Node) *gorgonia.Node {
	return c.Do("from", func() (*gorgonia.Node, error) { return gorgonia.Sub(Scalar(x, v), x) })
}

// Sum adds over the axes and removes them; without axes over all, which gives a scalar. Axes are summed one after the
// other, the last first: Gorgonia sums sequentially, and a sequential sum of 100,000 float32 values loses three digits.
func (c *Chain) Sum(x *gorgonia.Node, axes ...int) *gorgonia.Node {
	return c.Do("sum", func() (n *gorgonia.Node, err error) {
		if len(axes) > 0 {
			return gorgonia.Sum(x, axes...)
		}
		for n = x; len(n.Shape()) > 0 && err == nil; {
			n, err = gorgonia.Sum(n, len(n.Shape())-1)
		}
		return n, err
	})
}

// Mean averages over the axes and removes them; without axes over all, which gives a scalar. Shapes are known when the
// graph is built, so the count is a constant.
func (c *Chain) Mean(x *gorgonia.Node, axes ...int) *gorgonia.Node {
	sum := c.Sum(x, axes...)
	if c.err != nil {
		return nil
	}
	n := x.Shape().TotalSize()
	if len(axes) > 0 {
		n = 1
		for _, a := range axes {
			n *= x.Shape()[a]
		}
	}
	return c.Scale(sum, 1/float64(n))
}

// Reshape is [Reshape]; the same shape adds no node.
func (c *Chain) Reshape(x *gorgonia.Node, shape ...int) *gorgonia.Node {
	return c.Do("reshape", func() (*gorgonia.Node, error) {
		if slices.Equal(x.Shape(), shape) { // to tensor.Shape.Eq a column is a vector
			return x, nil
		}
		return Reshape(x, shape...)
	})
}

// Flatten returns x as (batch, values): every axis but the first is joined.
func (c *Chain) Flatten(x *gorgonia.Node) *gorgonia.Node {
	if c.err != nil {
		return nil
	}
	shape := x.Shape()
	return c.Reshape(x, shape[0], tensor.Shape(shape[1:]).TotalSize())
}

// Scalar returns the constant v in the precision of like, the form that arithmetic with like needs
// (a float32 graph refuses float64 constants).
func Scalar(like *gorgonia.Node, v float64) *gorgonia.Node {
	if like.Dtype() == tensor.Float64 {
		return gorgonia.NewConstant(v)
	}
	return gorgonia.NewConstant(float32(v))
}

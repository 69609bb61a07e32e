package ops

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Softplus applies the function [Softplus].
func (c *Chain) Softplus(x *gorgonia.Node) *gorgonia.Node { return c.unary("softplus", Softplus, x) }

// Softmax applies the function [Softmax].
func (c *Chain) Softmax(x *gorgonia.Node) *gorgonia.Node { return c.unary("softmax", Softmax, x) }

// LogSoftmax applies the function [LogSoftmax].
func (c *Chain) LogSoftmax(x *gorgonia.Node) *gorgonia.Node {
	return c.unary("log-softmax", LogSoftmax, x)
}

// Transpose applies the function [Transpose].
func (c *Chain) Transpose(x *gorgonia.Node) *gorgonia.Node {
	return c.unary("transpose", Transpose, x)
}

// Gather applies the function [Gather].
func (c *Chain) Gather(table, indices *gorgonia.Node) *gorgonia.Node {
	return c.binary("gather", Gather, table, indices)
}

// OneHot applies the function [OneHot].
func (c *Chain) OneHot(indices *gorgonia.Node, n int) *gorgonia.Node {
	return c.Do("one-hot", func() (*gorgonia.Node, error) { return OneHot(indices, n) })
}

// Columns applies the function [Columns]. If the range covers all columns of x, it returns x itself.
func (c *Chain) Columns(x *gorgonia.Node, from, count int) *gorgonia.Node {
	return c.Do("columns", func() (*gorgonia.Node, error) {
		if len(x.Shape()) == 2 && from == 0 && count == x.Shape()[1] {
			return x, nil
		}
		return Columns(x, from, count)
	})
}

// Rows returns the slices from, ..., from+count-1 of x (n, ...) along its first axis: (count, ...). If the range covers
// all rows, it returns x itself.
func (c *Chain) Rows(x *gorgonia.Node, from, count int) *gorgonia.Node {
	if c.err != nil {
		return nil
	}
	shape := x.Shape()
	if len(shape) == 0 || from < 0 || count < 1 || from+count > shape[0] {
		c.err = fmt.Errorf("rows: got rows %d to %d of shape %v", from, from+count, shape)
		return nil
	}
	if count == shape[0] {
		return x
	}
	row := tensor.Shape(shape[1:]).TotalSize()
	out := append([]int{count}, shape[1:]...)
	return c.Reshape(c.Columns(c.Reshape(x, 1, shape[0]*row), from*row, count*row), out...)
}

// Join concatenates matrices with equal numbers of rows along their columns; see [Join].
func (c *Chain) Join(x *gorgonia.Node, more ...*gorgonia.Node) *gorgonia.Node {
	for _, y := range more {
		x = c.binary("join", Join, x, y)
	}
	return x
}

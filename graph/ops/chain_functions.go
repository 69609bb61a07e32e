package ops

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Softplus calls the function [Softplus] and collects its error.
func (c *Chain) Softplus(x *gorgonia.Node) *gorgonia.Node { return c.unary("softplus", Softplus, x) }

// Softmax calls the function [Softmax] and collects its error.
func (c *Chain) Softmax(x *gorgonia.Node) *gorgonia.Node { return c.unary("softmax", Softmax, x) }

// LogSoftmax calls the function [LogSoftmax] and collects its error.
func (c *Chain) LogSoftmax(x *gorgonia.Node) *gorgonia.Node {
	return c.unary("log-softmax", LogSoftmax, x)
}

// Transpose calls the function [Transpose] and collects its error.
func (c *Chain) Transpose(x *gorgonia.Node) *gorgonia.Node {
	return c.unary("transpose", Transpose, x)
}

// Gather calls the function [Gather] and collects its error.
func (c *Chain) Gather(table, indices *gorgonia.Node) *gorgonia.Node {
	return c.binary("gather", Gather, table, indices)
}

// OneHot calls the function [OneHot] and collects its error.
func (c *Chain) OneHot(indices *gorgonia.Node, n int) *gorgonia.Node {
	return c.Do("one-hot", func() (*gorgonia.Node, error) { return OneHot(indices, n) })
}

// Columns calls the function [Columns] and collects its error. If the range covers all columns of x, it returns x itself.
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

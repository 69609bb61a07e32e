package losses

import (
	"errors"
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/ops"
	"tessera/part"
)

// Contrastive makes two values of the same sample more alike than those of different samples. With the rows a_i of the value that `on`
// names and b_i of the value `with`, both normalised to length 1, and s_ij = a_i·b_j / temperature, it is
//
//	-1/2n sum over i of log softmax_j(s_ij) at j = i + log softmax_j(s_ji) at j = i
//
// Both values have equally many units: an encoder of images and one of text each end with a head. Source: Radford et al., Learning
// transferable visual models from natural language supervision (CLIP), 2021.
type Contrastive struct {
	With        string  `toml:"with" required:"true" doc:"the other value: code, a head or the output of a layer"`
	Temperature float64 `toml:"temperature" want:"> 0" doc:"scale of the cosines"`
}

func init() {
	Registry.Register("contrastive", "two values of a sample are more alike than those of different samples", func() Loss {
		return &Contrastive{With: Code, Temperature: 0.07}
	})
}

// On implements [Loss].
func (*Contrastive) On() string { return Code }

// Reads implements [Loss].
func (l *Contrastive) Reads() Reads { return Reads{Per: Batch, On: true, Values: []string{l.With}} }

// Check returns an error if no other value is named.
func (l *Contrastive) Check() error {
	if l.With == "" {
		return part.KeyErrorf("with", "got \"\", want the name of a value")
	}
	return nil
}

// Build implements [Loss].
func (l *Contrastive) Build(v Values) (*gorgonia.Node, error) {
	first, err := v.On()
	second, err2 := v.Value(l.With)
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	if a, b := first.Shape()[1], second.Shape()[1]; a != b {
		return nil, fmt.Errorf("compares %d units with the %d of %q, want equally many", a, b, l.With)
	}
	var c ops.Chain
	columns := func(x *gorgonia.Node) *gorgonia.Node { // of length 1, one for each sample
		return c.MulRow(transposed(&c, x), c.InvSqrt(c.Shift(c.Sum(c.Square(x), 1), tiny)))
	}
	similar := c.Scale(c.MatMul(transposed(&c, columns(first)), columns(second)), 1/l.Temperature)
	diagonal := func(x *gorgonia.Node) *gorgonia.Node { // the sum of the logarithms at j = i
		logs := c.Do("log softmax", func() (*gorgonia.Node, error) { return ops.LogSoftmax(x) })
		without := c.Do("diagonal", func() (*gorgonia.Node, error) { return ops.WithDiagonal(logs, 0) })
		return c.Sum(c.Sub(logs, without))
	}
	both := c.Add(diagonal(similar), diagonal(transposed(&c, similar)))
	return c.Scale(both, -0.5/float64(first.Shape()[0])), c.Err()
}

func transposed(c *ops.Chain, x *gorgonia.Node) *gorgonia.Node {
	return c.Do("transpose", func() (*gorgonia.Node, error) { return ops.Transpose(x) })
}

package losses

import (
	"errors"
	"fmt"
	"math"

	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
)

// Contrastive makes two values of the same sample more similar than values of different samples. Let a_i be row i of the
// value `on` and b_i row i of the value `with`, both normalised to length 1, and s_ij = a_i·b_j / temperature. The term is
//
//	-1/2n sum over i of log softmax_j(s_ij) at j = i + log softmax_j(s_ji) at j = i
//
// With learned = true the temperature is e^(-log_scale) with a parameter loss.NAME.log_scale, initially -log(temperature). The
// source keeps it at 0.01 or more: constraint = [{ kind = "box", on = "loss.*.log_scale", min = -10, max = 4.6 }].
//
// Both values must have the same number of units: for example the heads of an encoder of images and of an encoder of text.
// Source: Radford et al., Learning transferable visual models from natural language supervision (CLIP), 2021.
type Contrastive struct {
	With        string  `toml:"with" required:"true" doc:"the other value: code, a head or the output of a layer"`
	Temperature float64 `toml:"temperature" want:"> 0" doc:"divisor of the cosines"`
	Trained     bool    `toml:"learned" doc:"the temperature is a parameter, loss.NAME.log_scale; temperature is its initial value"`
}

func init() {
	Registry.Register("contrastive", "two values of a sample are more alike than those of different samples", func() Loss {
		return &Contrastive{With: Code, Temperature: 0.07}
	})
}

func (*Contrastive) On() string     { return Code }
func (l *Contrastive) Reads() Reads { return Reads{Per: Batch, On: true, Values: []string{l.With}} }

// logScale is the name of the learned parameter.
const logScale = "log_scale"

// Learned implements [Learner].
func (l *Contrastive) Learned() []Learned {
	if !l.Trained {
		return nil
	}
	return []Learned{{logScale, -math.Log(l.Temperature)}}
}

// Check returns an error if no other value is named.
func (l *Contrastive) Check() error {
	if l.With == "" {
		return part.KeyErrorf("with", "got \"\", want the name of a value")
	}
	return nil
}

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
		return c.MulRow(c.Transpose(x), c.InvSqrt(c.Shift(c.Sum(c.Square(x), 1), tiny)))
	}
	similar := c.MatMul(c.Transpose(columns(first)), columns(second))
	if l.Trained {
		scale := c.Exp(c.Do(logScale, func() (*gorgonia.Node, error) { return v.Learned(logScale) }))
		similar = c.MulRow(similar, c.Tile(scale, similar.Shape()[1]))
	} else {
		similar = c.Scale(similar, 1/l.Temperature)
	}
	diagonal := func(x *gorgonia.Node) *gorgonia.Node { // the sum of the logarithms at j = i
		logs := c.LogSoftmax(x)
		return c.Sum(c.Sub(logs, offDiagonal(&c, logs)))
	}
	both := c.Add(diagonal(similar), diagonal(c.Transpose(similar)))
	return c.Scale(both, -0.5/float64(first.Shape()[0])), c.Err()
}

package layers

import (
	"errors"

	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
)

// Sparsify sets the small values along the last axis of every input to 0: the floor(fraction n) smallest of n values (of equal
// values the last ones), or all values <= threshold. Gradients flow only to the remaining values. The state `active` is a
// switch: from 0.5 on the layer is on, below 0.5 its output is its input. It is 1, unless the hook `sparse_phase` turns the
// layer off outside of a phase of the training; a trained model keeps the last state. After a relu this is a threshold on the
// code.
//
// Source: dense-sparse-dense training of Han et al., DSD: Dense-Sparse-Dense Training for Deep Neural Networks, 2017, with
// activations in place of weights. Without phases and with a fraction the layer equals [TopK].
type Sparsify struct {
	Fraction  float64 `toml:"fraction" want:"in (0,1)" doc:"fraction of the values that is set to 0: the smallest"`
	Threshold float64 `toml:"threshold" want:"> 0" doc:"instead of fraction: values of at most this are set to 0"`
}

func init() {
	Registry.Register("sparsify", "sets the smallest values of every input to 0, in phases of the training if a hook says so", func() Layer {
		return &Sparsify{}
	})
}

// Check returns an error unless exactly one of fraction and threshold is set.
func (l *Sparsify) Check() error {
	switch {
	case l.Fraction == 0 && l.Threshold == 0:
		return errors.New("nothing is set to 0: set fraction or threshold")
	case l.Fraction != 0 && l.Threshold != 0:
		return part.KeyError{Key: "threshold", Problem: "fraction is set too; set only one of them"}
	}
	return nil
}

func (l *Sparsify) OutputShape(in []int) ([]int, error) { return in, l.Check() }

// Switch is the name of the state of a layer that a hook turns on and off: 1 or 0, of shape (1).
const Switch = "active"

func (*Sparsify) Parameters([]int) []Parameter {
	return []Parameter{{Name: Switch, Shape: []int{1}, Init: &Constant{Value: 1}, FanIn: 1, FanOut: 1, State: true}}
}

func (l *Sparsify) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	var sparse *gorgonia.Node
	if l.Fraction > 0 {
		n := x.Shape()[len(x.Shape())-1]
		sparse = c.Do("largest", func() (*gorgonia.Node, error) { return ops.TopK(x, n-l.removed(n)) })
	} else {
		sparse = c.Do("threshold", func() (*gorgonia.Node, error) {
			return ops.Gate(x, c.Shift(x, -l.Threshold), ops.Window{})
		})
	}
	rows := c.Flatten(x)
	active := c.From(1, c.Lt(s.Parameter(Switch), 0.5)) // 1 or 0, also for a moving average
	removed := c.Sub(c.Flatten(sparse), rows)
	y := c.Add(rows, c.MulRow(removed, c.Tile(active, rows.Shape()[1]))) // exact: removed is 0 or -x
	return c.Reshape(y, x.Shape()...), c.Err()
}

// removed returns floor(fraction n). A decimal fraction in float64 may be slightly smaller: 0.29 times 100 is below 29.
func (l *Sparsify) removed(n int) int { return int(l.Fraction*float64(n) + 1e-9) }

// OutputRange implements [Ranged]: the range of the input, extended to 0.
func (*Sparsify) OutputRange(in Interval) Interval { return Interval{min(in.Low, 0), max(in.High, 0)} }

package layers

import (
	"gorgonia.org/gorgonia"

	"tessera/config/part"
	"tessera/graph/ops"
	"tessera/internal/volume"
)

// BatchTopK keeps the k·n largest values of a batch of n flattened inputs, if they are positive, and sets the others to 0: an
// input with much to explain may use more than k units, another one fewer. In training
//
//	y = x where x > t, else 0    t = max(0, the largest value of the batch that is not kept)
//
// At inference every input stands alone, and t is the state threshold, of shape (1), the running average of t:
//
//	threshold <- momentum threshold + (1 - momentum) t
//
// which the first batch sets to its t. Gradients flow only to the values that are kept. Values equal to t are not kept. With
// `anneal_steps` the training begins with `anneal_from` values instead of k; their number falls linearly to k over as many steps, counted by
// the state steps.
//
// Source: Bussmann, Leask and Nanda, BatchTopK sparse autoencoders, 2024, whose threshold is the mean of the smallest value that
// is kept.
type BatchTopK struct {
	K        int     `toml:"k" want:"> 0" doc:"number of values of an input that are not set to 0, on average over a batch"`
	Momentum float64 `toml:"momentum" want:"in [0,1)" doc:"decay of the running threshold"`
	From     int     `toml:"anneal_from" want:">= 0" doc:"number of values in the first step of the annealing"`
	Anneal   int     `toml:"anneal_steps" want:">= 0" doc:"number of steps in which the number of values falls to k; 0: it is k from the start"`
}

func init() {
	Registry.Register("batch_top_k", "keeps the k largest values of every input on average over a batch, 0 elsewhere", func() Layer {
		return &BatchTopK{K: 25, Momentum: 0.99}
	})
}

// Check implements the check of the settings.
func (l *BatchTopK) Check() error {
	switch {
	case l.Anneal > 0 && l.From <= l.K:
		return part.KeyErrorf("anneal_from", "got %d, want more than the %d values at the end (k)", l.From, l.K)
	case l.Anneal == 0 && l.From > 0:
		return part.KeyErrorf("anneal_steps", "got 0 with anneal_from = %d, want the number of steps until k", l.From)
	}
	return nil
}

func (l *BatchTopK) OutputShape(in []int) ([]int, error) {
	if l.K < 1 {
		return nil, part.KeyErrorf("k", "got %d, want > 0", l.K)
	}
	return []int{volume.Of(in)}, nil
}

func (l *BatchTopK) Parameters([]int) []Parameter {
	list := []Parameter{{Name: "threshold", Shape: []int{1}, Init: &Constant{Value: -1}, FanIn: 1, FanOut: 1, State: true}}
	if l.Anneal > 0 {
		list = append(list, Parameter{Name: "steps", Shape: []int{1}, Init: &Zeros{}, FanIn: 1, FanOut: 1, State: true})
	}
	return list
}

func (l *BatchTopK) Average() (key string, decay float64) { return "momentum", l.Momentum }

func (l *BatchTopK) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	x = c.Flatten(x)
	t := s.Parameter("threshold")
	if s.Training() {
		old := t
		t = c.Do("least", func() (*gorgonia.Node, error) { return ops.Least(c.Stop(x), l.kept(&c, s)) })
		first := c.Lt(old, 0)
		moved := c.Add(c.Scale(old, l.Momentum), c.Scale(t, 1-l.Momentum))
		if next := c.Add(c.Mul(first, t), c.Mul(c.From(1, first), moved)); c.Err() == nil {
			s.Update("threshold", next)
		}
	}
	t = c.Ramp(t, 1, 0) // before the first step nothing but negative values is set to 0
	above := c.SubRow(x, c.Tile(t, x.Shape()[1]))
	return c.Do("gate", func() (*gorgonia.Node, error) { return ops.Gate(x, above, ops.Window{}) }), c.Err()
}

// kept returns the number of values of an input that are kept in a step, of shape (1).
func (l *BatchTopK) kept(c *ops.Chain, s Scope) *gorgonia.Node {
	if l.Anneal == 0 {
		return c.Shift(c.Lt(s.Parameter("threshold"), -2), float64(l.K)) // a threshold is at least -1
	}
	steps := s.Parameter("steps")
	if next := c.Shift(steps, 1); c.Err() == nil {
		s.Update("steps", next)
	}
	left := c.Ramp(c.From(1, c.Scale(steps, 1/float64(l.Anneal))), 1, 0)
	return c.Shift(c.Scale(left, float64(l.From-l.K)), float64(l.K))
}

func (*BatchTopK) OutputRange(in Interval) Interval { return Interval{0, max(0, in.High)} }

package layers

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// Elu is the exponential linear unit, y = x for x > 0 and alpha * (exp(x) - 1) otherwise. Its derivative at 0 is alpha.
// Clevert, Unterthiner and Hochreiter, Fast and Accurate Deep Network Learning by ELUs, 2015.
type Elu struct {
	pointwise
	Alpha float64 `toml:"alpha" want:">= 0" doc:"y tends to -alpha for very negative x"`
}

func init() {
	Registry.Register("elu", "y = x for x > 0, alpha * (exp(x)-1) elsewhere", func() Layer { return &Elu{Alpha: 1} })
}

func (e *Elu) Activate(x *gorgonia.Node) (*gorgonia.Node, error)       { return ops.Elu(x, e.Alpha) }
func (e *Elu) Apply(_ Scope, x *gorgonia.Node) (*gorgonia.Node, error) { return e.Activate(x) }

func (e *Elu) OutputRange(in Interval) Interval {
	low := -e.Alpha
	if in.Low >= 0 {
		low = in.Low
	}
	return Interval{low, max(in.High, 0)}
}

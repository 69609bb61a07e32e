package layers

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// Relu is the rectified linear unit, y = max(x, 0). Its derivative at 0 is 0.
type Relu struct{ pointwise }

func init() {
	Registry.Register("relu", "rectified linear unit, y = max(x, 0)", func() Layer { return &Relu{} })
}

func (Relu) Activate(x *gorgonia.Node) (*gorgonia.Node, error)         { return ops.Ramp(x, 1, 0) }
func (r Relu) Apply(_ Scope, x *gorgonia.Node) (*gorgonia.Node, error) { return r.Activate(x) }
func (Relu) OutputRange(in Interval) Interval                          { return Interval{max(in.Low, 0), max(in.High, 0)} }

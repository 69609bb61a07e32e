package layers

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// Softmax turns the units of each input into probabilities, y_j = exp(x_j) / sum_i exp(x_i). For inputs of higher rank it
// acts along the last axis.
type Softmax struct{ pointwise }

func init() {
	Registry.Register("softmax", "probabilities over the units, y = exp(x)/sum(exp(x))", func() Layer { return &Softmax{} })
}

func (Softmax) Activate(x *gorgonia.Node) (*gorgonia.Node, error)         { return ops.Softmax(x) }
func (s Softmax) Apply(_ Scope, x *gorgonia.Node) (*gorgonia.Node, error) { return s.Activate(x) }
func (Softmax) OutputRange(Interval) Interval                             { return Interval{0, 1} }

package layers

import "gorgonia.org/gorgonia"

// Sigmoid maps every value into (0,1): y = 1 / (1 + exp(-x)).
type Sigmoid struct{ pointwise }

func init() {
	Registry.Register("sigmoid", "logistic function, y = 1/(1+exp(-x))", func() Layer { return &Sigmoid{} })
}

func (Sigmoid) Activate(x *gorgonia.Node) (*gorgonia.Node, error)         { return gorgonia.Sigmoid(x) }
func (s Sigmoid) Apply(_ Scope, x *gorgonia.Node) (*gorgonia.Node, error) { return s.Activate(x) }
func (Sigmoid) OutputRange(Interval) Interval                             { return Interval{0, 1} }

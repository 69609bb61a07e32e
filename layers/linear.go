package layers

import "gorgonia.org/gorgonia"

// Linear is the identity, y = x.
type Linear struct{ pointwise }

func init() {
	Registry.Register("linear", "identity, y = x", func() Layer { return &Linear{} })
}

func (Linear) Activate(x *gorgonia.Node) (*gorgonia.Node, error)         { return x, nil }
func (l Linear) Apply(_ Scope, x *gorgonia.Node) (*gorgonia.Node, error) { return l.Activate(x) }
func (Linear) OutputRange(in Interval) Interval                          { return in }

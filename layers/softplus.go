package layers

import (
	"math"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// Softplus is a smooth rectifier, y = log(1 + exp(s x)) / s with the sharpness s, stable for values of any size. For larger
// s it is closer to relu. Unlike in relu, an inactive unit has a small gradient: an optimizer that normalises gradients can
// make the unit active again.
type Softplus struct {
	pointwise
	Sharpness float64 `toml:"sharpness" want:"> 0" doc:"s: y differs from relu by at most log(2)/s, at 0"`
}

func init() {
	Registry.Register("softplus", "smooth rectifier, y = log(1+exp(s x))/s", func() Layer { return &Softplus{Sharpness: 1} })
}

func (s *Softplus) Activate(x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	y := c.Do("softplus", func() (*gorgonia.Node, error) { return ops.Softplus(c.Scale(x, s.Sharpness)) })
	return c.Scale(y, 1/s.Sharpness), c.Err()
}

func (s *Softplus) Apply(_ Scope, x *gorgonia.Node) (*gorgonia.Node, error) { return s.Activate(x) }

func (s *Softplus) OutputRange(in Interval) Interval {
	return Interval{0, max(in.High, 0) + math.Ln2/s.Sharpness} // log(1+exp(x)) <= max(x,0) + log 2
}

package layers

import (
	"math"
	"math/rand/v2"
	"slices"

	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
)

// Sinusoidal maps every number t of its input to `units` values, the first half sines and the second half cosines of t:
//
//	y_k = sin(w_k t),    y_(k + units/2) = cos(w_k t),    w_k = scale / 10000^(2k/units)
//
// for k = 0, ..., units/2 - 1. It embeds a number such as the noise level of a diffusion model: numbers (n) become (n, units).
// For levels in [0,1], scale = 1000 gives the steps of Ho et al. State: frequency w of shape (1, units/2), constant. Sources:
// Vaswani et al., Attention Is All You Need, 2017; Ho, Jain and Abbeel, Denoising diffusion probabilistic models, 2020.
type Sinusoidal struct {
	Units int     `toml:"units" want:"> 0" doc:"number of waves of a number, even"`
	Scale float64 `toml:"scale" want:"> 0" doc:"highest frequency, in radians per unit"`
}

func init() {
	Registry.Register("sinusoidal", "waves of every number, an embedding of a noise level", func() Layer { return &Sinusoidal{Units: 64, Scale: 1000} })
}

func (l *Sinusoidal) OutputShape(in []int) ([]int, error) {
	if l.Units < 2 || l.Units%2 != 0 {
		return nil, part.KeyErrorf("units", "got %d, want an even number > 0", l.Units)
	}
	return append(slices.Clone(in), l.Units), nil
}

func (l *Sinusoidal) Parameters([]int) []Parameter {
	return []Parameter{{Name: "frequency", Shape: []int{1, l.Units / 2}, Init: frequencies{l.Scale}, FanIn: 1, FanOut: l.Units / 2, State: true}}
}

// frequencies initialises the frequencies of [Sinusoidal].
type frequencies struct{ scale float64 }

func (f frequencies) Fill(w []float32, _, _ int, _ *rand.Rand) {
	for k := range w {
		w[k] = float32(f.scale / math.Pow(10000, float64(k)/float64(len(w))))
	}
}

func (l *Sinusoidal) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	angle := c.MatMul(c.Reshape(x, x.Shape().TotalSize(), 1), s.Parameter("frequency"))
	waves := c.Join(c.Do("sin", func() (*gorgonia.Node, error) { return gorgonia.Sin(angle) }),
		c.Do("cos", func() (*gorgonia.Node, error) { return gorgonia.Cos(angle) }))
	return c.Reshape(waves, append(x.Shape().Clone(), l.Units)...), c.Err()
}

func (*Sinusoidal) OutputRange(Interval) Interval { return Interval{-1, 1} }

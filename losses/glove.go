package losses

import (
	"math"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// GloVe compares an output z with the logarithm of a count x > 0, such as that of a pair of words:
//
//	mean of f(x) (z - log x)²,    f(x) = min(1, (x / x_max)^alpha)
//
// so that rare pairs count little and frequent ones not too much; where x is 0 the term is 0. Source: Pennington, Socher and Manning, GloVe: global
// vectors for word representation, 2014.
type GloVe struct {
	XMax  float64 `toml:"x_max" want:"> 0" doc:"count from which the weight is 1"`
	Alpha float64 `toml:"alpha" want:">= 0" doc:"power of the count in the weight"`
}

func init() {
	Registry.Register("glove", "weighted squared distance from log counts, mean of f(x) (z - log x)²", func() Loss { return &GloVe{XMax: 100, Alpha: 0.75} })
}

// On implements [Loss]: a head named score.
func (*GloVe) On() string { return "score" }

func (*GloVe) Reads() Reads { return Reads{On: true, Against: "count", Counts: true} }

func (l *GloVe) Build(v Values) (*gorgonia.Node, error) {
	var c ops.Chain
	z, x := c.Do("on", v.On), c.Do("against", v.Against)
	logs := c.Log(c.Clip(x, leastCount, 1e30))
	weights := c.Exp(c.Scale(c.Clip(c.Shift(logs, -math.Log(l.XMax)), -1e30, 0), l.Alpha))
	present := c.From(1, c.Lt(x, leastCount))
	return MeanOf(&c, v, c.Mul(c.Mul(present, weights), c.Square(c.Sub(z, logs)))), c.Err()
}

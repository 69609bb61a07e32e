package losses

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// AsymmetricDecay decays negative weights fully and other weights alpha times as much. With the default alpha = 0 it only
// pushes negative weights towards 0, with alpha = 1 it is plain decay, and with a larger alpha other weights decay more than
// negative ones. With phi = alpha for w >= 0 and phi = 1 for w < 0, it is the sum over the weights of one of these norms:
//
//	l2       phi w² / 2
//	l1       phi |w|
//	smooth   alpha1 G(w) + alpha2 w² / 2  for w < 0, 0 for w >= 0, where
//	         G(w) = |w| for |w| > kappa, w² / (2 kappa) + kappa/2 otherwise
//
// The factor 1/2 of l2 is in the study's code but not in its text: for the text's lambda set the weight to 2 lambda. smooth
// follows Ayinde and Zurada, Deep Learning of Constrained Autoencoders for Enhanced Understanding of Data, 2018. Its G
// jumps by kappa/2 at 0, which has no effect on the gradient. The paper states no values; the default kappa is the smallest one
// in its illustration. smooth does not use alpha; l2 and l1 do not use alpha1, alpha2 and kappa.
type AsymmetricDecay struct {
	onWeights
	Alpha  float64 `toml:"alpha" want:">= 0" doc:"decay of weights >= 0 relative to the others (l2, l1)"`
	Norm   string  `toml:"norm" oneof:"l2 l1 smooth" doc:"norm that is penalised"`
	Alpha1 float64 `toml:"alpha1" want:">= 0" doc:"factor of the smoothed |w| (smooth)"`
	Alpha2 float64 `toml:"alpha2" want:">= 0" doc:"factor of w²/2 (smooth)"`
	Kappa  float64 `toml:"kappa" want:"> 0" doc:"|w| below which |w| is smoothed (smooth)"`
}

func init() {
	Registry.Register("asymmetric_decay", "decay of negative weights, and alpha times as much of the others", func() Loss {
		return &AsymmetricDecay{Norm: "l2", Alpha1: 1, Alpha2: 1, Kappa: 0.4}
	})
}

func (l *AsymmetricDecay) Build(v Values) (*gorgonia.Node, error) {
	switch l.Norm {
	case "l2":
		return overWeights(v, func(c *ops.Chain, w *gorgonia.Node) *gorgonia.Node {
			return c.Scale(c.Sum(c.Mul(w, c.Ramp(w, l.Alpha, 1))), 0.5)
		})
	case "l1": // of -w: the derivative at 0 is then alpha, so a weight projected to 0 stays there
		return overWeights(v, func(c *ops.Chain, w *gorgonia.Node) *gorgonia.Node { return c.Sum(c.Ramp(c.Neg(w), 1, -l.Alpha)) })
	case "smooth":
		return overWeights(v, l.smooth)
	}
	return nil, fmt.Errorf("norm: got %q, want l2, l1 or smooth", l.Norm)
}

// smooth computes both cases of G by one expression: with m = max(-w, 0) and s = min(m, kappa), s (m - s/2) / kappa is m²/(2
// kappa) for m up to kappa and m - kappa/2 above. For w < 0, G is larger by kappa/2.
func (l *AsymmetricDecay) smooth(c *ops.Chain, weight *gorgonia.Node) *gorgonia.Node {
	m := c.Ramp(c.Neg(weight), 1, 0)
	s := c.Clip(m, 0, l.Kappa)
	bend := c.Scale(c.Mul(s, c.Sub(m, c.Scale(s, 0.5))), l.Alpha1/l.Kappa)
	jump := c.Scale(c.Lt(weight, 0), l.Alpha1*l.Kappa/2)
	square := c.Scale(c.Square(m), l.Alpha2/2)
	return c.Sum(c.Add(c.Add(bend, jump), square))
}

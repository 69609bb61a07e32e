package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// Trades balances accuracy and robustness. Let z be the logits of the clean images, z' the logits of the images of the step,
// which a hook such as adversarial has changed, and c the classes. The term is the mean of -log p_c over the images whose
// class is known, plus Beta times the mean over all images of the divergence between the predictions:
//
//	-log p_c + beta sum_j p_j (log p_j - log p'_j),  p = softmax(z), p' = softmax(z')
//
// Outside training no images are changed, and the term equals the cross entropy. The matching attack maximises the divergence
// (objective = "kl").
//
// Source: Zhang, Yu, Jiao, Xing, El Ghaoui and Jordan, Theoretically Principled Trade-off between Robustness and Accuracy,
// ICML 2019.
type Trades struct {
	Beta float64 `toml:"beta" want:">= 0" doc:"weight of the divergence: larger ones are more robust and less accurate"`
}

func init() {
	Registry.Register("trades", "cross entropy of clean samples, and the divergence of the predictions for attacked samples from theirs", func() Loss { return &Trades{Beta: 6} })
}

// On implements [Loss]: a head named class.
func (*Trades) On() string { return "class" }

func (*Trades) Reads() Reads {
	return Reads{Per: Means, On: true, Against: Labels, Classes: true, Clean: true}
}

func (l *Trades) Build(v Values) (*gorgonia.Node, error) {
	var c ops.Chain
	attacked, clean, labels := c.Do("on", v.On), c.Do("clean", v.Clean), c.Do("against", v.Against)
	q, p := c.LogSoftmax(attacked), c.LogSoftmax(clean)
	known := c.Clip(c.Sum(labels), 1, 1e30)
	right := c.Neg(c.Div(c.Sum(c.Mul(labels, p)), known))
	apart := c.Mean(c.Sum(c.Mul(c.Exp(p), c.Sub(p, q)), 1))
	return c.Add(right, c.Scale(apart, l.Beta)), c.Err()
}

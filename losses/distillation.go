package losses

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// Distillation trains a head to reproduce the predictions of another model, the teacher. The teacher's logits are the column
// With. Let z be the logits of the head and t those of the teacher, both of K classes, and T the temperature. The term is
//
//	soft T² mean over samples of sum_j q_j (log q_j - log p_j) + (1 - soft) cross_entropy,  p = softmax(z/T), q = softmax(t/T)
//
// where [CrossEntropy] compares z with the labels of the samples with a known class. Because of the factor T², the size of the
// gradients of the first part does not depend on T. Logarithms of probabilities may be used as logits, because their softmax
// is the probabilities.
//
// Source: Hinton, Vinyals and Dean, Distilling the knowledge in a neural network, 2015.
type Distillation struct {
	With        string  `toml:"with" doc:"column with the teacher's logits, one for each class"`
	Temperature float64 `toml:"temperature" want:"> 0" doc:"T, divides the logits of both models: larger values show more of the classes that the teacher rejects"`
	Soft        float64 `toml:"soft" want:"in [0,1]" doc:"weight of the teacher's answers; the labels have the weight 1 - soft"`
}

func init() {
	Registry.Register("distillation", "divergence of the predictions from those of another model, at a temperature", func() Loss {
		return &Distillation{With: "teacher", Temperature: 1, Soft: 1}
	})
}

// On implements [Loss]: a head named class.
func (*Distillation) On() string { return "class" }

func (l *Distillation) Reads() Reads {
	return Reads{Per: Means, On: true, Against: Labels, Classes: true, Values: []string{l.With}}
}

func (l *Distillation) Build(v Values) (*gorgonia.Node, error) {
	var c ops.Chain
	z, t := c.Do("on", v.On), c.Do("with", func() (*gorgonia.Node, error) { return v.Value(l.With) })
	if c.Err() == nil && z.Shape()[1] != t.Shape()[1] {
		return nil, fmt.Errorf("with: got %d logits of %q, want %d, one for each class of the value on", t.Shape()[1], l.With, z.Shape()[1])
	}
	p, q := c.LogSoftmax(c.Scale(z, 1/l.Temperature)), c.LogSoftmax(c.Scale(t, 1/l.Temperature))
	apart := c.Scale(c.Mean(c.Sum(c.Mul(c.Exp(q), c.Sub(q, p)), 1)), l.Temperature*l.Temperature)
	if l.Soft == 1 {
		return apart, c.Err()
	}
	labels, logs := c.Do("against", v.Against), c.LogSoftmax(z)
	right := c.Neg(c.Div(c.Sum(c.Mul(labels, logs)), c.Clip(c.Sum(labels), 1, 1e30)))
	return c.Add(c.Scale(apart, l.Soft), c.Scale(right, 1-l.Soft)), c.Err()
}

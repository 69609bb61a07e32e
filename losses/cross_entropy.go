package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
)

// CrossEntropy compares a head with the labels, or with another column of classes. It is the mean, over the samples whose
// class is known, of
//
//	-log p_c,  p = softmax(z)
//
// where z are the logits, one unit of the head for each class, and c is the class of the sample. The term is 0 for a batch
// without labels. With `mask` or `sample_weight`, one number per sample, it is a weighted mean. It equals PyTorch's
// F.cross_entropy with ignore_index.
//
// With label smoothing s the target probability is (1-s) + s/K for the class of the sample and s/K for each other of the K
// classes (Szegedy et al. 2016). Class weights w multiply the terms of the classes, and the mean is divided by the sum of
// w_c, like the weight in PyTorch:
//
//	sum_i [-(1-s) w_c log p_c - s/K sum_j w_j log p_j] / sum_i w_c
//
// Focal g multiplies the term of a sample by (1-p_c)^g, which reduces the influence of well-predicted samples (Lin et al.
// 2017).
type CrossEntropy struct {
	Smoothing    float64   `toml:"label_smoothing" want:"in [0,1)" doc:"s, the share of a label that is spread evenly over all classes"`
	ClassWeights []float64 `toml:"class_weights" optional:"true" doc:"weights of the classes in their order, one for each; without them every class has 1"`
	Focal        float64   `toml:"focal" doc:"exponent g of the factor (1-p_c)^g of a sample; 0, or at least 1; not with label_smoothing"`
}

func init() {
	Registry.Register("cross_entropy", "mean over samples with a label of -log softmax(z) at their class", func() Loss { return &CrossEntropy{} })
}

// Check reports the first invalid setting as a part.KeyError.
func (l *CrossEntropy) Check() error {
	sum := 0.0
	for _, w := range l.ClassWeights {
		if !(w >= 0) {
			return part.KeyErrorf("class_weights", "got %v, want numbers >= 0", l.ClassWeights)
		}
		sum += w
	}
	switch {
	case len(l.ClassWeights) > 0 && sum == 0:
		return part.KeyErrorf("class_weights", "got %v, want one > 0", l.ClassWeights)
	case l.Focal != 0 && !(l.Focal >= 1):
		return part.KeyErrorf("focal", "got %v, want 0 or at least 1: below 1 its derivative is infinite where the prediction is certain", l.Focal)
	case l.Focal != 0 && l.Smoothing != 0:
		return part.KeyErrorf("focal", "got %v with label_smoothing = %v, which has no single probability p_c; choose one", l.Focal, l.Smoothing)
	}
	return nil
}

func (l *CrossEntropy) CheckUnits(units int) error {
	if n := len(l.ClassWeights); n > 0 && n != units {
		return part.KeyErrorf("class_weights", "got %d weights, want %d, the number of classes", n, units)
	}
	return nil
}

// On implements [Loss]: a head named class.
func (*CrossEntropy) On() string { return "class" }

func (*CrossEntropy) Reads() Reads {
	return Reads{Per: Means, On: true, Against: Labels, Classes: true, Counts: true}
}

func (l *CrossEntropy) Build(v Values) (*gorgonia.Node, error) {
	var c ops.Chain
	z, labels := c.Do("on", v.On), c.Do("against", v.Against)
	p := c.Do("log softmax", func() (*gorgonia.Node, error) { return ops.LogSoftmax(z) })
	counts, err := v.Counts()
	if err != nil {
		return nil, err
	}
	own, weight := l.terms(&c, labels, p)
	switch {
	case counts.Samples != nil:
		return c.Neg(ratio(&c, c.Mul(counts.Samples, own), c.Mul(counts.Samples, weight))), c.Err()
	case len(l.ClassWeights) > 0:
		return c.Neg(ratio(&c, own, weight)), c.Err()
	}
	return c.Neg(c.Div(c.Sum(own), c.Clip(c.Sum(weight), 1, 1e30))), c.Err()
}

// terms returns the log-likelihood of each sample and its weight in the mean, both (batch), from one-hot labels and the
// log-probabilities p.
func (l *CrossEntropy) terms(c *ops.Chain, labels, p *gorgonia.Node) (own, weight *gorgonia.Node) {
	weigh := func(x *gorgonia.Node) *gorgonia.Node {
		if len(l.ClassWeights) == 0 {
			return x
		}
		return c.Do("class weights", func() (*gorgonia.Node, error) { return ops.Weigh(x, l.ClassWeights) })
	}
	known := c.Sum(labels, 1)
	own, weight = c.Sum(weigh(c.Mul(labels, p)), 1), c.Sum(weigh(labels), 1)
	if l.Focal != 0 {
		certain := c.Clip(c.From(1, c.Exp(c.Sum(c.Mul(labels, p), 1))), 1e-12, 1) // the power of 0 has no logarithm
		own = c.Mul(own, c.Exp(c.Scale(c.Log(certain), l.Focal)))
	}
	if l.Smoothing != 0 && c.Err() == nil {
		even := c.Mul(known, c.Sum(weigh(p), 1))
		own = c.Add(c.Scale(own, 1-l.Smoothing), c.Scale(even, l.Smoothing/float64(labels.Shape()[1])))
	}
	return own, weight
}

package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/ops"
)

// CrossEntropy compares a head with the labels, or with another column of classes. It is the mean, over the samples whose class is
// known, of
//
//	-log p_c,  p = softmax(z)
//
// where z are the logits, one unit of the head for each class, and c is the class of the sample. The term is 0 for a batch
// without labels. With `mask` or `sample_weight`, of one number per sample, it is the weighted mean. It is PyTorch's F.cross_entropy with ignore_index.
type CrossEntropy struct{}

func init() {
	Registry.Register("cross_entropy", "mean over images with a label of -log softmax(z) at their class", func() Loss { return &CrossEntropy{} })
}

// On implements [Loss]: a head of that name.
func (CrossEntropy) On() string { return "class" }

// Reads implements [Loss].
func (CrossEntropy) Reads() Reads {
	return Reads{Per: Means, On: true, Against: Labels, Classes: true, Counts: true}
}

// Build implements [Loss].
func (CrossEntropy) Build(v Values) (*gorgonia.Node, error) {
	var c ops.Chain
	z, labels := c.Do("on", v.On), c.Do("against", v.Against)
	p := c.Do("log softmax", func() (*gorgonia.Node, error) { return ops.LogSoftmax(z) })
	counts, err := v.Counts()
	if err != nil {
		return nil, err
	}
	if counts.Samples != nil {
		own, known := c.Sum(c.Mul(labels, p), 1), c.Sum(labels, 1)
		return c.Neg(ratio(&c, c.Mul(counts.Samples, own), c.Mul(counts.Samples, known))), c.Err()
	}
	known := c.Clip(c.Sum(labels), 1, 1e30)
	return c.Neg(c.Div(c.Sum(c.Mul(labels, p)), known)), c.Err()
}

package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/ops"
)

// CrossEntropy compares a head with the labels. It is the mean, over the images whose label is known, of
//
//	-log p_c,  p = softmax(z)
//
// where z are the logits, one unit of the head for each class, and c is the class of the image. The term is 0 for a batch
// without labels. It is PyTorch's F.cross_entropy with ignore_index.
type CrossEntropy struct{}

func init() {
	Registry.Register("cross_entropy", "mean over images with a label of -log softmax(z) at their class", func() Loss { return &CrossEntropy{} })
}

// On implements [Loss]: a head of that name.
func (CrossEntropy) On() string { return "class" }

// Reads implements [Loss].
func (CrossEntropy) Reads() Reads { return Reads{Per: Means, On: true, Labels: true} }

// Build implements [Loss].
func (CrossEntropy) Build(v Values) (*gorgonia.Node, error) {
	var c ops.Chain
	z, labels := c.Do("on", v.On), c.Do("labels", v.Labels)
	p := c.Do("log softmax", func() (*gorgonia.Node, error) { return ops.LogSoftmax(z) })
	known := c.Clip(c.Sum(labels), 1, 1e30)
	return c.Neg(c.Div(c.Sum(c.Mul(labels, p)), known)), c.Err()
}

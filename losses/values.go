package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/ops"
)

// Values gives a term what it is computed from. All values have the batch as their first axis. Methods return an error for
// values that the model does not have and for values that the term does not declare in [Reads].
type Values interface {
	// On returns the value that `on` names, (batch, units), or (2 batch, units) if it is computed from the views.
	On() (*gorgonia.Node, error)
	// Value returns a value by its name: "code", "output" or a head, (batch, units).
	Value(name string) (*gorgonia.Node, error)
	// Teacher returns the value that `on` names as the teacher computes it. No gradient flows through it.
	Teacher() (*gorgonia.Node, error)
	// Images returns the target images, (batch, pixels): the clean images if the encoder gets distorted ones.
	Images() (*gorgonia.Node, error)
	// Shape returns the shape of one image: (height, width), (height, width, channels) or (values).
	Shape() ([]int, error)
	// Labels returns the labels, (batch, classes), one-hot; the row of an image without a label is 0.
	Labels() (*gorgonia.Node, error)
	// Weights returns the parameters that match the glob `on`, at least one.
	Weights() ([]*gorgonia.Node, error)
	// Dictionary returns the decoder, starting at its atoms.
	Dictionary() (*Dictionary, error)
	// Encoding returns the computation of the value that `on` names from the images.
	Encoding() (*Encoding, error)
}

// Encoding describes the encoder to a term with Reads.Jacobian. Derivatives must be computed by [ops.Gradient], because
// training differentiates them again.
type Encoding struct {
	Images *gorgonia.Node // the encoder's input, with the batch as first axis
	Code   *gorgonia.Node // the value that `on` names, (batch, units)

	// Noise returns a new input of that shape, with the batch as first axis. s draws its values at every training step. A
	// full-batch objective must not change between evaluations: its values are drawn once for each image.
	Noise func(s ops.Sampler, shape ...int) *gorgonia.Node
}

// Dictionary describes the decoder to a term with Reads.Atoms. The atoms are the rows of the weight of the decoder's last
// layer with weights, if they have the size of an image.
type Dictionary struct {
	Images *gorgonia.Node // the images to reconstruct, (batch, pixels)
	Shape  []int          // of one image: (height, width) or (height, width, channels)
	Code   *gorgonia.Node // coefficients of the atoms, (batch, atoms): the code if only one decoder layer has weights
	Atoms  *gorgonia.Node // (atoms, pixels)

	// Decode returns the output, (batch, pixels), for other atoms with the same code, bias and later layers.
	Decode func(atoms *gorgonia.Node) (*gorgonia.Node, error)
}

package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/ops"
)

// Values is what a term is built from. All values have the batch as their first axis. To ask for what the model does not
// have, or for what the term does not declare in [Reads], is an error.
type Values interface {
	// On returns the value that `on` names, (batch, units); (2 batch, units) of the views.
	On() (*gorgonia.Node, error)
	// Value returns a value by its name: "code", "output" or a head, (batch, units).
	Value(name string) (*gorgonia.Node, error)
	// Teacher returns the value that `on` names as the teacher computes it. No gradient flows through it.
	Teacher() (*gorgonia.Node, error)
	// Images returns the images to compare with, (batch, pixels): the clean ones where those that are encoded are distorted.
	Images() (*gorgonia.Node, error)
	// Labels returns the labels, (batch, classes): 1 at the class of an image, 0 elsewhere, and all 0 where it is unknown.
	Labels() (*gorgonia.Node, error)
	// Weights returns the parameters that the glob `on` matches, at least one.
	Weights() ([]*gorgonia.Node, error)
	// Dictionary returns the decoder from its atoms on.
	Dictionary() (*Dictionary, error)
	// Encoding returns how the value that `on` names is computed from the images.
	Encoding() (*Encoding, error)
}

// Encoding is the encoder as a term with Reads.Jacobian sees it. Derivatives must be taken by [ops.Gradient]: they are
// differentiated again.
type Encoding struct {
	Images *gorgonia.Node // what enters the encoder, the batch first
	Code   *gorgonia.Node // the value that `on` names, (batch, units)

	// Noise returns a new input of that shape, the batch first. s draws its values again at every training step. With an
	// objective over all images, which must stay the same between evaluations, they are drawn once for each image.
	Noise func(s ops.Sampler, shape ...int) *gorgonia.Node
}

// Dictionary is the decoder as a term with Reads.Atoms sees it. The atoms are the rows of the weight of the decoder's last
// layer that has one, where they are images.
type Dictionary struct {
	Images *gorgonia.Node // the images to reconstruct, (batch, pixels)
	Shape  []int          // of one image: (height, width) or (height, width, channels)
	Code   *gorgonia.Node // what weights the atoms, (batch, atoms): the code where the decoder has one layer with weights
	Atoms  *gorgonia.Node // (atoms, pixels)

	// Decode returns the output, (batch, pixels), that the same code, bias and later layers give with other atoms.
	Decode func(atoms *gorgonia.Node) (*gorgonia.Node, error)
}

// Package losses is the vocabulary of objectives: one file per term, each a symbolic Gorgonia expression with its
// formula, its source and its defaults.
//
// A new term is one new file with one call of Registry.Register. Gradients come from automatic differentiation only.
// The optional weight that multiplies every term, and what it is taken on, belong to the declaration, not to the term.
package losses

import (
	"math/rand/v2"

	"gorgonia.org/gorgonia"
	"tessera/part"
)

// Loss is one term of the objective. Every loss is exactly one of [Reconstruction], [CodePenalty], [JacobianPenalty],
// [AtomPenalty] and [WeightPenalty].
type Loss interface {
	// On is what the term is taken on by default: "output", "code", "atoms", or a glob over parameter paths.
	On() string
}

// Registry holds every loss.
var Registry = part.New[Loss]("loss")

// Reconstruction compares the output with the images it should reproduce, as a mean over the images: what each adds does
// not depend on the others.
type Reconstruction interface {
	Loss
	// Compare returns a scalar; output and target have equal shapes, the batch first.
	Compare(output, target *gorgonia.Node) (*gorgonia.Node, error)
}

// CodePenalty is taken on the code.
type CodePenalty interface {
	Loss
	// Penalise returns a scalar; code has shape (batch, units).
	Penalise(code *gorgonia.Node) (*gorgonia.Node, error)
}

// JacobianPenalty is taken on how the code changes with the images, as a mean over the images.
type JacobianPenalty interface {
	Loss
	// PenaliseJacobian returns a scalar. Derivatives of the code are to be taken by [ops.Gradient]: they are differentiated
	// again.
	PenaliseJacobian(e *Encoding) (*gorgonia.Node, error)
}

// Encoding is the encoder as a [JacobianPenalty] sees it.
type Encoding struct {
	Images *gorgonia.Node // what enters the encoder, the batch first
	Code   *gorgonia.Node // (batch, units)

	// Noise returns a new input of that shape, the batch first, whose values s draws anew at every training step; over all
	// images at once they are drawn once for each image, as that objective must not change from look to look.
	Noise func(s Sampler, shape ...int) *gorgonia.Node
}

// Sampler draws the values of a noise input.
type Sampler interface {
	Sample(dst []float32, r *rand.Rand)
}

// AtomPenalty is taken on the atoms and what they are used for: the rows of the weight of the decoder's last layer that
// has one, which must be images. It is a mean over the images that they are used for.
type AtomPenalty interface {
	Loss
	// PenaliseAtoms returns a scalar.
	PenaliseAtoms(d *Dictionary) (*gorgonia.Node, error)
}

// Dictionary is the decoder as an [AtomPenalty] sees it, from its atoms on.
type Dictionary struct {
	Images *gorgonia.Node // the images that the output should give back, (batch, pixels)
	Shape  []int          // of one image: (height, width) or (height, width, channels)
	Code   *gorgonia.Node // what weighs the atoms, (batch, atoms): the code where the decoder has one layer with weights
	Atoms  *gorgonia.Node // (atoms, pixels)

	// Decode returns the output, (batch, pixels), that the same code, bias and later layers give with other atoms.
	Decode func(atoms *gorgonia.Node) (*gorgonia.Node, error)
}

// WeightPenalty is taken on each parameter that its glob matches, and summed over them.
type WeightPenalty interface {
	Loss
	// Decay returns a scalar for one parameter.
	Decay(weight *gorgonia.Node) (*gorgonia.Node, error)
}

// UnitInterval is implemented by terms that are defined only on values in [0,1]: KL on the code, BCE on the output.
type UnitInterval interface {
	NeedsUnitInterval()
}

// Numbered is implemented by terms on the code that do not suit every number of units.
type Numbered interface {
	// CheckUnits says what is wrong with a code of so many units.
	CheckUnits(units int) error
}

// Shaped is implemented by terms that do not suit images of every shape.
type Shaped interface {
	// CheckShape says what is wrong with images of that shape, as a part.KeyError where a key's value is.
	CheckShape(shape []int) error
}

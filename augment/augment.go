// Package augment is the vocabulary of random image augmentations: one file each. A view of a model is a list of them,
// applied in order by a [Chain], that is drawn again for every image of every batch.
//
// An image has shape (height, width) or (height, width, channels), channels last, and values in [0,1]. Every
// augmentation keeps the shape and that range. A new one is one new file with one call of Registry.Register; the laws
// (package laws) are tried on it without further work.
package augment

import (
	"fmt"
	"math/rand/v2"

	"tessera/part"
)

// Augmentation changes one image at random. Its exported fields are settings: Apply reads them and changes nothing, so
// that any number of goroutines may share one augmentation.
type Augmentation interface {
	// Apply writes the augmented image src to dst, which has the same length and shares no memory with src. All
	// randomness comes from r. Working memory comes from s, which belongs to this goroutine alone.
	Apply(dst, src []float32, shape []int, r *rand.Rand, s *Scratch)
}

// ShapeChecker is implemented by augmentations that cannot be applied to images of every shape.
type ShapeChecker interface {
	CheckShape(shape []int) error
}

// Registry holds every augmentation.
var Registry = part.New[Augmentation]("augmentation")

// CheckShape reports why a cannot be applied to images of that shape: the shape is not (height, width) or (height,
// width, channels) with positive sizes, or a is a [ShapeChecker] that refuses it.
func CheckShape(a Augmentation, shape []int) error {
	bad := len(shape) != 2 && len(shape) != 3
	for _, d := range shape {
		bad = bad || d < 1
	}
	if bad {
		return fmt.Errorf("augment: images of shape %v, want (height, width) or (height, width, channels)", shape)
	}
	if c, ok := a.(ShapeChecker); ok {
		return c.CheckShape(shape)
	}
	return nil
}

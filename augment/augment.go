// Package augment contains random image augmentations, one per file. A view of a model is a list of augmentations that a
// [Chain] applies in order, with new draws for every image of every batch.
//
// An image has shape (height, width) or (height, width, channels), channels last, and values in [0,1]. Every augmentation
// keeps the shape and that range. A new augmentation is one new file with one call of Registry.Register; the tests of
// package laws then include it.
package augment

import (
	"fmt"
	"math/rand/v2"

	"tessera/part"
)

// Augmentation changes one image at random. Its exported fields are settings. Apply does not change them: an augmentation
// is safe for concurrent use.
type Augmentation interface {
	// Apply writes the augmented image src to dst, which has the same length and shares no memory with src. All randomness
	// comes from r. Working memory comes from s, which only this goroutine uses.
	Apply(dst, src []float32, shape []int, r *rand.Rand, s *Scratch)
}

// ShapeChecker is implemented by augmentations that cannot be applied to images of every shape.
type ShapeChecker interface {
	CheckShape(shape []int) error
}

// Registry holds every augmentation.
var Registry = part.New[Augmentation]("augmentation")

// CheckShape returns an error if a cannot be applied to images of that shape: if the shape is not (height, width) or
// (height, width, channels) with positive sizes, or if a is a [ShapeChecker] that returns an error.
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

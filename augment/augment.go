// Package augment contains random image augmentations, one per file. A view of a model is a list of augmentations that a
// [Chain] applies in order, with new draws for every image of every batch.
//
// An image has shape (height, width) or (height, width, channels), channels last, and values in [0,1]. Every augmentation
// keeps the shape and that range. A new augmentation is one new file with one call of Registry.Register; the tests of
// package laws then include it.
package augment

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"tessera/internal/volume"
	"tessera/part"
)

// Augmentation declares a random change of images. Its exported fields are settings. Prepare does not change them: an
// augmentation is safe for concurrent use.
type Augmentation interface {
	// Prepare returns the change for images of that shape, (height, width) or (height, width, channels), with separate working
	// memory: one goroutine uses it at a time. It returns an error if a setting is invalid or the shape is not accepted;
	// [Check] returns the common ones.
	Prepare(shape []int) (Change, error)
}

// Clipper is implemented by augmentations that clip values to [0,1]: they would change images with other values, which are not
// trained with them.
type Clipper interface {
	// Clips reports whether the augmentation, with its settings, clips.
	Clips() bool
}

// Clips reports whether an augmentation clips values to [0,1].
func Clips(a Augmentation) bool {
	c, ok := a.(Clipper)
	return ok && c.Clips()
}

// Change writes the augmented image src to dst. Both have the values of the prepared shape and share no memory; a [Chain]
// checks that. All randomness comes from r. A change does not allocate once its working memory has grown.
type Change func(dst, src []float32, r *rand.Rand)

// Registry holds every augmentation.
var Registry = part.New[Augmentation]("augmentation")

// checkShape returns an error if the shape is not one of images: (height, width) or (height, width, channels) with positive
// sizes and fewer than 2^31 values.
func checkShape(shape []int) error {
	if len(shape) != 2 && len(shape) != 3 || slices.Min(shape) < 1 {
		return fmt.Errorf("augment: images of shape %v, want (height, width) or (height, width, channels)", shape)
	}
	if _, ok := volume.Within(shape, math.MaxInt32); !ok {
		return fmt.Errorf("augment: images of shape %v, want fewer than 2^31 values", shape)
	}
	return nil
}

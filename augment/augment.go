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
	"reflect"
	"slices"

	"tessera/internal/volume"
	"tessera/part"
	"tessera/part/table"
)

// Augmentation declares a random change of images. Its exported fields are settings. Prepare does not change them: an
// augmentation is safe for concurrent use.
type Augmentation interface {
	// Prepare returns the change for images of that shape, (height, width) or (height, width, channels), with separate working
	// memory: one goroutine uses it at a time. It returns an error if the augmentation does not accept the shape. The function
	// [Prepare] calls it and has checked the shape and the settings before.
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

// Prepare prepares a for images of that shape. It returns an error if images cannot have the shape, or else the first invalid
// setting of a as a [part.KeyError]: a value that its tags do not allow or for which its method Check() error returns an error.
// Augmentations made in Go can have any settings; declarations in TOML are checked when they are read.
func Prepare(a Augmentation, shape []int) (Change, error) {
	if err := checkShape(shape); err != nil {
		return nil, err
	}
	if err := checkSettings(a); err != nil {
		return nil, err
	}
	return a.Prepare(slices.Clone(shape))
}

// checkSettings returns the first invalid setting of a.
func checkSettings(a Augmentation) error {
	v := reflect.ValueOf(a)
	if a == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return fmt.Errorf("got a nil %T", a)
	}
	if v.Kind() == reflect.Pointer && v.Elem().Kind() == reflect.Struct {
		tried := reflect.New(v.Elem().Type()) // a copy: goroutines may share a
		tried.Elem().Set(v.Elem())
		for _, f := range table.Fields(tried.Interface()) {
			if err := allowed(f, f.Value); err != nil {
				return err
			}
		}
	}
	if c, ok := a.(interface{ Check() error }); ok {
		return c.Check()
	}
	return nil
}

// allowed reports a number, an element of a list of numbers, or a text that a field's tags do not allow.
func allowed(f table.Field, v reflect.Value) error {
	ok, want := true, f.Want
	switch {
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			if err := allowed(f, v.Index(i)); err != nil {
				return err
			}
		}
		return nil
	case v.CanFloat():
		f.Value = v
		ok = f.SetNumber(v.Float())
	case v.CanInt():
		f.Value = v
		ok = f.SetNumber(v.Int())
	case v.Kind() == reflect.String && f.Choices() != nil:
		ok, want = slices.Contains(f.Choices(), v.String()), "one of "+table.Quoted(f.Choices())
	}
	if ok {
		return nil
	}
	if want == "" {
		want = "a number"
	}
	return part.KeyErrorf(f.Key, "got %v, want %s", v, want)
}

// size is the size of an image; one without a channel axis has one channel.
type size struct{ height, width, channels int }

func sizeOf(shape []int) size {
	if len(shape) == 2 {
		return size{shape[0], shape[1], 1}
	}
	return size{shape[0], shape[1], shape[2]}
}

// stride returns the number of values of one row.
func (s size) stride() int { return s.width * s.channels }

// checkRange reports a setting that is not [low, high] with low <= high.
func checkRange(key string, values []float64) error {
	if len(values) == 2 && values[0] <= values[1] {
		return nil
	}
	return part.KeyErrorf(key, "got %v, want two numbers [low, high] with low <= high", values)
}

// uniform draws from U[low, high], and draws once even if both are equal.
func uniform(r *rand.Rand, low, high float64) float64 { return low + (high-low)*r.Float64() }

// happens draws an event of that probability.
func happens(r *rand.Rand, probability float64) bool { return r.Float64() < probability }

// clip returns v in [0,1].
func clip(v float32) float32 { return min(max(v, 0), 1) }

// box is a rectangle in an image, in pixels: the pixel in row y covers [y, y+1).
type box struct{ top, left, height, width float64 }

// drawBox draws a rectangle inside an image: its area as a fraction of the image is uniform over scale, its width over
// height log-uniform over those ratios at which a rectangle of that area fits into the image, its place uniform. If no
// ratio in the interval fits, the nearest fitting ratio is used: the area is always as drawn.
func drawBox(r *rand.Rand, scale, ratio []float64, in size) box {
	height, width := float64(in.height), float64(in.width)
	area := min(uniform(r, scale[0], scale[1]), 1)
	// Relative to the image's own ratio, a rectangle fits from area to 1/area.
	image := math.Log(width / height)
	fits := -math.Log(area)
	low := min(max(math.Log(ratio[0])-image, -fits), fits)
	high := min(max(math.Log(ratio[1])-image, -fits), fits)
	stretch := math.Exp(uniform(r, low, high))
	b := box{height: height * min(math.Sqrt(area/stretch), 1), width: width * min(math.Sqrt(area*stretch), 1)}
	b.top = (height - b.height) * r.Float64()
	b.left = (width - b.width) * r.Float64()
	return b
}

// Package augment contains random image augmentations, one per file. A view of a model is a list of augmentations that
// a [Chain] applies in order, with new random numbers for every image of every batch.
//
// An image has shape (height, width) or (height, width, channels), channels last, and values in [0,1]. Every
// augmentation keeps the shape and this range. A new augmentation is one new file with one call of Registry.Register;
// the tests of package laws then include it.
package augment

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"

	"tessera/config/part"
	"tessera/config/part/table"
	"tessera/internal/volume"
)

// Augmentation declares a random change of images. Its exported fields are settings. Prepare must not change them, so
// an augmentation is safe for concurrent use.
type Augmentation interface {
	// Prepare returns the change for images of the given shape, (height, width) or (height, width, channels). Each
	// change has separate working memory and is used by one goroutine at a time. Prepare returns an error if the
	// augmentation does not accept the shape. It is called by the function [Prepare], which checks the shape and the
	// settings first.
	Prepare(shape []int) (Change, error)
}

// Clipper is implemented by augmentations that clip values to [0,1]. Models of images with other values cannot be
// trained with them, because clipping would change the images.
type Clipper interface {
	// Clips reports whether the augmentation clips values with its current settings.
	Clips() bool
}

// Clips reports whether an augmentation clips values to [0,1].
func Clips(a Augmentation) bool {
	c, ok := a.(Clipper)
	return ok && c.Clips()
}

// Change writes the augmented image src to dst. Both have the prepared shape and share no memory, which [Chain] checks.
// r is the only source of randomness. A change does not allocate once its working memory has grown.
type Change func(dst, src []float32, r *rand.Rand)

// Registry holds every augmentation.
var Registry = part.New[Augmentation]("augmentation")

// checkShape returns an error unless the shape is that of an image: (height, width) or (height, width, channels) with
// positive sizes and fewer than 2^31 values.
func checkShape(shape []int) error {
	if len(shape) != 2 && len(shape) != 3 || slices.Min(shape) < 1 {
		return fmt.Errorf("augment: images of shape %v, want (height, width) or (height, width, channels)", shape)
	}
	if _, ok := volume.Within(shape, math.MaxInt32); !ok {
		return fmt.Errorf("augment: images of shape %v, want fewer than 2^31 values", shape)
	}
	return nil
}

// Prepare returns the change of a for images of the given shape. It returns an error if images cannot have the shape.
// For an invalid setting it returns a [part.KeyError], the first one: a value that the tags do not allow, or an error
// of the method Check() error. Augmentations made in Go can have any settings. Declarations in TOML are checked when
// they are read.
func Prepare(a Augmentation, shape []int) (Change, error) {
	if err := checkShape(shape); err != nil {
		return nil, err
	}
	if err := checkSettings(a); err != nil {
		return nil, err
	}
	return a.Prepare(slices.Clone(shape))
}

func checkSettings(a Augmentation) error {
	v := reflect.ValueOf(a)
	if a == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return fmt.Errorf("got a nil %T", a)
	}
	if v.Kind() == reflect.Pointer && v.Elem().Kind() == reflect.Struct {
		tried := reflect.New(v.Elem().Type()) // a copy, because goroutines may share a
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

// allowed returns an error for a number, an element of a list of numbers, or a text that the tags of a field do not
// allow.
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

// size is the size of an image. An image without a channel axis has one channel.
type size struct{ height, width, channels int }

func sizeOf(shape []int) size {
	if len(shape) == 2 {
		return size{shape[0], shape[1], 1}
	}
	return size{shape[0], shape[1], shape[2]}
}

func (s size) stride() int { return s.width * s.channels }

func checkRange(key string, values []float64) error {
	if len(values) == 2 && values[0] <= values[1] {
		return nil
	}
	return part.KeyErrorf(key, "got %v, want two numbers [low, high] with low <= high", values)
}

// uniform draws from U[low, high]. It draws one number even if both bounds are equal.
func uniform(r *rand.Rand, low, high float64) float64 { return low + (high-low)*r.Float64() }

func happens(r *rand.Rand, probability float64) bool { return r.Float64() < probability }

func clip(v float32) float32 { return min(max(v, 0), 1) }

// box is a rectangle in an image, in pixels. The pixel in row y covers [y, y+1).
type box struct{ top, left, height, width float64 }

// drawBox draws a rectangle inside an image. Its area, as a fraction of the image, is uniform over scale. Its ratio of
// width to height is log-uniform over those values of ratio at which a rectangle of this area fits into the image. If
// no value in ratio fits, the nearest ratio that fits is used, so that the area is always as drawn. Its position is
// uniform.
func drawBox(r *rand.Rand, scale, ratio []float64, in size) box {
	height, width := float64(in.height), float64(in.width)
	area := min(uniform(r, scale[0], scale[1]), 1)
	// Relative to the ratio of the image, rectangles fit whose ratio is between area and 1/area.
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

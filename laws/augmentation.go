package laws

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"

	"tessera/augment"
	"tessera/internal/volume"
)

// Augmentation contains the laws of augmentations.
var Augmentation = Laws[augment.Augmentation]{
	{"takes images of every shape", augmentsEveryShape},
	{"keeps values in [0,1]", augmentsInRange},
	{"gives the same bits for the same stream", augmentsRepeatably},
	{"writes every value of the image, whatever it contained", augmentsEveryValue},
	{"writes inside the image only", augmentsInside},
	{"never writes the source", augmentsFromSource},
	{"has no memory of earlier images", augmentationForgets},
	{"never changes its settings", augmentationKeepsSettings},
	{"does not allocate", augmentationAllocates},
}

// draws is the number of draws per image.
const draws = 20

// picture is an image before an augmentation.
type picture struct {
	name   string
	shape  []int
	values []float32
}

func (p picture) String() string { return fmt.Sprintf("%s %v", p.name, p.shape) }

// pictures returns images from one pixel to colours, edge values included, whose shape a accepts.
func pictures(a augment.Augmentation) []picture {
	r := source()
	var all []picture
	for _, shape := range [][]int{{1, 1}, {1, 9}, {9, 1}, {1, 1, 3}, {2, 3}, {5, 4, 3}, {12, 12}, {28, 28, 1}} {
		if _, err := prepared(a, shape); err != nil && !errors.Is(err, errPanics) {
			continue
		}
		n := volume.Of(shape)
		random, binary := make([]float32, n), make([]float32, n)
		for i := range n {
			random[i], binary[i] = r.Float32(), float32(r.IntN(2))
		}
		all = append(all, picture{"random", shape, random}, picture{"black and white", shape, binary},
			picture{"black", shape, make([]float32, n)}, picture{"white", shape, slices.Repeat([]float32{1}, n)},
			picture{"dark", shape, slices.Repeat([]float32{math.SmallestNonzeroFloat32}, n)})
	}
	return all
}

// stream returns the random stream of one draw.
func stream(draw int) *rand.Rand { return rand.New(rand.NewPCG(uint64(draw), 784)) }

// errPanics is the error of a part that panics.
var errPanics = errors.New("panics")

// prepared prepares a for a shape; a panic becomes an error.
func prepared(a augment.Augmentation, shape []int) (change augment.Change, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("Prepare(%v): %w: %v", shape, errPanics, problem)
		}
	}()
	return a.Prepare(shape)
}

// augmented prepares a for p, applies it and returns the result. The result's memory is filled with before.
func augmented(a augment.Augmentation, p picture, draw int, before float32) ([]float32, error) {
	change, err := prepared(a, p.shape)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", p, err)
	}
	return changed(change, p, draw, before)
}

// changed applies a change to p and returns the result, whose memory is filled with before; a panic becomes an error.
func changed(change augment.Change, p picture, draw int, before float32) (out []float32, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("%v: panics: %v", p, problem)
		}
	}()
	out = slices.Repeat([]float32{before}, len(p.values))
	change(out, p.values, stream(draw))
	return out, nil
}

// eachPicture calls f with every image and draw.
func eachPicture(a augment.Augmentation, f func(p picture, draw int) error) error {
	for _, p := range pictures(a) {
		for draw := range draws {
			if err := f(p, draw); err != nil {
				return err
			}
		}
	}
	return nil
}

func augmentsEveryShape(fresh func() augment.Augmentation) error {
	a := fresh()
	if len(pictures(a)) == 0 {
		return fmt.Errorf("refuses the shape of every test image")
	}
	return eachPicture(a, func(p picture, draw int) error {
		shape := slices.Clone(p.shape)
		if _, err := augmented(a, p, draw, 0); err != nil {
			return err
		}
		if !slices.Equal(shape, p.shape) {
			return fmt.Errorf("%v becomes %v", shape, p.shape)
		}
		return nil
	})
}

func augmentsInRange(fresh func() augment.Augmentation) error {
	a := fresh()
	return eachPicture(a, func(p picture, draw int) error {
		out, err := augmented(a, p, draw, 0)
		if err != nil {
			return err
		}
		for i, v := range out {
			if !(v >= 0 && v <= 1) {
				return fmt.Errorf("%v: draw %d: value %d becomes %v", p, draw, i, v)
			}
		}
		return nil
	})
}

func augmentsRepeatably(fresh func() augment.Augmentation) error {
	a := fresh()
	return eachPicture(a, func(p picture, draw int) error {
		first, err := augmented(a, p, draw, 0)
		if err != nil {
			return err
		}
		second, err := augmented(a, p, draw, 0)
		if err != nil {
			return err
		}
		return differ(fmt.Sprintf("%v: draw %d: a second time", p, draw), second, first)
	})
}

func augmentsEveryValue(fresh func() augment.Augmentation) error {
	a := fresh()
	return eachPicture(a, func(p picture, draw int) error {
		black, err := augmented(a, p, draw, 0)
		if err != nil {
			return err
		}
		for _, before := range []float32{1, float32(math.NaN())} {
			other, err := augmented(a, p, draw, before)
			if err != nil {
				return err
			}
			if err := differ(fmt.Sprintf("%v: draw %d: over %v", p, draw, before), other, black); err != nil {
				return err
			}
		}
		return nil
	})
}

// augmentsInside checks guard values before and after the destination.
func augmentsInside(fresh func() augment.Augmentation) (err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("panics: %v", problem)
		}
	}()
	const guard, mark = 40, -77
	a := fresh()
	return eachPicture(a, func(p picture, draw int) error {
		n := len(p.values)
		padded := slices.Repeat([]float32{mark}, n+2*guard)
		change, err := prepared(a, p.shape)
		if err != nil {
			return fmt.Errorf("%v: %w", p, err)
		}
		change(padded[guard:guard+n], p.values, stream(draw))
		for i, v := range padded {
			if (i < guard || i >= guard+n) && v != mark {
				return fmt.Errorf("%v: draw %d: writes %d values from the start of the image", p, draw, i-guard)
			}
		}
		return nil
	})
}

func augmentsFromSource(fresh func() augment.Augmentation) error {
	a := fresh()
	return eachPicture(a, func(p picture, draw int) error {
		before := slices.Clone(p.values)
		if _, err := augmented(a, p, draw, 0); err != nil {
			return err
		}
		return differ(fmt.Sprintf("%v: draw %d: source", p, draw), p.values, before)
	})
}

// augmentationForgets compares one change for all images of a shape with new ones for each.
func augmentationForgets(fresh func() augment.Augmentation) error {
	used, changes := fresh(), map[string]augment.Change{}
	return eachPicture(used, func(p picture, draw int) error {
		want, err := augmented(fresh(), p, draw, 0)
		if err != nil {
			return err
		}
		of := fmt.Sprint(p.shape)
		if changes[of] == nil {
			if changes[of], err = prepared(used, p.shape); err != nil {
				return fmt.Errorf("%v: %w", p, err)
			}
		}
		got, err := changed(changes[of], p, draw, 0)
		if err != nil {
			return err
		}
		return differ(fmt.Sprintf("%v: draw %d: after other images", p, draw), got, want)
	})
}

func augmentationKeepsSettings(fresh func() augment.Augmentation) error {
	used, before := fresh(), fresh()
	if !reflect.DeepEqual(used, before) {
		return fmt.Errorf("two new ones are not equal: %+v and %+v", used, before)
	}
	return eachPicture(used, func(p picture, draw int) error {
		if _, err := augmented(used, p, draw, 0); err != nil {
			return err
		}
		if !reflect.DeepEqual(used, before) {
			return fmt.Errorf("%v: draw %d: %+v becomes %+v, but goroutines share the settings", p, draw, before, used)
		}
		return nil
	})
}

func augmentationAllocates(fresh func() augment.Augmentation) (err error) {
	a := fresh()
	for _, p := range pictures(a) {
		if _, err := augmented(a, p, 0, 0); err != nil {
			return err
		}
		change, err := prepared(a, p.shape)
		if err != nil {
			return fmt.Errorf("%v: %w", p, err)
		}
		out, r := make([]float32, len(p.values)), stream(0)
		if err := allocates(func() { change(out, p.values, r) }); err != nil {
			return fmt.Errorf("%v: %w, once the working memory has grown", p, err)
		}
	}
	return nil
}

package laws

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"tessera/data/augment"
	"tessera/internal/volume"
)

// Augmentation contains the laws of augmentations, tested on images from one pixel to colours with 20 draws each.
var Augmentation = inTrials(eachPicture, []law[augmentTrial]{
	{"takes images of every shape", augmentTrial.everyShape},
	{"keeps values in [0,1]", augmentTrial.inRange},
	{"gives the same bits for the same stream", augmentTrial.repeatable},
	{"writes every value of the image, whatever it contained", augmentTrial.everyValue},
	{"writes inside the image only", augmentTrial.inside},
	{"never writes the source", augmentTrial.readsSource},
	{"has no memory of earlier images", augmentTrial.forgets},
	{"never changes its settings", augmentTrial.keepsSettings},
	{"does not allocate", augmentTrial.allocates},
})

// draws is the number of draws per image.
const draws = 20

type augmentTrial struct {
	writing[augment.Augmentation]
	augment.Augmentation                           // the same augmentation in all trials
	changes              map[string]augment.Change // changes of the earlier trials, by shape
	name                 string
	shape                []int
	image                []float32
	draw                 int
}

func (t augmentTrial) String() string { return fmt.Sprintf("%s %v: draw %d", t.name, t.shape, t.draw) }

// eachPicture calls try for test images of every shape that the augmentation accepts: random, black, white and nearly black
// images.
func eachPicture(fresh func() augment.Augmentation, try func(t augmentTrial)) error {
	r, refused, accepted := source(), error(nil), false
	t := augmentTrial{Augmentation: fresh(), changes: map[string]augment.Change{}}
	for _, t.shape = range [][]int{{1, 1}, {1, 9}, {9, 1}, {1, 1, 3}, {2, 3}, {5, 4, 3}, {12, 12}, {28, 28, 1}} {
		err := guarded(func() error { _, err := augment.Prepare(t.Augmentation, t.shape); return err })
		if err != nil && !errors.Is(err, errPanics) {
			refused = err
			continue
		}
		accepted = true
		n := volume.Of(t.shape)
		random, binary := make([]float32, n), make([]float32, n)
		for i := range n {
			random[i], binary[i] = r.Float32(), float32(r.IntN(2))
		}
		for _, p := range []struct {
			name   string
			values []float32
		}{
			{"random", random}, {"black and white", binary},
			{"black", make([]float32, n)}, {"white", slices.Repeat([]float32{1}, n)},
			{"dark", slices.Repeat([]float32{math.SmallestNonzeroFloat32}, n)},
		} {
			for t.draw = range draws {
				t.name, t.image = p.name, p.values
				t.writing = writing[augment.Augmentation]{fresh, n, func(a augment.Augmentation, dst []float32) error {
					change, err := augment.Prepare(a, t.shape)
					if err == nil {
						change(dst, slices.Clone(t.image), t.stream())
					}
					return err
				}}
				try(t)
			}
		}
	}
	if !accepted {
		return fmt.Errorf("refuses the shape of every test image: %w", refused)
	}
	return nil
}

func (t augmentTrial) stream() *rand.Rand { return rand.New(rand.NewPCG(uint64(t.draw), 784)) }

func (t augmentTrial) everyShape() error {
	shape := slices.Clone(t.shape)
	if _, err := t.written(); err != nil {
		return err
	}
	if !slices.Equal(shape, t.shape) {
		return fmt.Errorf("%v becomes %v", shape, t.shape)
	}
	return nil
}

func (t augmentTrial) inRange() error {
	out, err := t.written()
	if i := slices.IndexFunc(out, func(v float32) bool { return !(v >= 0 && v <= 1) }); i >= 0 {
		return fmt.Errorf("value %d becomes %v", i, out[i])
	}
	return err
}

func (t augmentTrial) readsSource() error {
	src := slices.Clone(t.image)
	change, err := augment.Prepare(t.Augmentation, t.shape)
	if err != nil {
		return err
	}
	change(make([]float32, len(src)), src, t.stream())
	return differ("source", src, t.image)
}

// forgets compares one change that is used for all images of a shape with a new change for each image.
func (t augmentTrial) forgets() error {
	want, err := t.written()
	if err != nil {
		return err
	}
	shape := fmt.Sprint(t.shape)
	if t.changes[shape] == nil {
		if t.changes[shape], err = augment.Prepare(t.Augmentation, t.shape); err != nil {
			return err
		}
	}
	out := make([]float32, len(t.image))
	t.changes[shape](out, slices.Clone(t.image), t.stream())
	return differ("after other images", out, want)
}

func (t augmentTrial) allocates() error {
	if t.draw > 0 {
		return nil
	}
	change, err := augment.Prepare(t.Augmentation, t.shape)
	if err != nil {
		return err
	}
	out, r := make([]float32, len(t.image)), t.stream()
	if err := allocates(func() { change(out, t.image, r) }); err != nil {
		return fmt.Errorf("%w, once the working memory has grown", err)
	}
	return nil
}

package laws_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tessera/data/augment"
	"tessera/laws"
)

// wrongAugmentation is an augmentation with the behaviour that a test specifies.
type wrongAugmentation struct {
	Calls int
	apply *func(a *wrongAugmentation, dst, src []float32, r *rand.Rand, memory []float32)
}

func (a *wrongAugmentation) Prepare(shape []int) (augment.Change, error) {
	memory := make([]float32, 1)
	return func(dst, src []float32, r *rand.Rand) { (*a.apply)(a, dst, src, r, memory) }, nil
}

// augmentsBy returns a constructor of augmentations that call f.
func augmentsBy(f func(a *wrongAugmentation, dst, src []float32, r *rand.Rand, memory []float32)) func() augment.Augmentation {
	return func() augment.Augmentation { return &wrongAugmentation{apply: &f} }
}

// noShape is an augmentation that rejects every image.
type noShape struct{ augment.Flip }

func (*noShape) Prepare([]int) (augment.Change, error) { return nil, errors.New("no image suits") }

// needsWidth is an augmentation that panics for images with fewer than 5 columns.
type needsWidth struct{}

func (*needsWidth) Prepare(shape []int) (augment.Change, error) {
	memory := make([]float32, shape[1]-5)
	return func(dst, src []float32, _ *rand.Rand) {
		clear(memory)
		copy(dst, src)
	}, nil
}

// wrongAugmentations maps a law to an augmentation that breaks it.
func wrongAugmentations() map[string]func() augment.Augmentation {
	calls := 0
	var sink []float32
	type (
		part  = *wrongAugmentation
		draw  = *rand.Rand
		space = []float32
	)
	return map[string]func() augment.Augmentation{
		"takes images of every shape": augmentsBy(func(_ part, dst, src []float32, _ draw, _ space) {
			copy(dst, src)
			dst[0] = src[3]
		}),
		"keeps values in [0,1]": augmentsBy(func(_ part, dst, src []float32, r draw, _ space) {
			for i, v := range src {
				dst[i] = v + 0.01*r.Float32()
			}
		}),
		"gives the same bits for the same stream": augmentsBy(func(_ part, dst, src []float32, _ draw, _ space) {
			copy(dst, src)
			calls++
			dst[0] = float32(calls%7) / 7
		}),
		"writes every value of the image, whatever it contained": augmentsBy(func(_ part, dst, src []float32, r draw, _ space) {
			at := r.IntN(len(src))
			copy(dst[:at], src)
			copy(dst[at+1:], src[at+1:])
		}),
		"writes inside the image only": augmentsBy(func(_ part, dst, src []float32, _ draw, _ space) {
			if copy(dst, src); len(dst) < cap(dst) {
				dst[:len(dst)+1][len(dst)] = 0
			}
		}),
		"never writes the source": augmentsBy(func(_ part, dst, src []float32, r draw, _ space) {
			src[r.IntN(len(src))] = 0.5
			copy(dst, src)
		}),
		"has no memory of earlier images": augmentsBy(func(_ part, dst, src []float32, _ draw, memory space) {
			copy(dst, src)
			dst[0] = memory[0]
			memory[0] = 0.25
		}),
		"never changes its settings": augmentsBy(func(a part, dst, src []float32, _ draw, _ space) {
			a.Calls++
			copy(dst, src)
		}),
		"does not allocate": augmentsBy(func(_ part, dst, src []float32, _ draw, _ space) {
			sink = slices.Clone(src)
			copy(dst, sink)
		}),
	}
}

func TestWrongAugmentationsBreakTheirLaw(t *testing.T) {
	mustBreak(t, laws.Augmentation, wrongAugmentations())
}

func TestTheRightAugmentationBreaksNoLaw(t *testing.T) {
	right := augmentsBy(func(_ *wrongAugmentation, dst, src []float32, r *rand.Rand, _ []float32) {
		f := r.Float32()
		for i, v := range src {
			dst[i] = f * v
		}
	})
	if got := laws.Broken(laws.Augmentation, right); len(got) > 0 {
		t.Errorf("the right augmentation breaks %q", got)
	}
}

func TestAnAugmentationThatTakesNoShapeObeysNothing(t *testing.T) {
	got := laws.Broken(laws.Augmentation, func() augment.Augmentation { return &noShape{} })
	if !slices.Contains(got, "takes images of every shape") {
		t.Errorf("breaks %q only", got)
	}
}

func TestAnAugmentationWhosePreparePanicsBreaksEveryLaw(t *testing.T) {
	broken := laws.Augmentation.Test(func() augment.Augmentation { return &needsWidth{} })
	for _, law := range laws.Augmentation.Names() {
		if err := broken[law]; err == nil || !strings.HasPrefix(err.Error(), "random [1 1]: draw 0: panics: ") {
			t.Errorf("%q: got %v", law, err)
		}
	}
}

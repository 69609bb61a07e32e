package data

import (
	"context"
	"slices"
	"strings"

	"tessera/internal/lists"
	"tessera/internal/random"
)

// CaptionColumn is the column of the captions of [Captions].
const CaptionColumn = "caption"

func init() {
	Registry.Register("captions", "generated figures of the swimmer with a sentence that says where its limbs are; test figures have combinations that no training figure has",
		func() Source { return &Captions{Count: 4000, Tests: 1000, Noise: 0.1, Seed: 1} })
}

// Captions is a generated data set of two modalities: noisy figures of [Swimmer], moved by up to two pixels, and the column `caption`, a sentence of
// 12 words in any order of the limbs, such as "left arm back right leg outwards left leg straight right arm sideways", as numbers of its words. The
// label is the combination of positions, whose class has the same sentence, with the limbs in order, as its name. Of the 256 combinations 51 occur
// only among the test samples. Equal keys give equal samples; a larger set begins with those of a smaller one.
type Captions struct {
	Count int     `toml:"count" want:"in [1,1000000]" doc:"number of training samples"`
	Tests int     `toml:"tests" want:"in [0,1000000]" doc:"number of test samples; 0 for none"`
	Noise float64 `toml:"noise" want:">= 0" doc:"standard deviation of the Gaussian noise of every pixel"`
	Seed  uint64  `toml:"seed" doc:"seed of the samples and of the combinations that are held back; independent of the run's seed"`
}

// captionWords are the words of captions by their numbers. The last one is in the place of words that a text for a model does not have.
var captionWords = []string{"left", "right", "arm", "leg", "sideways", "outwards", "straight", "back", "<pad>"}

// limbWords has the first two words of every limb, in the order of [limbs].
var limbWords = [4][2]int32{{0, 2}, {1, 2}, {0, 3}, {1, 3}}

const (
	captionLength = 3 * len(limbWords)
	combinations  = 4 * 4 * 4 * 4
	heldBack      = combinations / 5
	farthest      = 2 // pixels by which a figure is moved
)

func (c *Captions) HasTest() bool { return c.Tests > 0 }

func (c *Captions) Shape(Dirs) ([]int, bool) { return []int{swimmerSide, swimmerSide}, true }

func (c *Captions) Classes(Dirs) (int, bool) { return combinations, true }

func (c *Captions) column() Column {
	return Column{Name: CaptionColumn, Shape: []int{captionLength}, Type: Whole, Names: captionWords}
}

// DescribeColumns implements [Columned].
func (c *Captions) DescribeColumns(Dirs) []Column { return []Column{c.column()} }

// captionOf returns the words of a combination, with its limbs in the given order.
func captionOf(combination int, order []int) (words []int32) {
	for _, limb := range order {
		words = append(words, limbWords[limb][0], limbWords[limb][1], int32(4+combination>>(2*limb)&3))
	}
	return words
}

// captionTexts returns the sentences of all combinations, in order.
func captionTexts() (texts []string) {
	for combination := range combinations {
		words := lists.Map(captionOf(combination, []int{0, 1, 2, 3}), func(word int32) string { return captionWords[word] })
		texts = append(texts, strings.Join(words, " "))
	}
	return texts
}

func (c *Captions) Load(ctx context.Context, _ Dirs, need Need) (*Set, error) {
	order := random.Stream(c.Seed, "captions held back", 0).Perm(combinations)
	set := &Set{Name: "captions", Shape: []int{swimmerSide, swimmerSide}, HasTest: c.HasTest(), Classes: captionTexts()}
	var err error
	if need.Train {
		if set.Train, err = c.samples(ctx, "captions", c.Count, order[heldBack:]); err != nil {
			return nil, err
		}
	}
	if need.Test && c.HasTest() {
		set.Test, err = c.samples(ctx, "captions of tests", c.Tests, order[:heldBack])
	}
	return set, err
}

func (c *Captions) samples(ctx context.Context, stream string, count int, from []int) (*Images, error) {
	size, err := generatedSize("captions", count, swimmerPixels)
	if err != nil {
		return nil, err
	}
	parts := swimmerParts()
	values, labels, words := make([]float32, size), make([]int, count), make([]int32, 0, count*captionLength)
	for i := range count {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r := random.Stream(c.Seed, stream, uint64(i))
		labels[i] = from[r.IntN(len(from))]
		words = append(words, captionOf(labels[i], r.Perm(len(limbs)))...)
		down, right := r.IntN(2*farthest+1)-farthest, r.IntN(2*farthest+1)-farthest
		image := values[i*swimmerPixels : (i+1)*swimmerPixels]
		shown := [][]float32{parts[0]}
		for limb := range limbs {
			shown = append(shown, parts[1+4*limb+labels[i]>>(2*limb)&3])
		}
		for _, part := range shown {
			for k, v := range part {
				if v > 0 { // no part is nearer than farthest to the border
					image[k+down*swimmerSide+right] = 1
				}
			}
		}
		for k, v := range image {
			image[k] = min(max(v+float32(c.Noise*r.NormFloat64()), 0), 1)
		}
	}
	images, err := NewFloats([]int{swimmerSide, swimmerSide}, values, labels)
	if err != nil {
		return nil, err
	}
	return images.WithColumns(&Values{Column: c.column(), whole: slices.Clip(words)})
}

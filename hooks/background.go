package hooks

import (
	"slices"

	"tessera/config/part"
	"tessera/data"
	"tessera/internal/lists"
	"tessera/internal/vectors"
)

// Background keeps what is in every image in one unit. Such a part, for example the torso of the swimmer, is added in every image,
// and if other atoms have shares of it, the reconstructions can be the same: no reconstruction error decides between them.
//
// Pixel i of the background is b_i = max(0, q_i), with the quantile q_i of the pixel's values over the first `sample` training
// images: of n known values in ascending order the one with the index floor(quantile n), from 0. With a low quantile instead of the
// minimum a few images may lack the background, and noise has less effect. If ||b||² is less than 0.05 times the mean ||x||² of
// these images, they have no background, and the hook does nothing. With v = b / ||b|| it changes the atoms before each epoch but
// the first:
//
//   - The unit of the background is the one whose atom has the largest cosine with v, if it is more than 0.9; it must contribute to at
//     least one of these images. If there is none, the unit with the smallest sum of squared contributions to them is re-initialised
//     with the direction v: its weights get the mean norm of those of the other units, its bias 0, and its other parameters their
//     mean.
//   - From every other atom w with a cosine from 0.05 to 0.995 with v, min(max(0, w), (w·v) v) is subtracted. Of an atom with a
//     larger one nothing would be left.
//
// The constraints project the new values, and the optimizer's state of these values is set to 0. Moving averages of the parameters
// get the new values too. If images are sorted, for example by class, `sample` should contain all kinds. `until` ends the changes,
// so that the last epochs fit the pixels in which a part overlaps the background. Unknown values of images with missing values do
// not count. The procedure is deterministic, and does not depend on the scale of the images.
//
// The encoder must have exactly one layer with weights, a dense layer on the pixels. The decoder's first layer with weights must be
// a dense layer from the units to the pixels, or the decoder must be tied.
//
// Source: ours. The offset of Laurberg and Hansen, On Affine Non-negative Matrix Factorization, ICASSP 2007, is such a part too, but
// with the same weight in every image, and learned with the other parts.
type Background struct {
	Quantile float64 `toml:"quantile" want:"in [0,1)" doc:"a pixel of the background is this quantile of its values; 0 for the minimum"`
	Sample   int     `toml:"sample" want:"> 0" doc:"number of training samples, from the first"`
	Until    int     `toml:"until" want:">= 0" doc:"epoch after which no atom is changed; 0 for none"`
}

func init() {
	Registry.Register("background", "keeps what is in every sample in one unit", func() Hook { return &Background{Quantile: 0.01, Sample: 1000} })
}

const (
	leastBackground = 0.05 // of the mean squared norm of the images
	leastShare      = 0.05 // cosine of an atom and the background from which the background is subtracted

	// copyOfBackground is the cosine above which hardly a tenth of an atom's norm would be left: nothing but rounding, at the end.
	copyOfBackground = 0.995
)

func (*Background) NeedsSteps() (problem, hint string) {
	return "%s cannot continue from atoms that the hook changes: its curvature history would be wrong", "remove the hook"
}

func (*Background) Replicated() (state bool) { return true }

func (*Background) Suits(m Declared) error {
	encoder, err := suitable(m, "background changes the atoms of a decoder, but the model has none")
	if err != nil {
		return err
	}
	if m.Decoder != "dense" && m.Decoder != "tied" {
		return notDenseDecoder
	}
	return changeable(m.Parameters("decoder.*.weight"), encoder)
}

// changeable returns an error if no atom of the decoder can change; weights are all weights of the decoder.
func changeable(weights []*Parameter, encoder *Parameter) error {
	switch {
	case len(weights) == 0: // tied
		return nil
	case !slices.Equal(weights[0].Shape, []int{encoder.Shape[1], encoder.Shape[0]}):
		return notDenseDecoder
	case !weights[0].Trainable:
		return part.KeyError{Key: "freeze", Problem: weights[0].Path + " is frozen: no atom can be changed"}
	}
	return nil
}

var notDenseDecoder = part.KeyError{Key: "decoder",
	Problem: "background needs a decoder whose first layer with weights is a dense layer from the units to the pixels, or a tied one"}

func (b *Background) Attach(t Training) (*Active, error) {
	weights, err := unitWeightsOf(t)
	if err != nil {
		return nil, err
	}
	if err := changeable(t.Parameters("decoder.*.weight"), weights.encoder); err != nil {
		return nil, err
	}
	h := &separating{Background: b, unitWeights: weights}
	return &Active{Begin: h.begin, BeginEpoch: h.beginEpoch}, nil
}

// separating is the hook's state in a training.
type separating struct {
	*Background
	*unitWeights
	sample int
	encode Program
	v      []float32 // the background, scaled to norm 1; nil for none
}

// begin finds the background and compiles the program.
func (h *separating) begin() (err error) {
	images := h.training.Images()
	if images.Pixels() != h.encoder.Shape[0] {
		return notOneDense
	}
	h.sample = min(h.Sample, images.Len())
	if h.v = h.background(); h.v != nil {
		h.encode, err = h.training.Compile(Code, min(h.sample, reviveBatch))
	}
	return err
}

// background returns what is in every image of the sample, scaled to norm 1, or nil.
func (h *separating) background() []float32 {
	pixels := h.pixels(h.sample)
	width := h.training.Images().Pixels()
	known := h.known()
	v := make([]float32, width)
	var values []float32
	meanSquare := 0.0 // of an image, from the known values of each pixel
	for i := range v {
		values = values[:0]
		for at := i; at < len(pixels); at += width {
			if known == nil || known[at] != 0 {
				values = append(values, pixels[at])
			}
		}
		if slices.Sort(values); len(values) > 0 {
			v[i] = max(0, values[int(h.Quantile*float64(len(values)))])
			meanSquare += squares(values, 0, 1, len(values)) / float64(len(values))
		}
	}
	size := squares(v, 0, 1, width)
	if size == 0 || size < leastBackground*meanSquare {
		return nil
	}
	return scaled(v, size)
}

// known returns 0 for the unknown values of the sample, or nil if all are known.
func (h *separating) known() []float32 {
	images := h.training.Images()
	if !images.Holed() {
		return nil
	}
	first := lists.Range(0, h.sample)
	return images.Subset(first).All()[data.ObservedColumn]
}

func (h *separating) beginEpoch() error {
	if epoch := h.training.Epoch(); h.v == nil || epoch == 0 || h.Until > 0 && epoch > h.Until {
		return nil
	}
	effects, err := h.effects()
	if err != nil {
		return err
	}
	owner, largest := -1, sameDirection
	shares := make([]float64, h.units) // cosines
	for unit := range h.units {
		if a, ok := h.atom(unit); ok {
			shares[unit] = vectors.Dot(a.values, h.v)
		}
		if effects[unit] > 0 && shares[unit] > largest {
			owner, largest = unit, shares[unit]
		}
	}
	if owner < 0 {
		owner = slices.Index(effects, slices.Min(effects))
		replaced := make([]bool, h.units)
		replaced[owner] = true
		h.draw(replaced, func() ([]float32, bool) { return h.v, true })
	}
	changed := false
	for unit, share := range shares {
		if unit != owner && share >= leastShare && share <= copyOfBackground {
			h.subtract(unit, h.v)
			changed = true
		}
	}
	if changed {
		h.training.Project(h.atoms())
	}
	return nil
}

// effects returns each unit's sum of squared contributions to the sample.
func (h *separating) effects() ([]float64, error) {
	effects := make([]float64, h.units)
	err := h.run(Code, h.encode, h.sample, func(_, code []float32) {
		for j, v := range code {
			effects[j] += float64(v) * float64(v)
		}
	})
	for j := range effects {
		first, stride, n := h.values(h.atoms(), j)
		effects[j] *= squares(h.atoms().Data, first, stride, n)
	}
	return effects, err
}

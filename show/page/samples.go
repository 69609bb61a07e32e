package page

import (
	"fmt"
	"io"
	"math"
	"slices"

	"tessera/losses"
	"tessera/metrics"
	"tessera/show/figures"
)

// shownSamples is how many images the slider offers.
const shownSamples = 30

// Samples are images beside what the model makes of them.
type Samples struct {
	Noun     string   // what one is called: "image" or "sample"
	Operator bool     // there are max-approximations
	Columns  *Columns // of vectors; nil for images
	Error    string
	Each     []Sample
}

// Sample is one image with its reconstruction, its max-approximation and its code.
type Sample struct {
	Number        int
	Class         string
	Original      picture
	Reconstructed picture // "" without a decoder
	Difference    picture // |x - y|, on the scale of the images
	Dilated       picture // "" without atoms
	Approximated  picture
	MSE           float64
	ApproxMSE     float64
	Code          []float64
	Most          []UnitLink // the units that contribute most
}

// samples reconstructs a few images of every class.
func (v *view) samples() (*Samples, error) {
	chosen := v.chosen()
	pixels := len(v.images) / v.n
	images := make([]float32, 0, len(chosen)*pixels)
	codes := make([]float32, 0, len(chosen)*v.run.Units())
	for _, i := range chosen {
		images = append(images, v.image(i)...)
		codes = append(codes, v.codes32[i*v.run.Units():(i+1)*v.run.Units()]...)
	}
	s := &Samples{Noun: v.noun()}
	var outputs, approximated, dilated []float32
	var err error
	if slices.Contains(v.run.Values(), losses.Output) {
		if outputs, err = v.run.Decode(codes); err != nil {
			return nil, err
		}
	}
	if v.direct && len(v.run.Shape()) > 1 {
		s.Operator = true
		if dilated, approximated, err = v.approximate(images, codes); err != nil {
			return nil, err
		}
	}
	p := v.painter.forVectors(v.scaled(images), v.scaled(outputs))
	s.Columns = columnsOf(v.run, p.most)
	for at, i := range chosen {
		one := v.sampleOf(p, i, at, images, outputs)
		if s.Operator {
			a, b := dilated[at*pixels:(at+1)*pixels], approximated[at*pixels:(at+1)*pixels]
			one.Dilated, one.Approximated = v.painter.draw(v.tone, a), v.painter.draw(v.tone, b)
			one.ApproxMSE = round(meanSquare(v.differences(a, b)))
		}
		s.Each = append(s.Each, one)
	}
	return s, nil
}

// sampleOf is image i with its reconstruction, the at-th of the outputs.
func (v *view) sampleOf(p painter, i, at int, images, outputs []float32) Sample {
	pixels := len(v.images) / v.n
	x := images[at*pixels : (at+1)*pixels]
	one := Sample{Number: v.number(i), Original: p.draw(v.tone, v.scaled(x))}
	if v.classes != nil && v.labels[i] >= 0 && v.labels[i] < len(v.classes) {
		one.Class = v.classes[v.labels[i]]
	}
	if outputs != nil {
		y := outputs[at*pixels : (at+1)*pixels]
		difference := v.differences(x, y)
		one.Reconstructed, one.Difference = p.draw(v.tone, v.scaled(y)), p.draw(figures.Unit, difference)
		one.MSE = round(meanSquare(difference))
	}
	order := make([]int, v.usage.k)
	for j := range v.usage.k {
		order[j] = j
		one.Code = append(one.Code, round(v.usage.of(i, j)))
	}
	slices.SortStableFunc(order, func(a, b int) int { return compare(math.Abs(one.Code[b]), math.Abs(one.Code[a])) })
	for _, j := range order[:min(typical, len(order))] {
		if one.Code[j] != 0 && j < mostUnits {
			one.Most = append(one.Most, UnitLink{j, fmt.Sprintf("%d: %s", j, short(one.Code[j]))})
		}
	}
	return one
}

// chosen are the numbers of the images that are shown: the first ones, in turn of every class.
func (v *view) chosen() []int {
	most := min(shownSamples, v.n)
	if v.classes == nil {
		all := make([]int, most)
		for i := range all {
			all[i] = i * v.n / most
		}
		return all
	}
	each := (most + len(v.classes) - 1) / len(v.classes)
	var all []int
	for round := range each {
		for c := range v.classes {
			seen := 0
			for i, label := range v.labels {
				if label != c {
					continue
				}
				if seen == round {
					all = append(all, i)
					break
				}
				seen++
			}
		}
	}
	return all[:min(most, len(all))]
}

// approximate returns the dilated images and what the decoder makes of their codes with dilated atoms.
func (v *view) approximate(images, codes []float32) (dilated, approximated []float32, err error) {
	m := metrics.Dilation()
	coder, err := m.Coder(v.run, false)
	if err != nil {
		return nil, nil, err
	}
	if c, ok := coder.(io.Closer); ok {
		defer c.Close()
	}
	if approximated, err = coder.Decode(codes); err != nil {
		return nil, nil, err
	}
	pixels := len(v.images) / v.n
	whole := &metrics.Atoms{Shape: v.run.Shape(), Count: len(images) / pixels, Values: images}
	operated, err := whole.Apply(m)
	if err != nil {
		return nil, nil, err
	}
	return operated.Values, approximated, nil
}

// differences are |x - y| of scaled values, as those of the metrics are.
func (v *view) differences(x, y []float32) []float32 {
	all := make([]float32, len(x))
	for p := range x {
		d := math.Abs(float64(x[p]) - float64(y[p]))
		if v.scaling != nil {
			d *= math.Abs(float64(v.scaling.Factor[p]))
		}
		all[p] = float32(d)
	}
	return all
}

// meanSquare is the mean of the squares.
func meanSquare(values []float32) float64 {
	sum := 0.0
	for _, v := range values {
		sum += float64(v) * float64(v)
	}
	return sum / float64(len(values))
}

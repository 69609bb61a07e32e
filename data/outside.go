package data

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"tessera/internal/numeral"
	"tessera/internal/volume"
)

// Seen is what a model knows of the samples to which it was fitted.
type Seen struct {
	Shape     []int    // of a sample
	Low, High float32  // range of all values
	Means     Means    // of the values that none of them lacks
	Scaling   *Scaling // nil for none
}

// Notes say what is unlike the fitted samples in others, before scaling: missing values that were never missing, and values outside of the range. names
// are those of the values of a sample, nil for none; place describes sample i.
func (s Seen) Notes(samples []float32, names []string, place func(i int) string) (notes []string) {
	if len(samples) == 0 {
		return nil
	}
	if text := s.missing(samples, names, place); text != "" {
		notes = append(notes, text)
	}
	text := ""
	if s.Scaling != nil && s.Scaling.Clip && !s.Scaling.IsExact() && len(s.Shape) == 1 {
		text = s.clipped(samples, names, place)
	} else {
		text = outside(samples, s.Low, s.High)
	}
	if text != "" {
		notes = append(notes, text)
	}
	return notes
}

// overshoot is the distance by which values of resampled pixels may lie outside [0,1].
const overshoot = 0.1

// Pixels reports whether the values were in [0,1], as are pixels divided by 255.
func (s Seen) Pixels() bool { return s.Low >= -overshoot && s.High <= 1+overshoot }

// otherUnit says that one of two sets of samples was read from bytes, and the other has values that are no pixels.
func otherUnit(bytes bool, low, high float32, others string) string {
	if !bytes || (Seen{Low: low, High: high}).Pixels() {
		return ""
	}
	return fmt.Sprintf("uint8 values are divided by 255, and %s are from %g to %g: save all with the same type, for example as float32", others, low, high)
}

// Unlike returns [Seen.Notes] of samples.
func (m *Images) Unlike(s Seen) []string {
	if text := otherUnit(m.isBytes(), s.Low, s.High, "the values of the training"); text != "" {
		return []string{text}
	}
	if m.Sparse() || m.OnDisk() {
		low, high := m.Scaled(nil).Range()
		s.Shape, s.Means, s.Scaling = nil, nil, nil
		return s.Notes([]float32{low, high}, nil, nil)
	}
	return s.Notes(m.Raw(), m.columns, m.placeOf)
}

// odd are the values of a column that are unlike the training's.
type odd struct {
	count, at int     // number, and the sample of the first or the farthest
	by        float32 // its distance from the range, in widths
}

func (s Seen) missing(samples []float32, names []string, place func(i int) string) string {
	if len(s.Means) == 0 {
		return ""
	}
	found, width := map[int]odd{}, volume.Of(s.Shape)
	for k, v := range samples {
		if _, ok := s.Means[k%width]; !ok || v == v {
			continue
		}
		o, ok := found[k%width]
		if !ok {
			o.at = k / width
		}
		o.count++
		found[k%width] = o
	}
	return noteOf(found, "missing values count as the mean of the training, where no sample lacked them", func(k int, o odd) string {
		return fmt.Sprintf("%s counts as %s in %s (first: %s)", valueName(names, k), numeral.Float(s.Means[k]), numeral.Of(o.count, "sample"), place(o.at))
	})
}

// clipped says which values a scaling clips.
func (s Seen) clipped(samples []float32, names []string, place func(i int) string) string {
	const slack = 1e-3 // of the width of the range
	found, width := map[int]odd{}, s.Shape[0]
	for k, v := range s.Scaling.Unclipped(samples) {
		by := max(-v, v-1)
		if !(by > slack) {
			continue
		}
		o := found[k%width]
		if o.count++; by > o.by {
			o.at, o.by = k/width, by
		}
		found[k%width] = o
	}
	low, high := make([]float32, width), slices.Repeat([]float32{1}, width)
	s.Scaling.Undo(low)
	s.Scaling.Undo(high)
	return noteOf(found, "values outside of the range of the training count as its end", func(k int, o odd) string {
		return fmt.Sprintf("%s has %s outside of %s to %s (farthest: %s, %s)", valueName(names, k), numeral.Of(o.count, "value"),
			numeral.Float(float64(low[k])), numeral.Float(float64(high[k])), numeral.Float(float64(samples[o.at*width+k])), place(o.at))
	})
}

// noteOf returns a note of some columns, "" for none.
func noteOf(found map[int]odd, says string, text func(k int, o odd) string) string {
	const most = 4
	var texts []string
	for _, k := range slices.Sorted(maps.Keys(found)) {
		if texts = append(texts, text(k, found[k])); len(texts) == most && len(found) > most {
			texts = append(texts, fmt.Sprintf("and %d more columns", len(found)-most))
			break
		}
	}
	if texts == nil {
		return ""
	}
	return says + ": " + strings.Join(texts, "; ")
}

// valueName returns the name of a value of a sample for a message.
func valueName(names []string, k int) string {
	if k < len(names) {
		return fmt.Sprintf("column %.60q", names[k])
	}
	return fmt.Sprintf("value %d", k)
}

// rangeSlack is the accepted distance of values from the range of the fitted samples, as a fraction of its width. For the
// range [0,1] no distance is accepted.
const rangeSlack = 0.5

// outside says that values are outside of the range of the fitted samples, from least to most, and what to do: they probably have another scale.
// It returns "" for others, and ignores NaN, which means a missing entry.
func outside(values []float32, least, most float32) string {
	slack := rangeSlack * (most - least)
	if least == 0 && most == 1 {
		slack = 0
	}
	low, high := float32(math.Inf(1)), float32(math.Inf(-1))
	for _, v := range values {
		if v == v {
			low, high = min(low, v), max(high, v)
		}
	}
	if low >= least-slack && high <= most+slack {
		return ""
	}
	hint := "scale them as the training images were scaled"
	if least >= 0 && most <= 1 && low >= 0 && high > 1 && high <= 255 {
		hint = "save them as uint8, or divide them by 255"
	}
	return fmt.Sprintf("values from %g to %g, outside of [%g,%g], the range of the training: %s", low, high, least, most, hint)
}

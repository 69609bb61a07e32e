package page

import (
	"fmt"
	"io"
	"math"
	"slices"

	"tessera/apps/show/figures"
	"tessera/data"
	"tessera/internal/numeral"
	"tessera/internal/vectors"
	"tessera/metrics"
)

// shownSamples is the maximum number of images in the slider.
const shownSamples = 30

// Samples are images with their reconstructions, approximations and codes.
type Samples struct {
	Noun     string   // noun for a sample: "image" or "sample"
	Operator bool     // max-approximations are shown
	Columns  *Columns // columns of vectors; nil for images
	Error    string
	Each     []Sample
}

// Sample is one image with its reconstruction, its max-approximation and its code.
type Sample struct {
	Number        int
	Class         string
	Original      picture
	Reconstructed picture // the reconstruction; "" without a decoder
	Difference    picture // |x - y|, scaled like the images
	Dilated       picture // the max-approximation; "" without atoms
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
	switch reconstructs, fromCodes := metrics.Decodes(v.run); {
	case fromCodes:
		if outputs, err = v.run.Decode(codes); err != nil {
			return nil, err
		}
	case reconstructs:
		if outputs, err = metrics.Reconstruct(v.run, images); err != nil {
			return nil, err
		}
	}
	if v.direct && len(v.run.Shape()) > 1 && v.observed == nil {
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

// sampleOf returns image i with its reconstruction, which is the output with index at.
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
		known := difference
		if v.observed != nil {
			known = nil
			for k, there := range v.observed[i*pixels : (i+1)*pixels] {
				if there != 0 {
					known = append(known, difference[k])
				} else {
					difference[k] = 0
				}
			}
		}
		one.Reconstructed, one.Difference = p.draw(v.tone, v.scaled(y)), p.draw(figures.Unit, difference)
		one.MSE = round(meanSquare(known))
	}
	order := make([]int, v.usage.k)
	for j := range v.usage.k {
		order[j] = j
		one.Code = append(one.Code, round(v.usage.of(i, j)))
	}
	slices.SortStableFunc(order, func(a, b int) int { return compare(math.Abs(one.Code[b]), math.Abs(one.Code[a])) })
	for _, j := range order[:min(typical, len(order))] {
		if one.Code[j] != 0 && j < mostUnits {
			one.Most = append(one.Most, UnitLink{j, fmt.Sprintf("%d: %s", j, numeral.Float(one.Code[j]))})
		}
	}
	return one
}

// chosen returns the indices of the images that are shown: the first ones of each class, alternating between the classes.
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

// approximate returns the dilated images, and the images decoded from their codes with dilated atoms.
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

// differences returns |x - y| of scaled values, like the errors in the metrics.
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

// meanSquare returns the mean of the squares.
func meanSquare(values []float32) float64 {
	sum := 0.0
	for _, v := range values {
		sum += float64(v) * float64(v)
	}
	return sum / float64(max(1, len(values)))
}

// HeadPlots contains the confusion matrix and the calibration of one head.
type HeadPlots struct {
	Name     string
	Noun     string // noun for a sample: "image" or "sample"
	Classes  []string
	Rows     []ConfusionRow
	Accuracy string
	Images   int
	Bins     []CalibrationBin
	ECE      string // expected calibration error
	PostHoc  string // description of the procedures fitted after the training; "" if there are none
}

// ConfusionRow is the row of one true class.
type ConfusionRow struct {
	Class string
	Cells []ConfusionCell
}

// ConfusionCell is the number of images of a true class for which a head predicts a certain class.
type ConfusionCell struct {
	Count int
	Share int  // percentage of the images of the class
	Right bool // the predicted class is the true one
}

// CalibrationBin describes the images whose confidence lies in one bin.
type CalibrationBin struct {
	Images               int
	Confidence, Accuracy float64 // means over the images of the bin
	X, Y                 string  // position of the mark in a plot of 100 by 100
	Size                 string  // radius of the mark
}

// heads classifies the images by every head that a loss compares with classes, provided that the images have these classes.
func (v *view) heads() (list []HeadPlots, err error) {
	for _, name := range v.run.ClassHeads() {
		labels := v.labels
		if column := v.run.ClassColumn(name); column != data.LabelsColumn {
			if _, ok := v.data.Column(column); !ok {
				continue
			}
			labels = v.data.Classes(column)
		}
		if slices.IndexFunc(labels, func(class int) bool { return class >= 0 }) < 0 {
			continue
		}
		columns := v.data.Scaled(nil).All()
		if columns == nil {
			columns = map[string][]float32{}
		}
		columns[data.ImagesColumn] = v.images
		logits, err := v.run.ValueOf(name, columns)
		if err != nil {
			return nil, err
		}
		if h := v.head(name, logits, labels); h != nil {
			list = append(list, *h)
		}
	}
	return list, nil
}

// head compares the classes that a head predicts with the labels, nil if there are too many classes to show. It leaves out samples without
// a class, whose logits are not finite.
func (v *view) head(name string, logits []float32, labels []int) *HeadPlots {
	names := v.run.HeadClasses(name)
	classes := len(names)
	if classes > mostClasses {
		return nil
	}
	counts := make([][]int, classes)
	for c := range counts {
		counts[c] = make([]int, classes)
	}
	var sums [15]binSum
	h := &HeadPlots{Name: name, Noun: v.noun(), Classes: names, PostHoc: v.run.PostHoc()}
	right := 0
	for i, label := range labels {
		if label < 0 || label >= classes {
			continue
		}
		best, confidence, err := mostProbable(logits[i*classes : (i+1)*classes])
		if err != nil {
			continue
		}
		counts[label][best]++
		h.Images++
		bin := &sums[min(max(int(math.Ceil(confidence*15))-1, 0), 14)]
		bin.n++
		bin.confidence += confidence
		if best == label {
			right++
			bin.right++
		}
	}
	ece := 0.0
	for _, bin := range sums {
		ece += math.Abs(bin.right - bin.confidence)
		if bin.n > 0 {
			h.Bins = append(h.Bins, bin.shown(v.n))
		}
	}
	h.Rows = confusionRows(names, counts)
	h.Accuracy = numeral.Percent(float64(right) / float64(max(1, h.Images)))
	h.ECE = numeral.Float(ece / float64(max(1, h.Images)))
	return h
}

// binSum contains the sums over the images of one confidence bin.
type binSum struct {
	n                 int
	confidence, right float64
}

// shown returns the mark of the bin in the plot; all is the number of all images.
func (s binSum) shown(all int) CalibrationBin {
	b := CalibrationBin{Images: s.n, Confidence: s.confidence / float64(s.n), Accuracy: s.right / float64(s.n)}
	b.X, b.Y = fmt.Sprintf("%.1f", 100*b.Confidence), fmt.Sprintf("%.1f", 100-100*b.Accuracy)
	b.Size = fmt.Sprintf("%.1f", 1+3*math.Sqrt(float64(s.n)/float64(all)))
	return b
}

// mostProbable returns the class with the largest logit, and its probability.
func mostProbable(logits []float32) (class int, probability float64, err error) {
	class, err = vectors.Class(logits)
	sum := 0.0
	for _, x := range logits {
		sum += math.Exp(float64(x) - float64(logits[class]))
	}
	return class, 1 / sum, err
}

func confusionRows(names []string, counts [][]int) (rows []ConfusionRow) {
	for c, row := range counts {
		total := 0
		for _, n := range row {
			total += n
		}
		one := ConfusionRow{Class: names[c]}
		for other, n := range row {
			one.Cells = append(one.Cells, ConfusionCell{n, 100 * n / max(1, total), other == c})
		}
		rows = append(rows, one)
	}
	return rows
}

// Worst returns a sentence about the two classes that are confused most often; "" if there are no errors.
func (h HeadPlots) Worst() string {
	most, text := 0, ""
	for _, row := range h.Rows {
		for i, c := range row.Cells {
			if !c.Right && c.Count > most {
				most, text = c.Count, fmt.Sprintf("Most often confused: %s, taken for %s (%s).", row.Class, h.Classes[i], numeral.Of(c.Count, h.Noun))
			}
		}
	}
	return text
}

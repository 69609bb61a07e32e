package page

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"tessera/apps/show/doc"
	"tessera/apps/show/figures"
	"tessera/data"
	"tessera/internal/lists"
	"tessera/internal/numeral"
	"tessera/internal/vectors"
	"tessera/metrics"
	"tessera/posthoc"
)

// shownSamples is the maximum number of images in the slider.
const shownSamples = 30

// Sample is one image with its pictures and its code, as the slider of the page reads it.
type Sample struct {
	Number   int           `json:"number"`
	Class    string        `json:"class"`
	Pictures []string      `json:"pictures"`
	Captions []string      `json:"captions"`
	Code     []float64     `json:"code"`
	Most     []doc.Picture `json:"-"`    // the units that contribute most
	Links    [][2]string   `json:"most"` // their numbers and captions
	MSE      float64       `json:"-"`    // of the reconstruction
}

func (s *Sample) add(picture, caption string) {
	s.Pictures, s.Captions = append(s.Pictures, picture), append(s.Captions, caption)
}

// samples reconstructs a few images of every class. The section shows the first one; a slider of the page shows the others.
func (v *view) samples(r *Run) ([]doc.Block, error) {
	chosen := v.chosen()
	pixels := len(v.images) / v.n
	images := make([]float32, 0, len(chosen)*pixels)
	codes := make([]float32, 0, len(chosen)*v.run.Units())
	for _, i := range chosen {
		images = append(images, v.image(i)...)
		codes = append(codes, v.codes32[i*v.run.Units():(i+1)*v.run.Units()]...)
	}
	var outputs, approximated, dilated []float32
	var err error
	switch reconstructs, fromCodes := metrics.Decodes(v.run); {
	case fromCodes:
		if outputs, err = v.coder.Decode(codes); err != nil {
			return nil, err
		}
	case reconstructs:
		if outputs, err = metrics.Reconstruct(v.coder, images); err != nil {
			return nil, err
		}
	}
	if v.direct && len(v.run.Shape()) > 1 && v.observed == nil {
		if dilated, approximated, err = v.approximate(images, codes); err != nil {
			return nil, err
		}
	}
	p := v.painter.forVectors(v.scaled(images), v.rescaled(outputs))
	for at, i := range chosen {
		one := v.sampleOf(p, i, at, images, outputs)
		if dilated != nil {
			a, b := dilated[at*pixels:(at+1)*pixels], approximated[at*pixels:(at+1)*pixels]
			one.add(v.painter.draw(v.tone, a), "original, dilated")
			one.add(v.painter.draw(v.tone, b), "max-approximation: error "+numeral.Float(meanSquare(v.differences(a, b))))
		}
		r.Samples = append(r.Samples, one)
		v.call(&r.data, i)
	}
	title, words := fmt.Sprintf("The %ss and their codes", v.noun()), fmt.Sprintf("Move the slider to see other %ss. The bars are the code of the %s: one bar for each unit.", v.noun(), v.noun())
	if outputs != nil {
		title = "Reconstructions"
	}
	if dilated != nil {
		words += " Dilation by a disk of radius 1 takes the largest value of each pixel and its four neighbours. The max-approximation dilates the atoms only. " +
			"Pictures are clipped to [0,1], errors are not."
	}
	if len(v.run.Shape()) == 1 {
		words += " " + p.scale() + " Values are scaled as the model sees them."
	}
	first := &doc.Gallery{Style: p.style("row"), Names: r.data.Names}
	for i, picture := range r.Samples[0].Pictures {
		first.Pictures = append(first.Pictures, doc.Picture{PNG: []string{picture}, Caption: r.Samples[0].Captions[i], About: r.Samples[0].Captions[i]})
	}
	return []doc.Block{&doc.Group{Title: title, Blocks: []doc.Block{doc.Remark("%s", words), first,
		&doc.Group{Title: "Units that contribute most", Blocks: []doc.Block{&doc.Gallery{Style: "most", Pictures: r.Samples[0].Most}}}}}}, nil
}

// sampleOf returns image i with its reconstruction, which is the output with index at.
func (v *view) sampleOf(p painter, i, at int, images, outputs []float32) Sample {
	pixels := len(v.images) / v.n
	x := images[at*pixels : (at+1)*pixels]
	one := Sample{Number: v.number(i)}
	one.add(p.draw(v.tone, v.scaled(x)), "original")
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
		one.MSE = meanSquare(known)
		one.add(p.draw(v.tone, v.rescaled(y)), "reconstruction: error "+numeral.Float(one.MSE))
		one.add(p.draw(figures.Unit, figures.Levels(difference, 0, v.span)), "difference")
	}
	order := make([]int, v.usage.k)
	for j := range v.usage.k {
		order[j] = j
		one.Code = append(one.Code, round(v.usage.of(i, j)))
	}
	slices.SortStableFunc(order, func(a, b int) int { return compare(math.Abs(one.Code[b]), math.Abs(one.Code[a])) })
	for _, j := range order[:min(typical, len(order))] {
		if one.Code[j] != 0 && j < mostUnits {
			number, label := strconv.Itoa(j), fmt.Sprintf("%d: %s", j, numeral.Float(one.Code[j]))
			one.Most = append(one.Most, doc.Picture{Unit: number, Caption: label})
			one.Links = append(one.Links, [2]string{number, label})
		}
	}
	return one
}

// chosen returns the indices of the images that are shown: the first ones of each class, alternating between the classes.
func (v *view) chosen() []int {
	most := min(shownSamples, v.n)
	if v.classes == nil {
		return lists.Of(most, func(i int) int { return i * v.n / most })
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
	coder, err := m.Coder(v.coder, false)
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
	if v.scaling != nil {
		x, y = v.scaling.Unclipped(x), v.scaling.Redone(y)
	}
	all := lists.Of(len(x), func(p int) float32 { return float32(math.Abs(float64(x[p]) - float64(y[p]))) })
	return all
}

func meanSquare(values []float32) float64 {
	sum := 0.0
	for _, v := range values {
		sum += float64(v) * float64(v)
	}
	return sum / float64(max(1, len(values)))
}

// heads shows the confusion matrix and the calibration of every head that a loss compares with classes, provided that the images have these
// classes.
func (v *view) heads() (list []doc.Block, err error) {
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
		columns := v.data.Scaled(v.shift).All()
		if columns == nil {
			columns = map[string][]float32{}
		}
		columns[data.ImagesColumn] = v.images
		logits, err := v.coder.ValueOf(name, columns)
		if err != nil {
			return nil, err
		}
		if h := v.head(name, logits, labels); h != nil {
			list = append(list, h)
		}
	}
	return list, nil
}

// head compares the classes that a head predicts with the labels, nil if there are too many classes to show. It leaves out samples without
// a class, whose logits are not finite.
func (v *view) head(name string, logits []float32, labels []int) doc.Block {
	names := v.run.HeadClasses(name)
	classes := len(names)
	if classes > mostClasses {
		return nil
	}
	known := slices.Clone(labels)
	for i, label := range labels {
		if _, err := vectors.Class(logits[i*classes : (i+1)*classes]); label >= classes || err != nil {
			known[i] = data.UnknownLabel
		}
	}
	counts, right, n := posthoc.Confusion(logits, known, classes), 0, 0
	confusion := &doc.Table{Columns: append([]doc.Column{{}}, doc.Columns(names...)...), Notes: []string{"Confusion: rows are the true classes, columns the predicted ones."}}
	most, worst := 0, ""
	for c, row := range counts {
		total := lists.Sum(row)
		n, right = n+total, right+row[c]
		cells := []any{names[c]}
		for other, n := range row {
			cells = append(cells, doc.Shaded{Count: n, Share: float64(n) / float64(max(1, total)), Good: other == c})
			if other != c && n > most {
				most, worst = n, fmt.Sprintf(" Most often confused: %s, taken for %s (%s).", names[c], names[other], numeral.Of(n, v.noun()))
			}
		}
		confusion.Row(cells...)
	}
	calibration := &doc.Curves{Title: "calibration", X: "confidence", Y: "accuracy", Lines: []doc.Line{{Name: "ideal", X: []float64{0, 1}, Y: []float64{0, 1}}, {Name: name}}}
	bins, ece := posthoc.Reliability(logits, known, calibrationBins)
	few := 0
	for _, b := range bins {
		if b.Samples < leastInBin {
			few++
		}
		l := &calibration.Lines[1]
		l.X, l.Y = append(l.X, b.Confidence), append(l.Y, b.Accuracy)
	}
	calibration.About = fmt.Sprintf("Calibration: on the line, confidence equals accuracy. Expected calibration error %s, in %d bins.", numeral.Float(ece), len(bins))
	if few > 0 {
		calibration.About += fmt.Sprintf(" %d of the bins have fewer than %d %ss: their accuracies say little.", few, leastInBin, v.noun())
	}
	if fitted := v.run.PostHoc(); fitted != "" {
		calibration.About += " Calibrated after the training (" + fitted + ")."
	}
	return &doc.Group{Title: "Head " + name, Blocks: []doc.Block{
		doc.Remark("%s of %s get their class.%s", numeral.Percent(float64(right)/float64(max(1, n))), numeral.Of(n, "labelled "+v.noun()), worst), confusion, calibration}}
}

// calibrationBins is the number of bins of the metric ece.
const calibrationBins = 15

// leastInBin is the number of samples below which the 95 % interval of an accuracy may be wider than half of the axis.
const leastInBin = 10

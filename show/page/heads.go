package page

import (
	"fmt"
	"math"
	"slices"
)

// HeadPlots are the confusion matrix and the calibration of one head.
type HeadPlots struct {
	Name     string
	Noun     string // what a sample is called: "image" or "sample"
	Classes  []string
	Rows     []ConfusionRow
	Accuracy string
	Images   int
	Bins     []CalibrationBin
	ECE      string // expected calibration error
}

// ConfusionRow is one true class.
type ConfusionRow struct {
	Class string
	Cells []ConfusionCell
}

// ConfusionCell is the number of images of a class that were given another, or the same, class.
type ConfusionCell struct {
	Count int
	Share int  // of the images of the class, in percent
	Right bool // the class itself
}

// CalibrationBin is the images whose confidence lies in one bin.
type CalibrationBin struct {
	Images               int
	Confidence, Accuracy float64 // their means
	X, Y                 string  // in the plot of 100 by 100
	Size                 string  // radius of its mark
}

// heads classifies the images by every head that a loss compares with labels.
func (v *view) heads() (list []HeadPlots, err error) {
	if v.classes == nil {
		return nil, nil
	}
	for _, name := range v.run.ClassHeads() {
		logits, err := v.run.Value(name, v.images)
		if err != nil {
			return nil, err
		}
		list = append(list, v.head(name, logits))
	}
	return list, nil
}

func (v *view) head(name string, logits []float32) HeadPlots {
	classes := len(logits) / v.n
	names := slices.Clone(v.classes[:min(classes, len(v.classes))])
	for c := len(names); c < classes; c++ {
		names = append(names, fmt.Sprint(c))
	}
	counts := make([][]int, classes)
	for c := range counts {
		counts[c] = make([]int, classes)
	}
	var sums [15]binSum
	h := HeadPlots{Name: name, Noun: v.noun(), Classes: names}
	right := 0
	for i, label := range v.labels {
		if label < 0 || label >= classes {
			continue
		}
		best, confidence := mostProbable(logits[i*classes : (i+1)*classes])
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
	h.Accuracy = sharePercent(float64(right) / float64(max(1, h.Images)))
	h.ECE = short(ece / float64(max(1, h.Images)))
	return h
}

// binSum is the sums over the images of one bin of confidence.
type binSum struct {
	n                 int
	confidence, right float64
}

// shown is the bin in the plot; all is the number of all images.
func (s binSum) shown(all int) CalibrationBin {
	b := CalibrationBin{Images: s.n, Confidence: s.confidence / float64(s.n), Accuracy: s.right / float64(s.n)}
	b.X, b.Y = fmt.Sprintf("%.1f", 100*b.Confidence), fmt.Sprintf("%.1f", 100-100*b.Accuracy)
	b.Size = fmt.Sprintf("%.1f", 1+3*math.Sqrt(float64(s.n)/float64(all)))
	return b
}

// mostProbable is the class of the largest logit and its probability.
func mostProbable(logits []float32) (class int, probability float64) {
	class = max(slices.Index(logits, slices.Max(logits)), 0)
	sum := 0.0
	for _, x := range logits {
		sum += math.Exp(float64(x) - float64(logits[class]))
	}
	return class, 1 / sum
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

// Worst names the two classes that are confused most often, in a sentence; it is empty where no image has a wrong class.
func (h HeadPlots) Worst() string {
	most, text := 0, ""
	for _, row := range h.Rows {
		for i, c := range row.Cells {
			if !c.Right && c.Count > most {
				most, text = c.Count, fmt.Sprintf("Most often confused: %s, taken for %s (%s).", row.Class, h.Classes[i], plural(c.Count, h.Noun))
			}
		}
	}
	return text
}

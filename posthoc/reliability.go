package posthoc

import (
	"math"

	"tessera/internal/lists"
	"tessera/internal/vectors"
)

// Bin describes the samples whose confidence lies in one of several bins of equal width. The confidence of a sample is
// its largest probability.
type Bin struct {
	Samples              int
	Confidence, Accuracy float64 // means over the samples
}

// Reliability divides the samples whose class is known into bins by their confidence. There are M = bins intervals of
// equal width; bin m is ((m-1)/M, m/M]. It returns the bins that are not empty, in ascending order. ece is the expected
// calibration error, sum_m |B_m|/n |accuracy - confidence|.
func Reliability(logits []float32, labels []int, bins int) (list []Bin, ece float64) {
	if len(labels) == 0 {
		return nil, 0
	}
	classes, n := len(logits)/len(labels), 0
	sums, p := make([]Bin, bins), make([]float64, classes)
	for i, class := range labels {
		if class < 0 {
			continue
		}
		row, best := logits[i*classes:(i+1)*classes], 0
		for j, z := range row {
			if z > row[best] {
				best = j
			}
		}
		vectors.Softmax(p, row)
		b := &sums[min(max(int(math.Ceil(p[best]*float64(bins)))-1, 0), bins-1)]
		n++
		b.Samples++
		b.Confidence += p[best]
		if best == class {
			b.Accuracy++
		}
	}
	for _, b := range sums {
		if b.Samples > 0 {
			ece += math.Abs(b.Accuracy-b.Confidence) / float64(n)
			list = append(list, Bin{b.Samples, b.Confidence / float64(b.Samples), b.Accuracy / float64(b.Samples)})
		}
	}
	return list, ece
}

// Confusion counts the samples whose class is known by their class, then by the class that their logits predict. Samples whose logits are
// not finite have no predicted class and are left out.
func Confusion(logits []float32, labels []int, classes int) [][]int {
	counts := lists.Of(classes, func(int) []int { return make([]int, classes) })
	for i, label := range labels {
		if label < 0 || label >= classes {
			continue
		}
		if best, err := vectors.Class(logits[i*classes : (i+1)*classes]); err == nil {
			counts[label][best]++
		}
	}
	return counts
}

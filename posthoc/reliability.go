package posthoc

import "math"

// Bin describes the samples whose confidence, their largest probability, lies in one of bins of equal width.
type Bin struct {
	Samples              int
	Confidence, Accuracy float64 // their means
}

// Reliability puts the samples whose class is known into bins of equal width by their confidence, bin m being ((m-1)/M, m/M], and returns those
// that are not empty, in the order of their confidence. ece is the expected calibration error, sum_m |B_m|/n |accuracy - confidence|.
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
		Softmax(p, row)
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

package metrics

import (
	"math"
	"slices"
)

func init() {
	Registry.Register("ece", "expected calibration error", func() Metric { return &ECE{Bins: 15} })
}

// ECE is the expected calibration error of a head. Of M bins of the confidence, bin m is ((m-1)/M, m/M]. Samples of an unknown class are
// ignored.
//
// Source: Guo et al., On Calibration of Modern Neural Networks, ICML 2017.
type ECE struct {
	Bins int `toml:"bins" want:"> 0" doc:"M, the number of confidence bins; 0 means 15"`
}

func (*ECE) Describe() Description {
	return Description{
		Measures: []Measure{{Name: "ece", Better: Lower,
			Doc: "expected calibration error of a head, Σ \\|B_m\\|/n \\|accuracy(B_m) - confidence(B_m)\\|. B_m are the labelled samples whose confidence, " +
				"the largest probability, lies in the m-th of 15 bins of equal width (Guo et al. 2017). For heads that a loss compares with classes"}},
		Reads: ReadsLogits | ReadsLabels, ScaleFree: true, Partial: true,
	}
}

func (m *ECE) Start(*Subject) (Meter, error) {
	bins := m.Bins
	if bins < 1 {
		bins = 15
	}
	sums := make([]confidenceBin, bins)
	add := func(logits []float32, class int) {
		best := max(slices.Index(logits, slices.Max(logits)), 0) // of NaN there is no largest
		confidence := math.Exp(logProbability(logits, best))
		// A confidence of NaN is counted in the first bin, which makes the result NaN.
		bin := &sums[min(max(int(math.Ceil(confidence*float64(bins)))-1, 0), bins-1)]
		bin.confidence += confidence
		if best == class {
			bin.right++
		}
	}
	return classMean(add, func() (sum float64) {
		for _, bin := range sums {
			sum += math.Abs(bin.right - bin.confidence)
		}
		return sum
	}), nil
}

type confidenceBin struct{ right, confidence float64 }

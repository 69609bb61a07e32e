package metrics

import "math"

// Source: Brier, Verification of Forecasts Expressed in Terms of Probability, 1950.
func init() {
	register("brier", "Brier score of the classes", Description{
		Measures: []Measure{{Name: "brier", Better: Lower,
			Doc: "mean over the labelled samples of Σ_j (p_j - y_j)², p the softmax of a head's logits, y 1 at the class of the sample and 0 elsewhere (Brier 1950): " +
				"between 0 and 2. For heads that a loss compares with classes"}},
		Reads: ReadsLogits | ReadsLabels, ScaleFree: true, Partial: true, OnRequest: true,
	}, func(*Subject) (Meter, error) {
		sum := 0.0
		return classMean(func(logits []float32, class int) {
			for j := range logits {
				p := math.Exp(logProbability(logits, j))
				if j == class {
					p--
				}
				sum += p * p
			}
		}, func() float64 { return sum }), nil
	})
}

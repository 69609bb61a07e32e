package metrics

import "tessera/internal/vectors"

// The metric accuracy is the share of the images whose class has the largest logit of a head. If several logits are equally
// large, the first one is the prediction. Images of an unknown class are ignored.
func init() {
	register("accuracy", "fraction of samples whose class has the largest logit", Description{
		Measures: []Measure{{Name: "accuracy", Better: Higher,
			Doc: "fraction of the labelled samples for which the largest logit of a head is that of their class. For heads that a loss compares with classes"}},
		Reads: ReadsLogits | ReadsLabels, ScaleFree: true, Partial: true,
	}, func(*Subject) (Meter, error) {
		right := 0.0
		return classMean(func(logits []float32, class int) {
			if best, err := vectors.Class(logits); err == nil && best == class {
				right++
			}
		}, func() float64 { return right }), nil
	})
}

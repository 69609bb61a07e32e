package metrics

import (
	"context"

	"tessera/internal/vectors"
)

// If several logits are equally large, the first one is the prediction. Samples of an unknown class are ignored.
func init() {
	register("accuracy", "fraction of samples whose class has the largest logit", Description{
		Measures: []Measure{{Name: "accuracy", Better: Higher,
			Doc: "fraction of the labelled samples for which the largest logit of a head is that of their class. For heads that a loss compares with classes"}},
		Reads: ReadsLogits | ReadsLabels, ScaleFree: true, Partial: true,
	}, func(*Subject) (Meter, error) {
		right, counts := 0.0, map[int]float64{}
		return withConstant(classMean(func(logits []float32, class int) {
			counts[class]++
			if best, err := vectors.Class(logits); err == nil && best == class {
				right++
			}
		}, func() float64 { return right }), func() float64 {
			all, most := 0.0, 0.0
			for _, n := range counts {
				all, most = all+n, max(most, n)
			}
			return most / max(1, all)
		}), nil
	})
}

// withConstant adds the metric of a constant prediction to the first value of a meter.
func withConstant(of Meter, constant func() float64) Meter {
	return meter{of.Add, func() []Value {
		values, _ := of.Values(context.Background()) // of a meter without errors
		values[0].Constant = constant()
		return values
	}}
}

package metrics

func init() {
	register("nll", "negative log-likelihood of the classes", Description{
		Measures: []Measure{{Name: "nll", Unit: "nats", Better: Lower,
			Doc: "mean over the labelled samples of -ln p_c, p the softmax of a head's logits, c the class of the sample. For heads that a loss compares with classes"}},
		Reads: ReadsLogits | ReadsLabels, ScaleFree: true, Partial: true,
	}, func(*Subject) (Meter, error) {
		sum := 0.0
		return classMean(func(logits []float32, class int) { sum -= logProbability(logits, class) }, func() float64 { return sum }), nil
	})
}

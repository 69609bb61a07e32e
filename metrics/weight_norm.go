package metrics

// Normed is a [Coder] that has weights.
type Normed interface {
	// WeightNorm returns the root of the sum of the squares of the encoder's weights: arrays of at least two axes, thus no biases and no
	// scales of normalising layers.
	WeightNorm() float64
}

func init() {
	register("weight_norm", "length of the encoder's weights", Description{
		Measures: []Measure{{Name: "weight_norm", Better: Neither,
			Doc: "root of the sum of the squares of the weights of the encoder, without biases and the scales of normalising layers. Before " +
				"`batch_norm` only the direction of a weight matters, and r / weight_norm² is the effective learning rate of gradient descent of rate r " +
				"(van Laarhoven 2017)"}},
		Reads: ReadsEncoder, OnRequest: true,
	}, func(s *Subject) (Meter, error) {
		n, _ := As[Normed](s.Coder)
		return Fixed(Number(n.WeightNorm())), nil
	})
}

func isNormed(c Coder) bool {
	_, ok := As[Normed](c)
	return ok
}

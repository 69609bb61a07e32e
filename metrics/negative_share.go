package metrics

import "math"

func init() {
	register("negative_share", "how much of the decoder's weights is negative", Description{
		Measures: []Measure{{Name: "negative_share", Better: Lower,
			Doc: "Σ \\|w\\| over the weights w < 0, divided by Σ \\|w\\| over all weights, of the weights of `negative_weights`. Small if many " +
				"weights are negative, but tiny"}},
		Reads: ReadsWeights, OnRequest: true,
	}, func(s *Subject) (Meter, error) {
		negative, all := 0.0, 0.0
		for _, v := range s.Weight {
			size := math.Abs(float64(v))
			if all += size; v < 0 {
				negative += size
			}
		}
		if all > 0 {
			negative /= all
		}
		return Fixed(Number(negative)), nil
	})
}

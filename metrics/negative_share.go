package metrics

import "math"

// The metric negative_share is the part of the decoder's weights that is negative, by size instead of by number: the sum of
// |w| over the weights w < 0, divided by the sum over all weights. Many tiny negative weights, which a penalty leaves, hardly
// count. It is 0 for weights of zeros. The weights are those of [NegativeWeights].
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

package metrics

import (
	"math"
	"slices"
)

// The metric l0 is the mean over images of the share of units whose contribution |h_j| |w_j|_2 is above 1 % of the image's
// largest contribution. An image without contributions counts as 0.
func init() {
	register("l0", "share of units that contribute", Description{
		Measures: []Measure{{Name: "l0", Better: Lower,
			Doc: "mean over samples of the share of units whose contribution \\|h_j\\| \\|w_j\\|₂ is above 1 % of the sample's largest. " +
				"Only where every value of a code weighs one atom"}},
		Reads: ReadsCodes | ReadsSums, ScaleFree: true,
	}, ofContributions(func(c []float64) float64 {
		least, above := contributing*slices.Max(c), 0
		if math.IsNaN(least) {
			return least
		}
		for _, v := range c {
			if v > least {
				above++
			}
		}
		return float64(above) / float64(len(c))
	}))
}

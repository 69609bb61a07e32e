package metrics

import (
	"math"
	"slices"
)

// If all contributions are 0, all units are dead.
func init() {
	register("dead_units_contribution", "units that hardly ever contribute", Description{
		Measures: []Measure{{Name: "dead_units_contribution", Unit: "units", Better: Lower, Count: true,
			Doc: "units whose largest contribution \\|h_j\\| \\|w_j\\|₂ over these samples is below 1 % of the largest of any unit. " +
				"Only where every value of a code weighs one atom"}},
		Reads: ReadsCodes | ReadsSums, ScaleFree: true,
	}, func(s *Subject) (Meter, error) {
		scales := s.Atoms.scales()
		return greatestOfUnits(s.Units, 0, func(h float32) float64 { return math.Abs(float64(h)) }, func(greatest []float64) float64 {
			for j := range greatest {
				greatest[j] *= scales[j]
			}
			most, dead := slices.Max(greatest), 0
			if math.IsNaN(most) {
				return most
			}
			for _, v := range greatest {
				if most == 0 || v < contributing*most {
					dead++
				}
			}
			return float64(dead)
		}), nil
	})
}

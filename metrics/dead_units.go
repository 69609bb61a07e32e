package metrics

import (
	"math"
	"slices"
)

// If no activation is positive, all units are dead.
func init() {
	register("dead_units", "units that are hardly ever active", Description{
		Measures: []Measure{{Name: "dead_units", Unit: "units", Better: Lower, Count: true,
			Doc: "units whose largest activation over these samples is below 1 % of the largest of any unit. Fewer samples, as the validation samples in the progress of a training, leave more of them"}},
		Reads: ReadsCodes,
	}, func(s *Subject) (Meter, error) {
		itself := func(h float32) float64 { return float64(h) }
		return greatestOfUnits(s.Units, math.Inf(-1), itself, func(greatest []float64) float64 {
			most, dead := slices.Max(greatest), 0
			for _, v := range greatest {
				if most <= 0 || v < deadFraction*most {
					dead++
				}
			}
			return float64(dead)
		}), nil
	})
}

// deadFraction is the threshold below which a unit is dead, as a fraction of the largest activation of any unit.
const deadFraction = 0.01

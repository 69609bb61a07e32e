package metrics

import (
	"math"
	"slices"
)

// The metric dead_units_contribution counts the units whose largest contribution |h_j| |w_j|_2 over all images is below 1 % of the largest
// of any unit. When nothing contributes, all are dead.
func init() {
	register("dead_units_contribution", "units that hardly ever contribute", Description{
		Measures: []Measure{{Name: "dead_units_contribution", Unit: "units", Better: Lower, Count: true,
			Doc: "units whose largest contribution \\|h_j\\| \\|w_j\\|₂ over these images is below 1 % of the largest of any unit. " +
				"Only where every value of a code weighs one atom"}},
		Reads: ReadsCodes | ReadsAtoms, ScaleFree: true, Partial: true,
	}, func(s *Subject) (Meter, error) {
		if why := otherAtoms(s); why != "" {
			return Fixed(NotApplicable(why)), nil
		}
		scales, greatest := s.Atoms.scales(), make([]float32, s.Units) // greatest |h_j| of each unit
		return meter{func(b *Batch) error {
			for i := 0; i < len(b.Codes); i += s.Units {
				for j, v := range b.Codes[i : i+s.Units] {
					greatest[j] = max(greatest[j], float32(math.Abs(float64(v))))
				}
			}
			return nil
		}, func() []Value {
			c := absolute(greatest, scales)
			most, dead := slices.Max(c), 0
			if math.IsNaN(most) {
				return []Value{Number(most)}
			}
			for _, v := range c {
				if most == 0 || v < contributing*most {
					dead++
				}
			}
			return []Value{Number(float64(dead))}
		}}, nil
	})
}

package metrics

import (
	"context"
	"math"
	"slices"
)

func init() {
	Registry.Register("dead_units_contribution", "units that hardly ever contribute", func() Metric { return deadContributions{} })
}

// deadContributions counts the units whose largest contribution |h_j| |w_j|_2 over all images is below 1 % of the largest
// of any unit. When nothing contributes, all are dead.
type deadContributions struct{}

// Describe implements [Metric].
func (deadContributions) Describe() Description {
	return Description{
		Measures: []Measure{{Name: "dead_units_contribution", Unit: "units", Better: Lower, Count: true,
			Doc: "units whose largest contribution \\|h_j\\| \\|w_j\\|₂ over these images is below 1 % of the largest of any unit. " +
				"Only where every value of a code weighs one atom"}},
		Reads: ReadsCodes | ReadsAtoms, ScaleFree: true, Partial: true,
	}
}

// Start implements [Metric].
func (deadContributions) Start(s *Subject) (Meter, error) {
	if why := otherAtoms(s); why != "" {
		return Fixed(NotApplicable(why)), nil
	}
	return &deadContributionMeter{scales: s.Atoms.scales(), greatest: make([]float32, s.Units)}, nil
}

type deadContributionMeter struct {
	scales   []float64
	greatest []float32 // |h_j| of each unit
}

// Add implements [Meter].
func (m *deadContributionMeter) Add(b *Batch) error {
	k := len(m.greatest)
	for i := 0; i < len(b.Codes); i += k {
		for j, v := range b.Codes[i : i+k] {
			m.greatest[j] = max(m.greatest[j], float32(math.Abs(float64(v))))
		}
	}
	return nil
}

// Values implements [Meter].
func (m *deadContributionMeter) Values(context.Context) ([]Value, error) {
	c := absolute(m.greatest, m.scales)
	most, dead := slices.Max(c), 0
	if math.IsNaN(most) {
		return []Value{Number(most)}, nil
	}
	for _, v := range c {
		if most == 0 || v < contributing*most {
			dead++
		}
	}
	return []Value{Number(float64(dead))}, nil
}

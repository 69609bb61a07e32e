package metrics

import (
	"context"
	"math"
)

func init() {
	Registry.Register("dead_units", "units that are hardly ever active", func() Metric { return deadUnits{} })
}

// deadFraction of the greatest activation of any unit is what a unit must reach once to count as alive.
const deadFraction = 0.01

// deadUnits counts the units whose greatest activation over all codes is below 1 % of the greatest of any unit. When no
// activation is positive, no unit is ever active: all are dead.
type deadUnits struct{}

// Describe implements [Metric].
func (deadUnits) Describe() Description {
	return Description{
		Measures: []Measure{{Name: "dead_units", Unit: "units", Better: Lower, Count: true,
			Doc: "units whose largest activation over these images is below 1 % of the largest of any unit"}},
		Reads: ReadsCodes,
	}
}

// Start implements [Metric].
func (deadUnits) Start(s *Subject) (Meter, error) {
	m := &deadMeter{greatest: make([]float64, s.Units)}
	for j := range m.greatest {
		m.greatest[j] = math.Inf(-1)
	}
	return m, nil
}

type deadMeter struct{ greatest []float64 } // activation of each unit

// Add implements [Meter].
func (m *deadMeter) Add(b *Batch) error {
	units := len(m.greatest)
	for i := range len(b.Codes) / units {
		for j, v := range b.Codes[i*units : (i+1)*units] {
			m.greatest[j] = max(m.greatest[j], float64(v))
		}
	}
	return nil
}

// Values implements [Meter].
func (m *deadMeter) Values(context.Context) ([]Value, error) {
	most := math.Inf(-1)
	for _, v := range m.greatest {
		most = max(most, v)
	}
	dead := 0
	for _, v := range m.greatest {
		if most <= 0 || v < deadFraction*most {
			dead++
		}
	}
	return []Value{Number(float64(dead))}, nil
}

package metrics

import "context"

func init() {
	Registry.Register("active_units", "mean number of active units", func() Metric { return activeUnits{} })
}

// activeUnits is the mean over samples of the number of units whose code is not 0, the l0 norm of the code.
type activeUnits struct{}

// Describe implements [Metric].
func (activeUnits) Describe() Description {
	return Description{
		Measures: []Measure{{Name: "active_units", Better: Lower, Unit: "units",
			Doc: "mean over samples of the number of units whose code is not 0, \\|h\\|₀. Of units that are never exactly 0, such as sigmoids, all are active: see `l0`"}},
		Reads: ReadsCodes, ScaleFree: true,
	}
}

// Start implements [Metric].
func (activeUnits) Start(s *Subject) (Meter, error) { return &activeMeter{units: s.Units}, nil }

type activeMeter struct {
	units, n, active int
}

// Add implements [Meter].
func (m *activeMeter) Add(b *Batch) error {
	for _, v := range b.Codes {
		if v != 0 {
			m.active++
		}
	}
	m.n += len(b.Codes) / m.units
	return nil
}

// Values implements [Meter].
func (m *activeMeter) Values(context.Context) ([]Value, error) {
	if m.n == 0 {
		return []Value{Number(0)}, nil
	}
	return []Value{Number(float64(m.active) / float64(m.n))}, nil
}

package metrics

import "context"

func init() {
	Registry.Register("used_units", "units of a high mean activation", func() Metric { return &UsedUnits{Threshold: UsageThreshold} })
}

// UsageThreshold is the mean activation above which the study counts an atom as used.
const UsageThreshold = 0.1

// UsedUnits counts the units whose mean activation over all codes is above a threshold.
type UsedUnits struct {
	Threshold float64 `toml:"threshold" doc:"mean activation above which a unit counts as used"`
}

// Describe implements [Metric].
func (*UsedUnits) Describe() Description {
	return Description{
		Measures: []Measure{{Name: "used_units", Unit: "units", Better: Neither, Count: true,
			Doc: "units whose mean activation over these images is above 0.1, the study's count of used atoms"}},
		Reads: ReadsCodes, OnRequest: true,
	}
}

// Start implements [Metric].
func (m *UsedUnits) Start(s *Subject) (Meter, error) {
	return &usageMeter{m.Threshold, unitSums{sums: make([]float64, s.Units)}}, nil
}

type usageMeter struct {
	threshold float64
	means     unitSums
}

// Add implements [Meter].
func (m *usageMeter) Add(b *Batch) error {
	m.means.add(b.Codes)
	return nil
}

// Values implements [Meter].
func (m *usageMeter) Values(context.Context) ([]Value, error) {
	used := 0
	for _, mean := range m.means.means() {
		if mean > m.threshold {
			used++
		}
	}
	return []Value{Number(float64(used))}, nil
}

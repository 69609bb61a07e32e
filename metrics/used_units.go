package metrics

func init() {
	Registry.Register("used_units", "units of a high mean activation", func() Metric { return &UsedUnits{Threshold: UsageThreshold} })
}

// UsageThreshold is the mean activation above which the study counts an atom as used.
const UsageThreshold = 0.1

// UsedUnits counts the units whose mean activation over all codes is above a threshold.
type UsedUnits struct {
	Threshold float64 `toml:"threshold" doc:"mean activation above which a unit counts as used"`
}

func (*UsedUnits) Describe() Description {
	return Description{
		Measures: []Measure{{Name: "used_units", Unit: "units", Better: Neither, Count: true,
			Doc: "units whose mean activation over these samples is above 0.1, the study's count of used atoms"}},
		Reads: ReadsCodes, OnRequest: true,
	}
}

func (m *UsedUnits) Start(s *Subject) (Meter, error) {
	return ofMeans(s.Units, func(means []float64) Value {
		used := 0
		for _, mean := range means {
			if mean > m.Threshold {
				used++
			}
		}
		return Number(float64(used))
	}), nil
}

package metrics

// The metric active_units is the mean over samples of the number of units whose code is not 0, the l0 norm of the code.
func init() {
	register("active_units", "mean number of active units", Description{
		Measures: []Measure{{Name: "active_units", Better: Lower, Unit: "units",
			Doc: "mean over samples of the number of units whose code is not 0, \\|h\\|₀. Of units that are never exactly 0, such as sigmoids, all are active: see `l0`"}},
		Reads: ReadsCodes, ScaleFree: true,
	}, func(s *Subject) (Meter, error) {
		n, active := 0, 0
		return meter{func(b *Batch) error {
			for _, v := range b.Codes {
				if v != 0 {
					active++
				}
			}
			n += len(b.Codes) / s.Units
			return nil
		}, func() []Value { return []Value{Number(float64(active) / float64(max(n, 1)))} }}, nil
	})
}

package metrics

func init() {
	register("active_units", "mean number of active units", Description{
		Measures: []Measure{{Name: "active_units", Better: Lower, Unit: "units",
			Doc: "mean over samples of the number of units whose code is not 0, \\|h\\|₀. Of units that are never exactly 0, such as sigmoids, all are active: see `l0`"}},
		Reads: ReadsCodes, ScaleFree: true,
	}, ofCodes(func(code []float32) float64 {
		active := 0
		for _, v := range code {
			if v != 0 {
				active++
			}
		}
		return float64(active)
	}))
}

package metrics

import "tessera/internal/volume"

func init() {
	Registry.Register("mse_clipped", "mean squared error of clipped reconstructions", func() Metric { return clippedMSE{} })
}

// clippedMSE is the [MSE] of reconstructions clipped to [0,1]: the convention of the study from January 2019 on.
type clippedMSE struct{}

// Describe implements [Metric].
func (clippedMSE) Describe() Description {
	return Description{
		Measures: []Measure{{Name: "mse_clipped", Better: Lower, Doc: "mean over images and pixels of (x - y)² with y clipped to [0,1]"}},
		Reads:    ReadsImages | ReadsOutputs, ScaleFree: true,
	}
}

// Start implements [Metric].
func (clippedMSE) Start(s *Subject) (Meter, error) {
	return &squares{pixels: volume.Of(s.Shape), of: func(x, y []float32) float64 {
		_, clipped := squaredErrors(x, y)
		return clipped
	}}, nil
}

// squaredErrors returns the sums of (x - y)^2 and of (x - clip(y))^2.
func squaredErrors(x, y []float32) (plain, clipped float64) {
	y = y[:len(x)]
	for i, want := range x {
		d := float64(y[i]) - float64(want)
		plain += d * d
		d = float64(clip(y[i])) - float64(want)
		clipped += d * d
	}
	return plain, clipped
}

// clip returns the nearest value of [0,1]; NaN stays NaN.
func clip(v float32) float32 { return min(max(v, 0), 1) }

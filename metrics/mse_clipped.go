package metrics

import (
	"context"
	"slices"
)

// The metric mse_clipped is the [MSE] of reconstructions clipped to [0,1]: the convention of the study from January 2019 on.
func init() {
	register("mse_clipped", "mean squared error of clipped reconstructions", Description{
		Measures: []Measure{{Name: "mse_clipped", Better: Lower, Doc: "mean over images and pixels of (x - y)² with y clipped to [0,1]. " +
			"Not applicable to vectors, and if images leave [0,1]"}},
		Reads: ReadsImages | ReadsOutputs | ReadsPictures, ScaleFree: true, Partial: true,
	}, func(s *Subject) (Meter, error) {
		clipped, err := ofPixels(func(x, y []float32) float64 {
			_, clipped := squaredErrors(x, y)
			return clipped
		})(s)
		return &clippedMeter{Meter: clipped}, err
	})
}

// clippedMeter also detects whether clipping would change the images.
type clippedMeter struct {
	Meter
	outside bool
}

func (m *clippedMeter) Add(b *Batch) error {
	m.outside = m.outside || slices.ContainsFunc(b.Images, func(v float32) bool { return v < 0 || v > 1 })
	return m.Meter.Add(b)
}

func (m *clippedMeter) Values(ctx context.Context) ([]Value, error) {
	if m.outside {
		return []Value{NotApplicable("the images leave [0,1]")}, nil
	}
	return m.Meter.Values(ctx)
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

package metrics

import (
	"tessera/data"
	"tessera/internal/engine/kernel"
	"tessera/internal/volume"
)

func init() {
	Registry.Register("mse", "mean squared error of reconstructions", func() Metric { return &MSE{} })
}

// MSE is the mean squared error over samples and values.
type MSE struct {
	Single bool `toml:"single" doc:"sum the squares of a sample in float32: faster, accurate to seven digits"`
}

func (*MSE) Describe() Description {
	return Description{
		Measures: []Measure{{Name: "mse", Better: Lower,
			Doc: "mean over samples and values of (x - y)², nothing clipped. The study's reconstruction error. Over the entries that are there, if some are missing or hidden"}},
		Reads: ReadsImages | ReadsOutputs, ScaleFree: true, Masked: true,
	}
}

func (m *MSE) Start(s *Subject) (Meter, error) {
	if s.Holed {
		return maskedMSE(data.ObservedColumn, data.ImagesColumn, nil), nil
	}
	if m.Single {
		return singleMSE(volume.Of(s.Shape)), nil
	}
	return ofPixels(squaredError)(s)
}

// ofPixels returns a function that starts the meter for a mean over images and pixels; the function of returns the sum over
// the pixels of an image and its reconstruction.
func ofPixels(of func(x, y []float32) float64) func(*Subject) (Meter, error) {
	return func(s *Subject) (Meter, error) {
		pixels := volume.Of(s.Shape)
		var sum imageSum
		return meter{func(b *Batch) error {
			sum.add(len(b.Images)/pixels, 25, func(i int) float64 {
				return of(b.Images[i*pixels:(i+1)*pixels], b.Outputs[i*pixels:(i+1)*pixels])
			})
			return nil
		}, func() []Value { return []Value{Number(sum.mean(pixels))} }}, nil
	}
}

// singleMSE returns a meter that sums the pixels of an image in float32, and the images in float64.
func singleMSE(pixels int) Meter {
	distance, total, values := kernel.Float32().SquaredDistance, 0.0, 0
	return meter{func(b *Batch) error {
		sum := 0.0
		for from := 0; from < len(b.Images); from += pixels {
			sum += float64(distance(b.Images[from:from+pixels], b.Outputs[from:from+pixels]))
		}
		total += sum
		values += len(b.Images)
		return nil
	}, func() []Value { return []Value{Number(total / float64(values))} }}
}

// squaredError returns the sum of (x - y)^2.
func squaredError(x, y []float32) (sum float64) {
	y = y[:len(x)]
	for i, want := range x {
		d := float64(y[i]) - float64(want)
		sum += d * d
	}
	return sum
}

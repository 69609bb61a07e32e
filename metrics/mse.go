package metrics

import (
	"context"

	"tessera/internal/volume"
	"tessera/kernel"
)

func init() {
	Registry.Register("mse", "mean squared error of reconstructions", func() Metric { return &MSE{} })
}

// MSE is the mean squared error over images and pixels, mean (x - y)^2, as the study's tables have it: nothing is clipped.
type MSE struct {
	Single bool `toml:"single" doc:"sum the squares of an image in float32: faster, accurate to seven digits"`
}

// Describe implements [Metric].
func (*MSE) Describe() Description {
	return Description{
		Measures: []Measure{{Name: "mse", Better: Lower,
			Doc: "mean over images and pixels of (x - y)², nothing clipped. The study's reconstruction error"}},
		Reads: ReadsImages | ReadsOutputs, ScaleFree: true,
	}
}

// Start implements [Metric].
func (m *MSE) Start(s *Subject) (Meter, error) {
	if m.Single {
		return &singleMSE{pixels: volume.Of(s.Shape)}, nil
	}
	return &squares{pixels: volume.Of(s.Shape), of: squaredError}, nil
}

// squares measures a mean of squared errors, each image's by of.
type squares struct {
	pixels int
	of     func(x, y []float32) float64
	sum    imageSum
}

// Add implements [Meter].
func (m *squares) Add(b *Batch) error {
	m.sum.add(len(b.Images)/m.pixels, 25, func(i int) float64 {
		return m.of(b.Images[i*m.pixels:(i+1)*m.pixels], b.Outputs[i*m.pixels:(i+1)*m.pixels])
	})
	return nil
}

// Values implements [Meter].
func (m *squares) Values(context.Context) ([]Value, error) {
	return []Value{Number(m.sum.mean(m.pixels))}, nil
}

// singleMSE adds up one image in float32, the images of a batch and the batches in float64.
type singleMSE struct {
	pixels, values int
	sum            float64
}

// Add implements [Meter].
func (m *singleMSE) Add(b *Batch) error {
	distance, sum := kernel.Float32().SquaredDistance, 0.0
	for from := 0; from < len(b.Images); from += m.pixels {
		sum += float64(distance(b.Images[from:from+m.pixels], b.Outputs[from:from+m.pixels]))
	}
	m.sum += sum
	m.values += len(b.Images)
	return nil
}

// Values implements [Meter].
func (m *singleMSE) Values(context.Context) ([]Value, error) {
	return []Value{Number(m.sum / float64(m.values))}, nil
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

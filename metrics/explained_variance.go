package metrics

import (
	"context"

	"tessera/internal/volume"
)

// AllEqual is the reason why explained_variance is not applicable.
const AllEqual = "the samples are all equal"

func init() {
	register("explained_variance", "share of the variance of the samples that reconstructions keep", Description{
		Measures: []Measure{{Name: "explained_variance", Better: Higher,
			Doc: "share of the variance that reconstructions keep, 1 - Σ\\|x - y\\|² / Σ\\|x - m\\|², m the mean of the measured samples. 1 is perfect, 0 is as good as m. " +
				"Not applicable if all samples are equal"}},
		Reads: ReadsImages | ReadsOutputs, ScaleFree: true, Partial: true,
	}, func(s *Subject) (Meter, error) {
		pixels := volume.Of(s.Shape)
		return &varianceMeter{pixels: pixels, sums: make([]float64, pixels)}, nil
	})
}

// varianceMeter sums the differences from the first sample, x0, to keep the precision if the mean is large: sum |x - m|^2 =
// sum |x - x0|^2 - n |m - x0|^2.
type varianceMeter struct {
	pixels   int
	first    []float32
	sums     []float64 // sum of x - x0 for each value
	squares  imageSum  // sum of |x - x0|^2
	residual imageSum  // sum of |x - y|^2
}

func (m *varianceMeter) Add(b *Batch) error {
	pixels := m.pixels
	if m.first == nil {
		m.first = append(m.first, b.Images[:pixels]...)
	}
	n := len(b.Images) / pixels
	for i := range n {
		for j, v := range b.Images[i*pixels : (i+1)*pixels] {
			m.sums[j] += float64(v) - float64(m.first[j])
		}
	}
	m.squares.add(n, 25, func(i int) float64 { return squaredError(b.Images[i*pixels:(i+1)*pixels], m.first) })
	m.residual.add(n, 25, func(i int) float64 {
		return squaredError(b.Images[i*pixels:(i+1)*pixels], b.Outputs[i*pixels:(i+1)*pixels])
	})
	return nil
}

func (m *varianceMeter) Values(context.Context) ([]Value, error) {
	n, between := float64(m.squares.n), 0.0
	for _, sum := range m.sums {
		between += sum * (sum / n)
	}
	total := m.squares.sum - between
	if !(total > 1e-12*m.squares.sum) { // equal samples, up to rounding; also without any
		return []Value{NotApplicable(AllEqual)}, nil
	}
	return []Value{Number(1 - m.residual.sum/total)}, nil
}

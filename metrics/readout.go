package metrics

import (
	"context"
	"math"

	"tessera/internal/fit"
	"tessera/internal/lists"
)

// readout is the meter of a metric of labelled codes: it collects the codes of all images of a known class, and then computes the values.
type readout struct {
	name   string    // of the metric, for messages
	units  int       // length of a code
	scales []float64 // factors of the units; nil for 1
	codes  fit.Labelled
	values func(ctx context.Context, p *fit.Labelled) ([]Value, error)
}

// contributionReadout returns a readout of the contributions h_j |w_j|_2.
func contributionReadout(name string, s *Subject, values func(ctx context.Context, p *fit.Labelled) ([]Value, error)) *readout {
	scales := s.Atoms.scales()
	return &readout{name: name, units: len(scales), scales: scales, values: values}
}

func (m *readout) Add(b *Batch) error {
	for i, label := range b.Labels {
		if label >= 0 {
			m.codes.Add(b.Codes[i*m.units:(i+1)*m.units], m.scales, label)
		}
	}
	return nil
}

func (m *readout) Values(ctx context.Context) ([]Value, error) {
	p, err := m.codes.Indexed(m.name)
	if err != nil {
		return nil, err
	}
	return m.values(ctx, p)
}

// spreadOf returns the mean of scores and their standard deviation with the given divisor.
func spreadOf(scores []float64, divisor int) (average, deviation float64) {
	average = mean(scores, len(scores))
	squares := lists.Map(scores, func(s float64) float64 { return (s - average) * (s - average) })
	return average, math.Sqrt(mean(squares, divisor))
}

func numbers(scores []float64) []Value { return lists.Map(scores, Number) }

package parts

import (
	"context"

	"tessera/metrics"
)

// meanCode is the mean activation over all codes and units.
type meanCode struct{}

func init() {
	metrics.Registry.Register("mean_code", "mean activation of the codes", func() metrics.Metric { return meanCode{} })
}

// Describe implements [metrics.Metric].
func (meanCode) Describe() metrics.Description {
	return metrics.Description{Reads: metrics.ReadsCodes,
		Measures: []metrics.Measure{{Name: "mean_code", Doc: "mean activation over all codes and units", Better: metrics.Neither}}}
}

// Start implements [metrics.Metric].
func (meanCode) Start(*metrics.Subject) (metrics.Meter, error) { return &meanCodeMeter{}, nil }

type meanCodeMeter struct {
	sum float64
	n   int
}

// Add implements [metrics.Meter].
func (m *meanCodeMeter) Add(b *metrics.Batch) error {
	for _, v := range b.Codes {
		m.sum += float64(v)
	}
	m.n += len(b.Codes)
	return nil
}

// Values implements [metrics.Meter].
func (m *meanCodeMeter) Values(context.Context) ([]metrics.Value, error) {
	return []metrics.Value{{Number: m.sum / float64(m.n)}}, nil
}

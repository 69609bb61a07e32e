package metrics

import (
	"context"
	"slices"

	"tessera/internal/parallel/team"
	"tessera/internal/random"
	"tessera/internal/vectors"
	"tessera/internal/volume"
)

func init() {
	Registry.Register("mse_interval", "95 % bootstrap interval over the samples of the mean squared error",
		func() Metric { return &MSEInterval{Resamples: 1000, Seed: 1} })
}

// MSEInterval is the percentile interval of the bootstrap over the measured samples, for one trained model. It does not describe the choice of the
// seed, which intervals over seeds do.
//
// Source: Efron, Bootstrap methods, Annals of Statistics 7, 1979.
type MSEInterval struct {
	Resamples int    `toml:"resamples" want:"> 0" doc:"number of bootstrap samples"`
	Seed      uint64 `toml:"seed" doc:"seed of the bootstrap"`
}

func (*MSEInterval) Describe() Description {
	return Description{
		Measures: []Measure{
			{Name: "mse_low", Better: Lower, Doc: "lower end of the 95 % bootstrap interval of `mse` over the measured samples"},
			{Name: "mse_high", Better: Lower, Doc: "upper end of the same interval"},
		},
		Reads: ReadsImages | ReadsOutputs, ScaleFree: true, Ordered: true, OnRequest: true,
	}
}

func (m *MSEInterval) Start(s *Subject) (Meter, error) {
	return &intervalMeter{MSEInterval: *m, pixels: volume.Of(s.Shape)}, nil
}

type intervalMeter struct {
	MSEInterval
	pixels int
	errors []float64 // by image
}

func (m *intervalMeter) Add(b *Batch) error {
	for from := 0; from < len(b.Images); from += m.pixels {
		m.errors = append(m.errors, squaredError(b.Images[from:from+m.pixels], b.Outputs[from:from+m.pixels])/float64(m.pixels))
	}
	return nil
}

func (m *intervalMeter) Values(ctx context.Context) ([]Value, error) {
	means, n := make([]float64, m.Resamples), len(m.errors)
	team.For(m.Resamples, 10, func(from, to int) {
		for k := from; k < to && ctx.Err() == nil; k++ {
			r, sum := random.Stream(m.Seed, "mse interval", uint64(k)), 0.0
			for range n {
				sum += m.errors[r.IntN(n)]
			}
			means[k] = sum / float64(n)
		}
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	slices.Sort(means)
	return []Value{Number(vectors.Quantile(means, 0.025)), Number(vectors.Quantile(means, 0.975))}, nil
}

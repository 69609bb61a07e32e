package train

import (
	"context"
	"math"
	"slices"
	"testing"

	"tessera/classical"
	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/train/evaluation"
	"tessera/metrics"
)

// A run of a baseline with hidden entries equals the fit to images with NaN in place of these entries. Its metrics are those
// of the codes of such images.
func TestARunOfABaselineWithHolesEqualsItsFit(t *testing.T) {
	for _, name := range []string{"nmf", "sparse_nmf", "pca"} {
		m := baseline(t, name, holes...)
		r := trained(t, m, Options{})
		set, err := Options{}.load(t.Context(), &m.Dataset)
		fatal.If(t, err)
		splits, err := set.Split(m.Dataset.Selection, m.Train.Seed)
		fatal.If(t, err)
		x, columns := splits.Fit.Float32(), splits.Fit.All()
		nan := slices.Clone(x)
		metrics.SetNaN(nan, columns[data.ObservedColumn])
		matrix, err := classical.NewMatrix(nan, splits.Fit.Pixels())
		fatal.If(t, err)
		own, err := m.Baseline.New(set.Shape, m.Train.Seed)
		fatal.If(t, err)
		last, err := classical.Fit(context.Background(), own, matrix, nil)
		fatal.If(t, err)
		expect.Equal(t, r.Epochs, last.Iteration, name)
		expect.Slice(t, r.Trained.Baseline.Atoms().Values, own.Atoms().Values, name)
		codes, err := own.Encode(nan)
		fatal.If(t, err)
		y, err := own.Decode(codes)
		fatal.If(t, err)
		measured, err := evaluation.Measure(t.Context(), m, r.Trained.Baseline, &evaluation.Sample{Images: splits.Fit}, nil)
		fatal.If(t, err)
		for metric, c := range map[string][2]string{"mse_observed": {"observed", ""}, "mse_held_out": {"held_out", "complete"}} {
			of := x
			if c[1] != "" {
				of = columns[c[1]]
			}
			sum, count := 0.0, 0.0
			for i, counts := range columns[c[0]] {
				sum += float64(counts) * math.Pow(float64(of[i])-float64(y[i]), 2)
				count += float64(counts)
			}
			if got, ok := measured.Values.Number(metric); !ok || math.Abs(sum/count-got) > 1e-9*got {
				t.Errorf("%s: %s: got %v, want %v", name, metric, got, sum/count)
			}
		}
	}
}

package metrics

import (
	"context"
	"slices"

	"tessera/internal/engine/kernel"
	"tessera/internal/parallel/team"
	"tessera/internal/vectors"
	"tessera/internal/volume"
)

// A negative bias, negative atoms, a relu and a saturating activation reduce the sum of the atoms. A gain in one pixel does not compensate for a
// loss in another. A decoder with non-negative codes and atoms, a bias >= 0 and a linear or relu output has the value 0, and so has one whose
// atoms add nothing.
func init() {
	register("additivity", "share of what the atoms add that is taken away again", Description{
		Measures: []Measure{{Name: "additivity_lost", Better: Lower, Rounding: 1e-6,
			Doc: "share of what the atoms add that other atoms, the bias and the last activation take away again, Σ max(0, a - max(0, y - max(0, s(b)))) / Σ a " +
				"with a = Σ_j max(0, h_j w_j) for each value. 0 for sums of parts; a positive bias hides nothing. " +
				"Only where every value of a code weighs one atom"}},
		Reads: ReadsCodes | ReadsOutputs | ReadsSums, ScaleFree: true,
	}, func(s *Subject) (Meter, error) {
		m := &additivityMeter{units: s.Units, pixels: volume.Of(s.Shape)}
		base, err := decode(s.Coder, make([]float32, s.Units))
		if err != nil {
			return nil, err
		}
		m.base = vectors.Wide(base)
		m.positive, m.negative = signs(s.Atoms.Values)
		return m, nil
	})
}

// signs returns max(0, v) and max(0, -v); the latter is nil if no value is negative.
func signs(v []float32) (positive, negative []float64) {
	positive = make([]float64, len(v))
	if slices.ContainsFunc(v, func(x float32) bool { return x < 0 }) {
		negative = make([]float64, len(v))
	}
	for i, x := range v {
		if x < 0 {
			negative[i] = -float64(x)
		} else {
			positive[i] = float64(x)
		}
	}
	return positive, negative
}

type additivityMeter struct {
	units, pixels      int
	positive, negative []float64 // parts of the atoms
	base               []float64 // image of the zero code

	lost, added imageSum
}

func (m *additivityMeter) Add(b *Batch) error {
	n := len(b.Codes) / m.units
	lost, added := make([]float64, n), make([]float64, n)
	const rows = 25
	team.For(n, rows, func(from, to int) {
		sums := m.sums(b.Codes[from*m.units : to*m.units])
		for i := from; i < to; i++ {
			lost[i], added[i] = m.image(sums[(i-from)*m.pixels:(i-from+1)*m.pixels], b.Outputs[i*m.pixels:(i+1)*m.pixels])
		}
	})
	m.lost.add(n, n, func(i int) float64 { return lost[i] })
	m.added.add(n, n, func(i int) float64 { return added[i] })
	return nil
}

// sums returns the sum of the atoms' contributions to every pixel of the images with these codes.
func (m *additivityMeter) sums(codes []float32) []float64 {
	gemm, n := kernel.Float64().Gemm, len(codes)/m.units
	positive, negative := signs(codes)
	sums := make([]float64, n*m.pixels)
	gemm(false, false, n, m.pixels, m.units, 1, positive, m.units, m.positive, m.pixels, 0, sums, m.pixels)
	if negative != nil && m.negative != nil {
		gemm(false, false, n, m.pixels, m.units, 1, negative, m.units, m.negative, m.pixels, 1, sums, m.pixels)
	}
	return sums
}

// image returns the missing and the total sum of contributions for one reconstruction.
func (m *additivityMeter) image(sums []float64, output []float32) (lost, added float64) {
	for p, a := range sums {
		kept := max(0, float64(output[p])-max(0, m.base[p]))
		lost += max(0, a-kept)
		added += a
	}
	return lost, added
}

func (m *additivityMeter) Values(context.Context) ([]Value, error) {
	if m.added.sum == 0 {
		return []Value{Number(0)}, nil
	}
	return []Value{Number(m.lost.sum / m.added.sum)}, nil
}

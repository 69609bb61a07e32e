package data

import (
	"fmt"
	"math"
	"slices"

	"tessera/config/part"
)

// RowNorm divides every sample by its norm and multiplies it by a number, so that all samples have the same norm. A sample of zeros stays one.
// With to = 0 the norm becomes the median of the norms of the fitted samples, without those that are 0.
type RowNorm struct {
	Norm string  `toml:"norm" oneof:"l1 l2 max" doc:"norm: the sum of the magnitudes, the root of the sum of the squares, or the largest magnitude"`
	To   float64 `toml:"to" want:">= 0" doc:"norm of all samples after the scaling; 0 means the median of the fitted samples"`

	Target float64 // To, or the median
}

func init() {
	Scalings.Register("rows", "x to / |x|, every sample by its own norm", func() Scaler { return &RowNorm{Norm: "l1", To: 1} })
}

func (s *RowNorm) Check() error {
	if _, err := normOf(s.Norm); err != nil {
		return part.KeyError{Key: "norm", Problem: err.Error()}
	}
	if s.To < 0 || s.To-s.To != 0 {
		return part.KeyErrorf("to", "got %g, want a number >= 0", s.To)
	}
	return nil
}

func (s *RowNorm) Fits() bool { return s.To == 0 }

func (s *RowNorm) Fit(m *Images) (*Scaling, error) {
	fitted := *s
	if fitted.Target = s.To; s.To == 0 {
		norm, _ := normOf(s.Norm)
		var norms []float64
		m.EachRow(func(_ []int32, values []float32) {
			if n := norm(values); n > 0 {
				norms = append(norms, n)
			}
		})
		if len(norms) == 0 {
			return nil, fmt.Errorf("all fitted samples are 0")
		}
		slices.Sort(norms)
		fitted.Target = (norms[(len(norms)-1)/2] + norms[len(norms)/2]) / 2
	}
	return NewSteps(m.pixels, &fitted), nil
}

func (s *RowNorm) FittedTo(int) bool {
	return s.Target > 0 && !math.IsInf(s.Target, 0) && s.Check() == nil
}

func (s *RowNorm) Apply(_ []int32, values []float32) { normalise(values, s.Norm, s.Target) }

// normalise scales values so that their norm is to; values without a norm do not change.
func normalise(values []float32, name string, to float64) {
	norm, err := normOf(name)
	if err != nil {
		return
	}
	n := norm(values)
	if !(n > 0) {
		return
	}
	for i, v := range values {
		values[i] = float32(float64(v) / n * to)
	}
}

// normOf returns a norm by its name. Missing values count as 0.
func normOf(name string) (func(values []float32) float64, error) {
	sum := func(values []float32, of func(v float64) float64) (sum float64) {
		for _, v := range values {
			if v == v {
				sum += of(float64(v))
			}
		}
		return sum
	}
	switch name {
	case "l1":
		return func(values []float32) float64 { return sum(values, math.Abs) }, nil
	case "l2":
		return func(values []float32) float64 {
			return math.Sqrt(sum(values, func(v float64) float64 { return v * v }))
		}, nil
	case "max":
		return func(values []float32) (most float64) {
			for _, v := range values {
				most = max(most, sum([]float32{v}, math.Abs))
			}
			return most
		}, nil
	}
	return nil, fmt.Errorf(`got %q, want "l1", "l2" or "max"`, name)
}

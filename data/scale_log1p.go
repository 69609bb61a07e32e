package data

import (
	"fmt"
	"math"
)

// Log1p is log(1 + x), for counts. Values of the fitted samples must be > -1; those of others are at least the number after -1.
type Log1p struct{}

func init() {
	Scalings.Register("log1p", "log(1 + x)", func() Scaler { return &Log1p{} })
}

func (*Log1p) Fits() bool { return false }

func (s *Log1p) Fit(m *Images) (*Scaling, error) {
	if place, v := m.FirstBelow(aboveMinus1); place != "" {
		return nil, fmt.Errorf("%s: got %g, want numbers > -1", place, v)
	}
	return NewSteps(m.pixels, s), nil
}

func (*Log1p) FittedTo(int) bool { return true }

// aboveMinus1 is the number after -1.
const aboveMinus1 = -1 + 1.0/(1<<24)

func (*Log1p) Apply(_ []int32, values []float32) {
	for i, v := range values {
		if v != 0 {
			values[i] = float32(math.Log1p(float64(max(v, aboveMinus1))))
		}
	}
}

func (*Log1p) Undo(values []float32) {
	for i, v := range values {
		values[i] = float32(math.Expm1(float64(v)))
	}
}

package data

import (
	"errors"
	"math"

	"tessera/config/part"
)

// MeanNorm multiplies every value by one number, so that the mean of the l2 norms of the fitted samples is `to`. The default of `to`
// is the root of the number of values, so that a value has a size of about 1: with it, learning rates and weights of losses of
// sparse auto-encoders suit activations of any layer of any network. Source: Templeton et al., Scaling monosemanticity, 2024.
type MeanNorm struct {
	To float64 `toml:"to" want:">= 0" doc:"mean norm after the scaling; 0 means the root of the number of values"`
}

func init() {
	Scalings.Register("mean_norm", "x to / mean of |x| over the fitted samples, one number for all values", func() Scaler { return &MeanNorm{} })
}

func (s *MeanNorm) Check() error {
	if s.To < 0 || s.To-s.To != 0 {
		return part.KeyErrorf("to", "got %g, want a number >= 0", s.To)
	}
	return nil
}

func (*MeanNorm) Fits() bool { return true }

func (s *MeanNorm) Fit(m *Images) (*Scaling, error) {
	norm, _ := normOf("l2")
	sum, n := 0.0, 0
	m.EachRow(func(_ []int32, values []float32) { sum, n = sum+norm(values), n+1 })
	if !(sum > 0) {
		return nil, errors.New("all fitted samples are 0")
	}
	to := s.To
	if to == 0 {
		to = math.Sqrt(float64(m.pixels))
	}
	return (&Factor{By: to * float64(n) / sum}).Fit(m)
}

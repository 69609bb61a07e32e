package data

import (
	"math"

	"tessera/config/part"
)

// Factor multiplies every value by a number. scale = 0.1 is short for scale = { kind = "factor", by = 0.1 }.
type Factor struct {
	By float64 `toml:"by" doc:"the factor, not 0"`
}

func init() {
	Scalings.Register("factor", "x times a number; the number alone means this scaling", func() Scaler { return &Factor{By: 1} })
}

// Check returns an error for a factor that float32 cannot multiply and divide by.
func (s *Factor) Check() error {
	if f := float64(float32(s.By)); f == 0 || f-f != 0 || math.IsInf(float64(1/float32(s.By)), 0) {
		return part.KeyErrorf("by", "got %g, want a factor that float32 can multiply and divide by", s.By)
	}
	return nil
}

func (*Factor) Fits() bool { return false }

func (s *Factor) Fit(m *Images) (*Scaling, error) {
	scaling := NewSteps(m.pixels)
	for i := range scaling.Factor {
		if err := scaling.setFactor(i, s.By); err != nil {
			return nil, err
		}
	}
	return scaling, nil
}

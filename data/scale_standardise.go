package data

import "math"

// Standardise is (x - mean) / standard deviation (of the population), or x / standard deviation without centre, which keeps zeros. They are
// those of the fitted samples, for each value of a vector, or for each channel of images over all pixels. If all samples have the same
// value, the divisor is 1.
type Standardise struct {
	Centre bool `toml:"centre" doc:"subtract the mean"`
}

func init() {
	Scalings.Register("standardise", "(x - mean) / standard deviation", func() Scaler { return &Standardise{Centre: true} })
}

func (*Standardise) Fits() bool { return true }

func (s *Standardise) Fit(m *Images) (*Scaling, error) {
	return m.affine(func(one statistic) (shift, divisor float64) {
		if s.Centre {
			shift = one.mean
		}
		return shift, math.Sqrt(one.squares / one.n)
	})
}

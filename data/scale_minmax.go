package data

// MinMax is (x - min) / (max - min), clipped to [0,1] for samples that were not fitted. Minimum and maximum are those of the fitted samples,
// for each value of a vector, or for each channel of images over all pixels. If all samples have the same value, the divisor is 1.
type MinMax struct{}

func init() {
	Scalings.Register("minmax", "(x - min) / (max - min), clipped to [0,1] for samples that were not fitted", func() Scaler { return &MinMax{} })
}

func (*MinMax) Fits() bool { return true }

func (*MinMax) Fit(m *Images) (*Scaling, error) {
	s, err := m.affine(func(s statistic) (shift, divisor float64) { return s.min, s.max - s.min })
	if err == nil {
		s.Clip = true
	}
	return s, err
}

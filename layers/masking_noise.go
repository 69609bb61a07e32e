package layers

import "gorgonia.org/gorgonia"

// MaskingNoise sets each value to 0 with probability rate in training and keeps the others. Source: Vincent et al., Stacked
// Denoising Autoencoders, JMLR 11 (2010).
type MaskingNoise struct {
	pointwise
	Rate float64 `toml:"rate" want:"in [0,1)" doc:"probability that a value is set to 0"`
}

func init() {
	Registry.Register("masking_noise", "sets values to 0 at random in training, y = x m", func() Layer {
		return &MaskingNoise{Rate: 0.25}
	})
}

func (m *MaskingNoise) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	if !s.Training() || !m.Noisy() {
		return x, nil
	}
	return gorgonia.HadamardProd(x, s.Noise(maskSampler{drop: m.Rate, keep: 1}, x.Shape()...))
}

func (m *MaskingNoise) Noisy() bool { return m.Rate != 0 }

func (m *MaskingNoise) OutputRange(in Interval) Interval {
	if m.Rate == 0 {
		return in
	}
	return Interval{min(0, in.Low), max(0, in.High)}
}

package layers

import (
	"math/rand/v2"

	"gorgonia.org/gorgonia"
)

// GaussianNoise adds normal noise of mean 0 to each value in training: y = x + n, n ~ N(0, stddev²).
type GaussianNoise struct {
	pointwise
	Stddev float64 `toml:"stddev" want:">= 0" doc:"standard deviation, in the unit of the input"`
}

func init() {
	Registry.Register("gaussian_noise", "adds normal noise in training, y = x + n", func() Layer {
		return &GaussianNoise{Stddev: 0.1}
	})
}

func (g *GaussianNoise) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	if !s.Training() || !g.Noisy() {
		return x, nil
	}
	return gorgonia.Add(x, s.Noise(normalSampler{stddev: g.Stddev}, x.Shape()...))
}

func (g *GaussianNoise) Noisy() bool { return g.Stddev != 0 }

// OutputRange implements [Ranged]: the noise has no bounds.
func (g *GaussianNoise) OutputRange(in Interval) Interval {
	if g.Stddev == 0 {
		return in
	}
	return Everything
}

// normalSampler draws from N(0, stddev²).
type normalSampler struct{ stddev float64 }

func (n normalSampler) Sample(dst []float32, r *rand.Rand) {
	for i := range dst {
		dst[i] = float32(n.stddev * r.NormFloat64())
	}
}

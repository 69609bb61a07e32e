package layers

import (
	"math"
	"math/rand/v2"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// RectifiedGaussian is a code layer of a variational auto-encoder whose codes are never negative, and often exactly 0. As the
// layer gaussian it computes, from the flattened input x of n values, for each of its `units` outputs
//
//	mean = x W + b,    log_variance = x V + c,
//
// where log_variance is limited to [-30, 20]. In training, each output is drawn as y = max(0, mean + exp(log_variance / 2) e)
// with e ~ N(0, 1); at inference, y = max(0, mean), the median of that distribution. The prior of unit j is the rectified normal
// distribution max(0, N(p_j, 1)), where p is a parameter: training by the loss rectified_kl fits p_j, and with it the share
// P(N(0,1) < p_j) of images in which the unit is active. The layer publishes mean, log_variance and prior_mean p, all of shape
// (units). With a decoder of non-negative weights, drawn images are sums of parts.
//
// Parameters: weight W and log_variance_weight V, both (n, units), bias b and log_variance_bias c, both (units), initially 0,
// prior_mean p, (units), initially `prior`. Source of the estimate of gradients: Kingma and Welling, Auto-encoding variational
// Bayes, 2014; the rectified distributions: Socci, Lee and Seung, The rectified Gaussian distribution, 1997.
type RectifiedGaussian struct {
	Gaussian
	Prior float64 `toml:"prior" doc:"initial mean of the prior of every unit, before the rectification"`
}

func init() {
	Registry.Register("rectified_gaussian", "a rectified normal distribution for each unit, never negative: drawn in training, its median at inference", func() Layer {
		return &RectifiedGaussian{Gaussian: Gaussian{Init: &GlorotUniform{}}, Prior: -0.5}
	})
}

// PriorMean is the name of a value that [RectifiedGaussian] publishes.
const PriorMean = "prior_mean"

func (g *RectifiedGaussian) Parameters(in []int) []Parameter {
	return append(g.Gaussian.Parameters(in), Parameter{Name: PriorMean, Shape: []int{g.Units}, Init: &Constant{Value: g.Prior}, FanIn: g.Units, FanOut: g.Units})
}

func (g *RectifiedGaussian) Publishes(in []int) []Value {
	return append(g.Gaussian.Publishes(in), Value{Name: PriorMean, Shape: []int{g.Units}})
}

func (g *RectifiedGaussian) OutputRange(Interval) Interval { return Interval{0, math.Inf(1)} }

func (g *RectifiedGaussian) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	z := g.draw(&c, s, x)
	y := c.Ramp(z, 1, 0)
	// The parameter, once for each image: the comparison is 0 everywhere, because no square is below 0. Its gradient is a sum over
	// the images, so processes share it.
	prior := c.AddRow(c.Lt(c.Square(z), 0), s.Parameter(PriorMean))
	if c.Err() == nil {
		s.Publish(PriorMean, prior)
	}
	return y, c.Err()
}

// Generate implements [Generator]: codes from the prior, decoded.
func (g *RectifiedGaussian) Generate(d Generation) ([]float32, error) {
	var codes []float32
	prior := d.Parameter(PriorMean)
	for _, r := range d.Streams() {
		for _, p := range prior {
			codes = append(codes, float32(max(0, float64(p)+r.NormFloat64())))
		}
	}
	return d.Value("output", map[string][]float32{d.Path(): codes})
}

// DrawFrom implements [Variational]. Both distributions have a point mass at 0 and a density above 0; for a drawn 0 the ratio
// is that of the point masses.
func (g *RectifiedGaussian) DrawFrom(dst []float32, values map[string][]float32, r *rand.Rand) (logRatio float64) {
	for j := range dst {
		m, v, p, e := float64(values[Mean][j]), float64(values[LogVariance][j]), float64(values[PriorMean][j]), r.NormFloat64()
		z := m + math.Exp(v/2)*e
		if z > 0 {
			logRatio += (e*e - (z-p)*(z-p) + v) / 2
		} else {
			z = 0
			logRatio += logNormalCDF(-p) - logNormalCDF(-m*math.Exp(-v/2))
		}
		dst[j] = float32(z)
	}
	return logRatio
}

// Divergence implements [Variational], by the formula of the loss rectified_kl.
func (g *RectifiedGaussian) Divergence(values map[string][]float32) (sum float64) {
	for j := range values[Mean] {
		m, v, p := float64(values[Mean][j]), float64(values[LogVariance][j]), float64(values[PriorMean][j])
		s := math.Exp(v / 2)
		t, d := m/s, m-p
		active, density := math.Exp(logNormalCDF(t)), math.Exp(-t*t/2)/math.Sqrt(2*math.Pi)
		if zero := math.Exp(logNormalCDF(-t)); zero > 0 {
			sum += zero * (logNormalCDF(-t) - logNormalCDF(-p))
		}
		sum += ((d*d-v)*active + 2*d*s*density + (s*s-1)*(active-t*density)) / 2
	}
	return sum
}

// logNormalCDF returns log P(N(0,1) < x). It is finite for all x above -1e154.
func logNormalCDF(x float64) float64 {
	if x > -35 {
		return math.Log(math.Erfc(-x/math.Sqrt2) / 2)
	}
	return -x*x/2 - math.Log(-x) - math.Log(2*math.Pi)/2 - 1/(x*x) // the asymptotic series; its error is below 1e-5
}

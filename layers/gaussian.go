package layers

import (
	"math"
	"math/rand/v2"

	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
	"tessera/internal/volume"
)

var (
	_ Sized       = (*Gaussian)(nil)
	_ Variational = (*Gaussian)(nil)
)

// Gaussian is the code layer of a variational auto-encoder. From the flattened input x of n values it computes a normal
// distribution for each of its `units` outputs,
//
//	mean = x W + b,    log_variance = x V + c,
//
// where log_variance is limited to [-30, 20]. In training, each output is drawn as y = mean + exp(log_variance / 2) e with e
// ~ N(0, 1), so that gradients reach the mean and the variance; at inference, y = mean. The layer publishes mean and
// log_variance, both of shape (units), in training and at inference: the loss gaussian_kl compares them with N(0, 1).
// Parameters: weight W and log_variance_weight V, both (n, units), bias b and log_variance_bias c, both (units), initially 0.
// Source: Kingma and Welling, Auto-encoding variational Bayes, 2014.
type Gaussian struct {
	Units int  `toml:"units" want:"> 0" doc:"number of outputs"`
	Init  Init `toml:"init" doc:"initial values of the weights"`
}

func init() {
	Registry.Register("gaussian", "a normal distribution for each unit: drawn in training, the mean at inference", func() Layer {
		return &Gaussian{Init: &GlorotUniform{}}
	})
}

// Names of the values that [Gaussian] publishes.
const (
	Mean        = "mean"
	LogVariance = "log_variance"
)

func (g *Gaussian) OutputUnits() int     { return g.Units }
func (g *Gaussian) SetOutputUnits(n int) { g.Units = n }

func (g *Gaussian) OutputShape([]int) ([]int, error) {
	if g.Units < 1 {
		return nil, part.KeyErrorf("units", "got %d, want > 0", g.Units)
	}
	return []int{g.Units}, nil
}

func (g *Gaussian) Parameters(in []int) (list []Parameter) {
	n := volume.Of(in)
	for _, prefix := range []string{"", LogVariance + "_"} {
		list = append(list,
			Parameter{Name: prefix + "weight", Shape: []int{n, g.Units}, Init: g.Init, FanIn: n, FanOut: g.Units},
			Parameter{Name: prefix + "bias", Shape: []int{g.Units}, Init: &Zeros{}, FanIn: n, FanOut: g.Units})
	}
	return list
}

func (g *Gaussian) Publishes([]int) []Value {
	return []Value{{Name: Mean, Shape: []int{g.Units}}, {Name: LogVariance, Shape: []int{g.Units}}}
}

func (g *Gaussian) Noisy() bool { return true }

func (g *Gaussian) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	y := g.draw(&c, s, x)
	return y, c.Err()
}

// draw publishes the mean and the log variance for the input x, and returns the drawn values; at inference it returns the mean.
func (g *Gaussian) draw(c *ops.Chain, s Scope, x *gorgonia.Node) *gorgonia.Node {
	x = c.Flatten(x)
	mapped := func(prefix string) *gorgonia.Node {
		return c.AddRow(c.MatMul(x, s.Parameter(prefix+"weight")), s.Parameter(prefix+"bias"))
	}
	mean, logVariance := mapped(""), c.Clip(mapped(LogVariance+"_"), -30, 20)
	if c.Err() != nil {
		return nil
	}
	s.Publish(Mean, mean)
	s.Publish(LogVariance, logVariance)
	if !s.Training() {
		return mean
	}
	return c.Add(mean, c.Mul(c.Exp(c.Scale(logVariance, 0.5)), s.Noise(normalSampler{stddev: 1}, mean.Shape()...)))
}

// Generate implements [Generator]: codes from N(0, 1), decoded.
func (g *Gaussian) Generate(d Generation) ([]float32, error) {
	var codes []float32
	for _, r := range d.Streams() {
		for range g.Units {
			codes = append(codes, float32(r.NormFloat64()))
		}
	}
	return d.Value("output", map[string][]float32{d.Path(): codes})
}

func (g *Gaussian) DrawFrom(dst []float32, values map[string][]float32, r *rand.Rand) (logRatio float64) {
	mean, logVariance := values[Mean], values[LogVariance]
	for j := range dst {
		m, v, e := float64(mean[j]), float64(logVariance[j]), r.NormFloat64()
		z := m + math.Exp(v/2)*e
		dst[j] = float32(z)
		logRatio += (e*e - z*z + v) / 2
	}
	return logRatio
}

func (g *Gaussian) Divergence(values map[string][]float32) (sum float64) {
	for j, mean := range values[Mean] {
		m, v := float64(mean), float64(values[LogVariance][j])
		sum += (math.Exp(v) + m*m - 1 - v) / 2
	}
	return sum
}

package layers

import (
	"fmt"
	"math"
	"slices"

	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
	"tessera/internal/volume"
)

var _ Reader = (*Diffuse)(nil)

// Diffuse mixes an image x with noise, the forward process of a diffusion model: the value `level` is the noise level t of each
// image, from 0 (no noise) to 1 (noise alone), and the value `noise` is e ~ N(0, 1), with as many values as an image:
//
//	y = a(t) (x - centre) / range + b(t) e,    b(t)² = 1 - a(t)²
//
// schedule = "cosine" is a(t) = cos(π t / 2). "linear" is log a(t)² = -(0.1 t + 9.95 t²), the limit of the schedule of Ho et
// al. for a growing number of steps. t is limited to [0,1]. The layer does the same in training and at inference. The other
// layers estimate e from y and t, and the loss mse compares their value `estimate` with the noise.
//
// A model with this layer is generative. New images are computed from y ~ N(0, 1) at the level t = 0.999, in `steps` equal steps to
// the level 0. A step from t to s < t estimates x and e and mixes them again:
//
//	x' = (y - b(t) estimate) / a(t), limited to [-1, 1],    e' = (y - a(t) x') / b(t)
//	y <- a(s) x' + sqrt(b(s)² - v²) e' + v z,    v = eta b(s)/b(t) sqrt(1 - a(t)²/a(s)²),    z ~ N(0, 1)
//
// eta = 1, the default, is the sampler of Ho et al. (DDPM), eta = 0 the deterministic one of Song et al. (DDIM). Fresh noise
// corrects errors of the estimate.
//
// Sources: Ho, Jain and Abbeel, Denoising diffusion probabilistic models, 2020; Song, Meng and Ermon, Denoising diffusion implicit
// models, 2021; Nichol and Dhariwal, Improved denoising diffusion probabilistic models, 2021; Song et al., Score-based generative
// modeling through stochastic differential equations, 2021, for the continuous levels.
type Diffuse struct {
	Noise    string  `toml:"noise" doc:"name of the noise, with the size of an image: a drawn column"`
	Level    string  `toml:"level" doc:"name of the noise level, one number in [0,1]: a drawn column"`
	Estimate string  `toml:"estimate" doc:"name of the value that estimates the noise"`
	Schedule string  `toml:"schedule" oneof:"cosine linear" doc:"how the noise grows with the level"`
	Steps    int     `toml:"steps" want:"> 0" doc:"number of steps in which an image is drawn"`
	Eta      float64 `toml:"eta" want:"in [0,1]" doc:"noise that is added while an image is drawn: 0 is DDIM, 1 is DDPM"`
	Centre   float64 `toml:"centre" doc:"value of a pixel that becomes 0"`
	Range    float64 `toml:"range" want:"> 0" doc:"distance from the centre that becomes 1"`

	noise, level []int // shapes of the values
}

func init() {
	Registry.Register("diffuse", "mixes an image with noise, y = a(t) x + b(t) e: the model draws images", func() Layer {
		return &Diffuse{Noise: "noise", Level: "level", Estimate: "output", Schedule: "cosine", Steps: 50, Eta: 1, Centre: 0.5, Range: 0.5}
	})
}

func (d *Diffuse) Reads() []Reading {
	return []Reading{{Key: "noise", Name: d.Noise, Shape: d.noise}, {Key: "level", Name: d.Level, Shape: d.level, Fixed: true}}
}

func (d *Diffuse) Receive(shapes [][]int) { d.noise, d.level = shapes[0], shapes[1] }

func (d *Diffuse) OutputShape(in []int) ([]int, error) {
	if d.noise == nil || volume.Of(d.noise) != volume.Of(in) {
		return nil, part.KeyErrorf("noise", "%q has the shape %v, want %d values, as many as the input", d.Noise, d.noise, volume.Of(in))
	}
	if d.level == nil || volume.Of(d.level) != 1 {
		return nil, part.KeyErrorf("level", "%q has the shape %v, want one number", d.Level, d.level)
	}
	return slices.Clone(in), nil
}

func (*Diffuse) Parameters([]int) []Parameter { return nil }

// The logarithm of a(t)² of the linear schedule is -(linearStart t + linearGrowth t²): its rate grows from 0.1 to 20.
const (
	linearStart  = 0.1
	linearGrowth = (20 - linearStart) / 2
)

func (d *Diffuse) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	batch, pixels := x.Shape()[0], volume.Of(x.Shape()[1:])
	level, noise := s.Value(d.Level), s.Value(d.Noise)
	if level.Shape().TotalSize() != batch || noise.Shape().TotalSize() != batch*pixels {
		return nil, fmt.Errorf("diffuse: %q has the shape %v and %q the shape %v, want one number and %d for each of %d inputs",
			d.Level, level.Shape(), d.Noise, noise.Shape(), pixels, batch)
	}
	signal, share := d.weights(&c, c.Clip(c.Reshape(level, batch, 1), 0, 1))
	weigh := func(x, by *gorgonia.Node) *gorgonia.Node {
		return c.Do("weigh", func() (*gorgonia.Node, error) {
			return gorgonia.BroadcastHadamardProd(c.Reshape(x, batch, pixels), by, nil, []byte{1})
		})
	}
	y := c.Add(weigh(c.Scale(c.Shift(x, -d.Centre), 1/d.Range), signal), weigh(noise, share))
	return c.Reshape(y, x.Shape()...), c.Err()
}

// weights returns a(t) and b(t) for levels t (batch, 1).
func (d *Diffuse) weights(c *ops.Chain, t *gorgonia.Node) (signal, noise *gorgonia.Node) {
	if d.Schedule == "linear" {
		square := c.Exp(c.Neg(c.Add(c.Scale(t, linearStart), c.Scale(c.Square(t), linearGrowth))))
		return c.Sqrt(square), c.Sqrt(c.From(1, square))
	}
	angle := c.Scale(t, math.Pi/2)
	return c.Do("cos", func() (*gorgonia.Node, error) { return gorgonia.Cos(angle) }),
		c.Do("sin", func() (*gorgonia.Node, error) { return gorgonia.Sin(angle) })
}

// at returns a(t) and b(t) for one level.
func (d *Diffuse) at(t float64) (signal, noise float64) {
	if d.Schedule == "linear" {
		log := -(linearStart*t + linearGrowth*t*t)
		return math.Exp(log / 2), math.Sqrt(-math.Expm1(log))
	}
	return math.Cos(t * math.Pi / 2), math.Sin(t * math.Pi / 2)
}

// firstLevel is the level at which a new image begins. At 1, the cosine schedule leaves nothing of an image.
const firstLevel = 0.999

func (d *Diffuse) Generate(g Generation) ([]float32, error) {
	streams := g.Streams()
	n := g.Size(g.Path())
	y, level := make([]float32, len(streams)*n), make([]float32, len(streams))
	for i := range y {
		y[i] = float32(streams[i/n].NormFloat64())
	}
	for step := d.Steps; step > 0; step-- {
		t, s := firstLevel*float64(step)/float64(d.Steps), firstLevel*float64(step-1)/float64(d.Steps)
		for i := range level {
			level[i] = float32(t)
		}
		estimate, err := g.Value(d.Estimate, map[string][]float32{g.Path(): y, d.Level: level})
		if err != nil {
			return nil, err
		}
		if len(estimate) != len(y) {
			return nil, fmt.Errorf("diffuse: %q has %d values for an image, want %d", d.Estimate, len(estimate)/len(streams), n)
		}
		signal, noise := d.at(t)
		nextSignal, nextNoise := d.at(s)
		fresh := d.Eta * nextNoise / noise * math.Sqrt(max(0, 1-signal*signal/(nextSignal*nextSignal)))
		kept := math.Sqrt(max(0, nextNoise*nextNoise-fresh*fresh))
		for i, v := range y {
			x := min(max((float64(v)-noise*float64(estimate[i]))/signal, -1), 1)
			next := nextSignal*x + kept*(float64(v)-signal*x)/noise
			if fresh > 0 {
				next += fresh * streams[i/n].NormFloat64()
			}
			y[i] = float32(next)
		}
	}
	for i, v := range y {
		y[i] = float32(float64(v)*d.Range + d.Centre)
	}
	return y, nil
}

func (d *Diffuse) Stepped(steps int, eta float64) (Generator, error) {
	other := *d
	if steps < 0 {
		return nil, part.KeyErrorf("steps", "got %d, want > 0", steps)
	} else if steps > 0 {
		other.Steps = steps
	}
	if eta > 1 {
		return nil, part.KeyErrorf("eta", "got %v, want in [0,1]", eta)
	} else if eta >= 0 {
		other.Eta = eta
	}
	return &other, nil
}

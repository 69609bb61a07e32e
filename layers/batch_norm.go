package layers

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
	"tessera/internal/volume"
)

// BatchNorm shifts and scales every unit of a vector, or every channel of an image (height, width, channels) or (height,
// width), to a learned mean and deviation:
//
//	y = scale (x - mean) / sqrt(variance + epsilon) + shift
//
// In training, mean and (biased) variance are computed over the batch and the pixels; gradients flow through them.
// Inference uses running averages, which every training step updates:
//
//	running = momentum running + (1 - momentum) of the batch
//
// The running variance averages the unbiased variance; a batch of a single value does not change it. momentum has the meaning
// of Keras (1 - momentum of PyTorch), the variance the meaning of PyTorch. Parameters, all of shape (units) or (channels):
// scale (initially 1), shift (0), and the state running_mean (0) and running_variance (1). Ioffe and Szegedy, Batch
// Normalization, 2015.
type BatchNorm struct {
	Momentum float64 `toml:"momentum" want:"in [0,1)" doc:"decay of the running averages"`
	Epsilon  float64 `toml:"epsilon" want:"> 0" doc:"added to the variance"`
}

func init() {
	Registry.Register("batch_norm", "normalises units or channels over the batch", func() Layer {
		return &BatchNorm{Momentum: 0.99, Epsilon: 1e-3}
	})
}

func (*BatchNorm) OutputShape(in []int) ([]int, error) { return in, nil }

func (*BatchNorm) Parameters(in []int) []Parameter {
	c := channels(in)
	parameter := func(name string, start float64, state bool) Parameter {
		return Parameter{Name: name, Shape: []int{c}, Init: &Constant{Value: start}, FanIn: 1, FanOut: 1, State: state}
	}
	return []Parameter{parameter("scale", 1, false), parameter("shift", 0, false),
		parameter("running_mean", 0, true), parameter("running_variance", 1, true)}
}

func (b *BatchNorm) Average() (key string, decay float64) { return "momentum", b.Momentum }

func (b *BatchNorm) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	rows := c.Flatten(x)
	places := volume.Of(x.Shape()[1:]) / channels(x.Shape()[1:]) // of one image
	mean, variance := s.Parameter("running_mean"), s.Parameter("running_variance")
	if s.Training() {
		mean, variance = b.batch(&c, s, rows, places)
	}
	centred := c.SubRow(rows, c.Tile(mean, places))
	scale := c.Mul(s.Parameter("scale"), c.InvSqrt(c.Shift(variance, b.Epsilon)))
	y := c.AddRow(c.MulRow(centred, c.Tile(scale, places)), c.Tile(s.Parameter("shift"), places))
	return c.Reshape(y, x.Shape()...), c.Err()
}

// batch returns the mean and the biased variance of each channel of rows (batch, places*channels) and updates the running
// averages.
func (b *BatchNorm) batch(c *ops.Chain, s Scope, rows *gorgonia.Node, places int) (mean, variance *gorgonia.Node) {
	n := rows.Shape()[0] * places
	average := func(x *gorgonia.Node) *gorgonia.Node {
		return c.Scale(c.Fold(c.Sum(x, 0), places), 1/float64(n))
	}
	mean = average(rows)
	variance = average(c.Square(c.SubRow(rows, c.Tile(mean, places))))
	move := func(name string, value *gorgonia.Node, factor float64) {
		moved := c.Add(c.Scale(s.Parameter(name), b.Momentum), c.Scale(value, (1-b.Momentum)*factor))
		if c.Err() == nil {
			s.Update(name, moved)
		}
	}
	move("running_mean", mean, 1)
	if n > 1 {
		move("running_variance", variance, float64(n)/float64(n-1))
	}
	return mean, variance
}

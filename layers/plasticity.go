package layers

import (
	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
	"tessera/internal/volume"
)

// Plasticity is a sigmoid with a gain a and a bias b for every unit of a vector, or every channel of an image
// (height, width, channels):
//
//	h = 1 / (1 + exp(-a g - b))
//
// where g is the input. The optimizer does not change a and b. After every training step, the rule of intrinsic plasticity
// updates them, with means over the batch and the pixels,
//
//	d = rate (1 - (2 + 1/mean) h + h² / mean),  b <- b + mean of d,  a <- a + rate/a + mean of g d
//
// The rule makes the distribution of every unit's activations approximately exponential, with mean `mean`. Gradients flow to
// the input as through any sigmoid. State, of shape (units) or (channels): gain and bias. Triesch, A Gradient Rule for the
// Plasticity of a Neuron's Intrinsic Excitability, 2005; Lemme, Reinhart and Steil, Online Learning and Generalization of
// Parts-based Image Representations by Non-negative Sparse Autoencoders, 2012, with online updates, one image at a time.
type Plasticity struct {
	Mean float64 `toml:"mean" want:"in (0,1)" doc:"target mean activation of every unit"`
	Rate float64 `toml:"rate" want:">= 0" doc:"learning rate of gain and bias"`
	Gain float64 `toml:"gain" want:"> 0" doc:"initial gain of every unit"`
	Bias float64 `toml:"bias" doc:"initial bias of every unit"`
}

func init() {
	Registry.Register("plasticity", "sigmoid whose gain and bias adapt to a target mean activation", func() Layer {
		return &Plasticity{Mean: 0.2, Rate: 0.001, Gain: 1, Bias: -3}
	})
}

func (p *Plasticity) OutputShape(in []int) ([]int, error) {
	if !(p.Mean > 0 && p.Mean < 1) {
		return nil, part.KeyErrorf("mean", "got %v, want in (0,1)", p.Mean)
	}
	return in, nil
}

func (p *Plasticity) Parameters(in []int) []Parameter {
	state := func(name string, start float64) Parameter {
		return Parameter{Name: name, Shape: []int{channels(in)}, Init: &Constant{Value: start}, FanIn: 1, FanOut: 1, State: true}
	}
	return []Parameter{state("gain", p.Gain), state("bias", p.Bias)}
}

func (p *Plasticity) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	rows := c.Flatten(x)
	places := volume.Of(x.Shape()[1:]) / channels(x.Shape()[1:]) // of one image
	gain, bias := s.Parameter("gain"), s.Parameter("bias")
	drive := c.AddRow(c.MulRow(rows, c.Tile(gain, places)), c.Tile(bias, places))
	h := c.Do("sigmoid", func() (*gorgonia.Node, error) { return gorgonia.Sigmoid(drive) })
	if s.Training() {
		p.adapt(&c, s, rows, h, places)
	}
	return c.Reshape(h, x.Shape()...), c.Err()
}

// adapt updates gain and bias from the inputs g and the activations h, both (batch, places*channels).
func (p *Plasticity) adapt(c *ops.Chain, s Scope, g, h *gorgonia.Node, places int) {
	average := func(x *gorgonia.Node) *gorgonia.Node { // of every channel
		if c.Err() != nil {
			return nil
		}
		return c.Scale(c.Fold(c.Sum(x, 0), places), 1/float64(x.Shape()[0]*places))
	}
	d := c.Scale(c.Add(c.From(1, c.Scale(h, 2+1/p.Mean)), c.Scale(c.Square(h), 1/p.Mean)), p.Rate)
	gain, bias := s.Parameter("gain"), s.Parameter("bias")
	ratio := c.Do("rate over gain", func() (*gorgonia.Node, error) { return gorgonia.HadamardDiv(ops.Scalar(gain, p.Rate), gain) })
	movedGain := c.Add(c.Add(gain, ratio), average(c.Mul(g, d)))
	movedBias := c.Add(bias, average(d))
	if c.Err() == nil {
		s.Update("gain", movedGain)
		s.Update("bias", movedBias)
	}
}

func (*Plasticity) OutputRange(Interval) Interval { return Interval{0, 1} }

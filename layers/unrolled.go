package layers

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/internal/volume"
	"tessera/ops"
	"tessera/part"
)

// Unrolled computes a non-negative code y of the flattened input x by a few accelerated projected-gradient steps towards
// the least squares fit x ≈ y Wᵀ, whose weight W of shape (inputs, units) has the atoms as columns. A [Tied] decoder uses
// the same weight. From y(0) = 0 and z(1) = 0, for t = 1 to steps,
//
//	y(t)   = max(0, z(t) - step_size (z(t) G - x W) / row - threshold),  G = Wᵀ W
//	z(t+1) = y(t) + momentum_t (y(t) - y(t-1))
//
// element by element, where row holds the sums of the rows of |G|: with a step_size of 1, and no threshold or momentum, no
// step raises the error. The code is y(steps). G and row are computed once per batch, x W once per image: a code costs
// inputs·units + (steps-1) units² multiplications besides G.
//
// Parameters: weight; step_size of shape (units), which starts at 1; threshold (units), which starts at 0 and makes codes
// sparse; and momentum_1, momentum_2, ... to steps-1, of shape (1), which start at the (t-1)/(t+2) of Nesterov's method.
// Losses and constraints act on the atoms as on those of any tied decoder.
//
// Sources: Gregor and LeCun, Learning Fast Approximations of Sparse Coding, 2010 (unrolled steps with learned sizes and
// thresholds); Chorowski and Zurada, Learning Understandable Neural Networks with Nonnegative Weight Constraints, 2015
// (non-negative codes and atoms); Beck and Teboulle, A Fast Iterative Shrinkage-Thresholding Algorithm, 2009 (momentum).
type Unrolled struct {
	Units int  `toml:"units" want:"> 0" doc:"number of units: of atoms"`
	Steps int  `toml:"steps" want:"> 0" doc:"number of gradient steps"`
	Init  Init `toml:"init" doc:"initial values of the weights"`
}

func init() {
	Registry.Register("unrolled", "non-negative code by unrolled gradient steps of the least squares fit x = y Wᵀ", func() Layer {
		return &Unrolled{Steps: 8, Init: &Uniform{Low: 0, High: 0.05}}
	})
}

// OutputUnits implements [Sized].
func (u *Unrolled) OutputUnits() int { return u.Units }

// SetOutputUnits implements [Sized].
func (u *Unrolled) SetOutputUnits(n int) { u.Units = n }

// OutputShape implements [Layer].
func (u *Unrolled) OutputShape([]int) ([]int, error) {
	if u.Units < 1 {
		return nil, part.KeyErrorf("units", "got %d, want > 0", u.Units)
	}
	if u.Steps < 1 {
		return nil, part.KeyErrorf("steps", "got %d, want > 0", u.Steps)
	}
	return []int{u.Units}, nil
}

// Parameters implements [Layer].
func (u *Unrolled) Parameters(in []int) []Parameter {
	n := volume.Of(in)
	list := []Parameter{{Name: "weight", Shape: []int{n, u.Units}, Init: u.Init, FanIn: n, FanOut: u.Units}}
	constant := func(name string, size int, value float64) {
		list = append(list, Parameter{Name: name, Shape: []int{size}, Init: &Constant{Value: value}, FanIn: u.Units, FanOut: u.Units})
	}
	constant("step_size", u.Units, 1)
	constant("threshold", u.Units, 0)
	for t := 1; t < u.Steps; t++ {
		constant(momentum(t), 1, float64(t-1)/float64(t+2))
	}
	return list
}

// momentum is the name of the parameter of step t.
func momentum(t int) string { return fmt.Sprintf("momentum_%d", t) }

// Apply implements [Layer].
func (u *Unrolled) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	w := s.Parameter("weight")
	gram := c.MatMul(c.Do("transpose", func() (*gorgonia.Node, error) { return ops.Transpose(w) }), w)
	size := c.Div(s.Parameter("step_size"), c.Shift(c.Sum(c.Abs(gram), 1), tiny))
	drive := c.SubRow(c.MulRow(c.MatMul(c.Flatten(x), w), size), s.Parameter("threshold")) // what every step adds
	y := c.Ramp(drive, 1, 0)                                                               // step 1: z is 0
	z := y                                                                                 // z(2), up to momentum_1
	var before *gorgonia.Node
	for t := 1; t < u.Steps; t++ {
		factor := c.Tile(s.Parameter(momentum(t)), u.Units)
		moved := y
		if before != nil {
			moved = c.Sub(y, before)
		}
		z = c.Add(y, c.MulRow(moved, factor))
		before = y
		y = c.Ramp(c.Add(c.Sub(z, c.MulRow(c.MatMul(z, gram), size)), drive), 1, 0)
	}
	return y, c.Err()
}

// tiny keeps the size of a step finite for an atom of zeros.
const tiny = 1e-12

// OutputRange implements [Ranged].
func (*Unrolled) OutputRange(Interval) Interval { return Interval{0, Everything.High} }

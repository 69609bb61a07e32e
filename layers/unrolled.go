package layers

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
	"tessera/internal/volume"
)

var _ Sized = (*Unrolled)(nil)

// Unrolled computes a non-negative code y of the flattened input x by a few accelerated projected-gradient steps on the
// least-squares problem x ≈ y Wᵀ. The weight W of shape (inputs, units) has the atoms as columns. A [Tied] decoder uses the
// same weight. From y(0) = 0 and z(1) = 0, for t = 1 to steps,
//
//	y(t)   = max(0, z(t) - step_size_t (z(t) G - x W) / row - threshold_t),  G = Wᵀ W
//	z(t+1) = y(t) + momentum_t (y(t) - y(t-1))
//
// The formulas hold for each element; row contains the row sums of |G|. With a step_size of 1, and neither threshold nor
// momentum, no step increases the error. The code is y(steps). G and row are computed once per batch, x W once per image: a
// code costs inputs·units + (steps-1) units² multiplications in addition to G.
//
// Parameters: weight; step_size_1, ... of shape (units), initially 1; threshold_1, ... (units), initially 0, which make codes
// sparse; and momentum_1, ..., momentum_(steps-1), of shape (1), initially (t-1)/(t+2) as in Nesterov's method. Losses and
// constraints act on the atoms as in any tied decoder.
//
// Sources: Gregor and LeCun, Learning Fast Approximations of Sparse Coding, 2010 (unrolled steps with learned sizes and
// thresholds); Chorowski and Zurada, Learning Understandable Neural Networks with Nonnegative Weight Constraints, 2015
// (non-negative codes and atoms); Beck and Teboulle, A Fast Iterative Shrinkage-Thresholding Algorithm, 2009 (momentum).
type Unrolled struct {
	Units int  `toml:"units" want:"> 0" doc:"number of units: of atoms"`
	Steps int  `toml:"steps" want:"> 0" doc:"number of gradient steps"`
	Init  Init `toml:"init" doc:"initial values of the weights"`
}

// mostSteps is the maximum number of steps: every step has its own parameters.
const mostSteps = 1000

func init() {
	Registry.Register("unrolled", "non-negative code by unrolled gradient steps of the least squares fit x = y Wᵀ", func() Layer {
		return &Unrolled{Steps: 8, Init: &Uniform{Low: 0, High: 0.05}}
	})
}

func (u *Unrolled) OutputUnits() int     { return u.Units }
func (u *Unrolled) SetOutputUnits(n int) { u.Units = n }

func (u *Unrolled) OutputShape([]int) ([]int, error) {
	if u.Units < 1 {
		return nil, part.KeyErrorf("units", "got %d, want > 0", u.Units)
	}
	if u.Steps < 1 || u.Steps > mostSteps {
		return nil, part.KeyErrorf("steps", "got %d, want 1 to %d", u.Steps, mostSteps)
	}
	return []int{u.Units}, nil
}

func (u *Unrolled) Parameters(in []int) []Parameter {
	n := volume.Of(in)
	list := []Parameter{{Name: "weight", Shape: []int{n, u.Units}, Init: u.Init, FanIn: n, FanOut: u.Units}}
	constant := func(name string, size int, value float64) {
		list = append(list, Parameter{Name: name, Shape: []int{size}, Init: &Constant{Value: value}, FanIn: u.Units, FanOut: u.Units})
	}
	for t := 1; t <= u.Steps; t++ {
		constant(numbered("step_size", t), u.Units, 1)
		constant(numbered("threshold", t), u.Units, 0)
		if t < u.Steps {
			constant(numbered("momentum", t), 1, float64(t-1)/float64(t+2))
		}
	}
	return list
}

// numbered returns the name of the parameter for step t.
func numbered(name string, t int) string { return fmt.Sprintf("%s_%d", name, t) }

func (u *Unrolled) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	w := s.Parameter("weight")
	gram := c.MatMul(c.Do("transpose", func() (*gorgonia.Node, error) { return ops.Transpose(w) }), w)
	row := c.Shift(c.Sum(c.Abs(gram), 1), tiny)
	slope := c.Neg(c.MatMul(c.Flatten(x), w)) // at 0
	step := func(t int, z, slope *gorgonia.Node) *gorgonia.Node {
		down := c.MulRow(slope, c.Div(s.Parameter(numbered("step_size", t)), row))
		if z != nil {
			down = c.Sub(down, z)
		}
		return c.Ramp(c.Neg(c.AddRow(down, s.Parameter(numbered("threshold", t)))), 1, 0)
	}
	y := step(1, nil, slope)
	var before *gorgonia.Node // code before the step; nil means 0
	for t := 1; t < u.Steps; t++ {
		moved := y
		if before != nil {
			moved = c.Sub(y, before)
		}
		z := c.Add(y, c.MulRow(moved, c.Tile(s.Parameter(numbered("momentum", t)), u.Units)))
		before, y = y, step(t+1, z, c.Add(c.MatMul(z, gram), slope))
	}
	return y, c.Err()
}

// tiny keeps the step size finite for an all-zero atom.
const tiny = 1e-12

func (*Unrolled) OutputRange(Interval) Interval { return Interval{0, Everything.High} }

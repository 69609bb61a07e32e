package layers

import (
	"fmt"
	"math"

	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
	"tessera/internal/volume"
)

var _ Sized = (*Unrolled)(nil)

// Unrolled computes a non-negative code y of the flattened input x by a few steps on the least-squares problem x ≈ y Wᵀ. The
// weight W of shape (inputs, units) has the atoms as columns. A [Tied] decoder uses the same weight. With G = Wᵀ W the steps are,
// for t = 1 to steps, accelerated projected-gradient steps (method = "gradient"), from y(0) = 0 and z(1) = 0,
//
//	y(t)   = max(0, z(t) - step_size_t (z(t) G - x W) / row - threshold_t)
//	z(t+1) = y(t) + momentum_t (y(t) - y(t-1))
//
// where row contains the row sums of |G|, or splitting steps (method = "splitting"), from h(0) = 0 and y(0) = 0,
//
//	h(t) = h(t-1) + relaxation_t ((x W + r (2 y(t-1) - h(t-1))) (G + r I)⁻¹ - y(t-1))
//	y(t) = max(0, h(t) - threshold_t / e^log_rho),  r = e^log_rho · mean of the diagonal of G
//
// which are those of ADMM, the alternating direction method of multipliers, with h the sum of y and of the scaled multipliers.
// The formulas hold for each element. The code is y(steps). With a step_size of 1, and neither threshold nor momentum, no gradient
// step increases the error. Gradient steps are slow where atoms overlap; splitting steps are not, because they invert G. If they
// have settled, with equal thresholds in all steps, y minimises |x - y Wᵀ|²/2 + the sum of m threshold_j y_j, m the mean of the
// diagonal. G, row and the inverse are computed once per batch, x W once per image: a code costs inputs·units + (steps-1) units²
// multiplications in addition to these, with splitting steps inputs·units + steps units².
//
// Parameters: weight; threshold_1, ... (units), initially 0, which make codes sparse. Gradient steps: step_size_1, ... of shape
// (units), initially 1; and momentum_1, ..., momentum_(steps-1), of shape (1), initially (t-1)/(t+2) as in Nesterov's method.
// Splitting steps: log_rho (1), initially log(rho), and relaxation_1, ... (1), initially 1.6. Losses and constraints act on the
// atoms as in any tied decoder.
//
// Sources: Gregor and LeCun, Learning Fast Approximations of Sparse Coding, 2010 (unrolled steps with learned sizes and
// thresholds); Chorowski and Zurada, Learning Understandable Neural Networks with Nonnegative Weight Constraints, 2015
// (non-negative codes and atoms); Beck and Teboulle, A Fast Iterative Shrinkage-Thresholding Algorithm, 2009 (momentum); Boyd,
// Parikh, Chu, Peleato and Eckstein, Distributed Optimization and Statistical Learning via the Alternating Direction Method of
// Multipliers, 2011 (splitting, over-relaxation).
type Unrolled struct {
	Units  int     `toml:"units" want:"> 0" doc:"number of units: of atoms"`
	Steps  int     `toml:"steps" want:"> 0" doc:"number of steps"`
	Method string  `toml:"method" oneof:"gradient splitting" doc:"gradient steps, or the splitting steps of ADMM, which converge where atoms overlap too"`
	Rho    float64 `toml:"rho" want:"> 0" doc:"splitting: initial weight of the distance to the last code, relative to the mean squared norm of the atoms"`
	Init   Init    `toml:"init" doc:"initial values of the weights"`
}

// The methods of [Unrolled].
const (
	gradientSteps  = "gradient"
	splittingSteps = "splitting"
)

// relaxation is the initial over-relaxation of splitting steps.
const relaxation = 1.6

// mostSteps is the maximum number of steps: every step has its own parameters.
const mostSteps = 1000

func init() {
	Registry.Register("unrolled", "non-negative code by unrolled steps of the least squares fit x = y Wᵀ", func() Layer {
		return &Unrolled{Steps: 8, Method: gradientSteps, Rho: 0.1, Init: &Uniform{Low: 0, High: 0.05}}
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
	if u.Method == splittingSteps {
		constant("log_rho", 1, math.Log(u.Rho))
	}
	for t := 1; t <= u.Steps; t++ {
		if u.Method == splittingSteps {
			constant(numbered("relaxation", t), 1, relaxation)
			constant(numbered("threshold", t), u.Units, 0)
			continue
		}
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
	gram := c.MatMul(c.Transpose(w), w)
	if u.Method == splittingSteps {
		return u.split(s, &c, gram, c.MatMul(c.Flatten(x), w), c.Scale(c.Sum(c.Square(w)), 1/float64(u.Units)))
	}
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

// split applies splitting steps. along is x W, and mean the mean of the diagonal of gram.
func (u *Unrolled) split(s Scope, c *ops.Chain, gram, along, mean *gorgonia.Node) (*gorgonia.Node, error) {
	each := func(name string) *gorgonia.Node { return c.Tile(s.Parameter(name), u.Units) }
	rho := c.Exp(each("log_rho"))
	shift := c.Mul(rho, c.Shift(mean, tiny))
	inverse := c.Do("inverse", func() (*gorgonia.Node, error) { return ops.ShiftedInverse(gram, shift) })
	fit, back := c.MatMul(along, inverse), c.MulRow(inverse, shift)
	code := func(t int, h *gorgonia.Node) *gorgonia.Node {
		return c.Ramp(c.SubRow(h, c.Div(s.Parameter(numbered("threshold", t)), rho)), 1, 0)
	}
	h := c.MulRow(fit, each(numbered("relaxation", 1)))
	y := code(1, h)
	for t := 2; t <= u.Steps; t++ {
		move := c.Sub(c.Add(fit, c.MatMul(c.Sub(c.Scale(y, 2), h), back)), y)
		h = c.Add(h, c.MulRow(move, each(numbered("relaxation", t))))
		y = code(t, h)
	}
	return y, c.Err()
}

// tiny keeps the step size and the inverse finite for an all-zero atom.
const tiny = 1e-12

func (*Unrolled) OutputRange(Interval) Interval { return Interval{0, Everything.High} }

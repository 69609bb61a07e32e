package optim

import (
	"math"
	"sync"

	"tessera/internal/engine/kernel"
	"tessera/internal/volume"
)

// Muon updates matrices by their momentum, with all singular values made nearly equal, so that a step has about the
// same length in every direction. It treats parameters with two or more axes longer than 1 as matrices whose columns
// are along the last axis: (inputs, units) for a dense layer. With initially m = 0:
//
//	m <- momentum * m + g
//	u  = g + momentum * m with nesterov, else m
//	o  = U V^T of the singular value decomposition u = U S V^T, by Newton-Schulz iterations
//	w <- (1 - lr * weight_decay) w - lr * sqrt(max(1, units / inputs)) * o
//
// The iterations start with x = u / |u| and repeat x <- a x + (b y + c y²) x with y = x x^T, a = 3.4445, b = -4.775, c
// = 2.0315. The singular values end between about 0.7 and 1.2. All other parameters (biases, scales) are updated by
// [AdamW] with the rate other_rate and the same weight_decay, and otherwise PyTorch's defaults. A schedule scales both
// rates.
//
// Source: Jordan et al., Muon: an optimizer for hidden layers in neural networks, 2024.
type Muon struct {
	Rate        float64 `toml:"learning_rate" want:"> 0" doc:"base learning rate of matrices"`
	Momentum    float64 `toml:"momentum" want:"in [0,1)" doc:"decay of the momentum"`
	Nesterov    bool    `toml:"nesterov" doc:"the step looks ahead by the momentum"`
	Iterations  int     `toml:"iterations" want:"> 0" doc:"iterations of Newton and Schulz"`
	OtherRate   float64 `toml:"other_rate" want:"> 0" doc:"base learning rate of parameters that are not matrices, which adamw moves"`
	WeightDecay float64 `toml:"weight_decay" want:">= 0" doc:"decoupled: every step shrinks the weights by the learning rate times this"`
}

func init() {
	Registry.Register("muon", "momentum with equal singular values for matrices, adamw for all other parameters", func() Optimizer {
		return &Muon{Rate: 0.02, Momentum: 0.95, Nesterov: true, Iterations: 5, OtherRate: 0.001}
	})
}

func (o *Muon) LearningRate() float64 { return o.Rate }

// States implements [Optimizer]. The states are those of AdamW.
func (o *Muon) States() int { return 2 }

// Update implements [Rule] by AdamW.
func (o *Muon) Update(w, g []float32, state [][]float32, lr float64, step int) {
	kernel.AdamW(w, g, state[0], state[1], adamParams(lr*o.OtherRate/o.Rate, 0.9, 0.999, 1e-8, o.WeightDecay, step))
}

// Takes implements [Whole]. It accepts matrices, and filters viewed as matrices.
func (*Muon) Takes(shape []int) bool {
	rows, columns := matrixOf(shape)
	return len(shape) > 1 && rows > 1 && columns > 1
}

// WholeStates implements [Whole]. The state is the momentum m.
func (*Muon) WholeStates(shape []int) []int { return []int{volume.Of(shape)} }

// matrixOf returns the size of the matrix whose columns are along the last axis.
func matrixOf(shape []int) (rows, columns int) {
	if len(shape) == 0 {
		return 1, 1
	}
	return volume.Of(shape[:len(shape)-1]), shape[len(shape)-1]
}

func (o *Muon) UpdateWhole(w, g []float32, shape []int, state [][]float32, lr float64, _ int) {
	rows, columns := matrixOf(shape)
	memory := workspaces.Get().(*workspace)
	defer workspaces.Put(memory)
	x := memory.take(&memory.x, len(w))
	m, momentum := state[0], float32(o.Momentum)
	for i, v := range g {
		m[i] = momentum*m[i] + v
		if x[i] = m[i]; o.Nesterov {
			x[i] = v + momentum*m[i]
		}
	}
	memory.orthogonalise(x, rows, columns, o.Iterations)
	keep, step := float32(1-lr*o.WeightDecay), float32(lr*math.Sqrt(max(1, float64(columns)/float64(rows))))
	for i, v := range x {
		w[i] = keep*w[i] - step*v
	}
}

// workspace is the memory of one update.
type workspace struct{ x, y, z, next []float32 }

var workspaces = sync.Pool{New: func() any { return &workspace{} }}

// take returns a slice of n values from one of the slices of the workspace, which it enlarges if necessary.
func (*workspace) take(of *[]float32, n int) []float32 {
	if len(*of) < n {
		*of = make([]float32, n)
	}
	return (*of)[:n]
}

// orthogonalise replaces the matrix x by an approximation of U V^T, where x = U S V^T is its singular value
// decomposition. The products are formed along the shorter side.
func (s *workspace) orthogonalise(x []float32, rows, columns, iterations int) {
	const a, b, c = 3.4445, -4.775, 2.0315
	scale := float32(1 / (Norm(x) + 1e-7))
	for i := range x {
		x[i] *= scale
	}
	tall, n := rows > columns, min(rows, columns)
	y, z, next := s.take(&s.y, n*n), s.take(&s.z, n*n), s.take(&s.next, len(x))
	gemm := kernel.Float32().Gemm
	for range iterations {
		if tall { // with y = x^T x the iteration is x (a + b y + c y²), the transpose of the formula
			gemm(true, false, n, n, rows, 1, x, columns, x, columns, 0, y, n)
		} else {
			gemm(false, true, n, n, columns, 1, x, columns, x, columns, 0, y, n)
		}
		copy(z, y)
		gemm(false, false, n, n, n, c, y, n, y, n, b, z, n)
		copy(next, x)
		if tall {
			gemm(false, false, rows, columns, n, 1, x, columns, z, n, a, next, columns)
		} else {
			gemm(false, false, rows, columns, n, 1, z, n, x, columns, a, next, columns)
		}
		copy(x, next)
	}
}

package ops

import (
	"fmt"
	"math"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/engine/ir"
	vector "tessera/kernel"
)

// MaxPlus returns the product of h (batch, units) and w (units, n) in the max-plus algebra:
//
//	y(b,i) = max over j of h(b,j) + w(j,i)
//
// The derivative is a subgradient: the gradient of an element goes to the first unit that attains the maximum.
func MaxPlus(h, w *gorgonia.Node) (*gorgonia.Node, error) {
	if len(h.Shape()) != 2 || len(w.Shape()) != 2 || h.Shape()[1] != w.Shape()[0] {
		return nil, fmt.Errorf("max plus: shapes %v and %v are not (batch, units) and (units, n)", h.Shape(), w.Shape())
	}
	m := maxPlus{batch: h.Shape()[0], units: h.Shape()[1], n: w.Shape()[1]}
	o := &Unitwise{
		Spec:     MaxPlusOp{},
		Out:      tensor.Shape{m.batch, m.n},
		Units:    m.batch,
		Division: ir.ByUnits,
		ByUnit:   []bool{true, false},
		Scratch:  m.n,
		Work:     m.work(),
		Float32:  maxPlusValue(m, vector.Float32),
		Float64:  maxPlusValue(m, vector.Float64),
		Derivative: func(in gorgonia.Nodes, y, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			winner, err := m.winner(in[0], in[1], y)
			if err != nil {
				return nil, err
			}
			return both(m.codeGradient(winner, grad))(m.weightGradient(winner, grad))
		},
	}
	return o.Apply(h, w)
}

// The specs of [MaxPlus] and of the ops of its derivatives. maxPlusWinnerOp maps h, w and y to the winner of each element
// of y, the first unit j that attains it. maxPlusCodeOp and maxPlusWeightOp sum the gradient of y by winner, for h (batch,
// units) and for w (units, n). maxPlusPickCodeOp and maxPlusPickWeightOp are their transposes: the value of v at each
// winner.
type (
	MaxPlusOp           struct{}
	maxPlusWinnerOp     struct{}
	maxPlusCodeOp       struct{}
	maxPlusWeightOp     struct{}
	maxPlusPickCodeOp   struct{}
	maxPlusPickWeightOp struct{}
)

// maxPlus contains the shapes of a product.
type maxPlus struct{ batch, units, n int }

func (m maxPlus) work() float64 { return 2 * float64(m.batch*m.units*m.n) }

// winner returns, for every element of y, the first unit that attains it.
func (m maxPlus) winner(h, w, y *gorgonia.Node) (*gorgonia.Node, error) {
	o := &Unitwise{
		Spec:     maxPlusWinnerOp{},
		Out:      tensor.Shape{m.batch, m.n},
		Units:    m.batch,
		Division: ir.ByUnits,
		ByUnit:   []bool{true, false, true},
		Scratch:  m.n,
		Work:     m.work(),
		Float32:  maxPlusWinner(m, vector.Float32),
		Float64:  maxPlusWinner(m, vector.Float64),
		Fixed:    []bool{true, true, true},
	}
	return o.Apply(h, w, y)
}

// codeGradient is the derivative with respect to h.
func (m maxPlus) codeGradient(winner, grad *gorgonia.Node) (*gorgonia.Node, error) {
	o := &Unitwise{
		Spec:     maxPlusCodeOp{},
		Out:      tensor.Shape{m.batch, m.units},
		Units:    m.batch,
		Division: ir.ByUnits,
		ByUnit:   []bool{true, true},
		Work:     float64(m.batch * m.n),
		Float32:  maxPlusCode[float32](m),
		Float64:  maxPlusCode[float64](m),
		Fixed:    []bool{true, false},
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return second(m.pickCode(in[0], grad))
		},
	}
	return o.Apply(winner, grad)
}

// weightGradient is the derivative with respect to w.
func (m maxPlus) weightGradient(winner, grad *gorgonia.Node) (*gorgonia.Node, error) {
	o := &Unitwise{
		Spec:     maxPlusWeightOp{},
		Out:      tensor.Shape{m.units, m.n},
		Units:    m.units,
		ByUnit:   []bool{false, false},
		Division: ir.BySums,
		Work:     float64(m.batch * m.n),
		Float32:  maxPlusWeight[float32](m),
		Float64:  maxPlusWeight[float64](m),
		Fixed:    []bool{true, false},
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return second(m.pickWeight(in[0], grad))
		},
	}
	return o.Apply(winner, grad)
}

// pickCode is the transpose of codeGradient: for every element of y the value of v (batch, units) at its winner.
func (m maxPlus) pickCode(winner, v *gorgonia.Node) (*gorgonia.Node, error) {
	o := &Unitwise{
		Spec:     maxPlusPickCodeOp{},
		Out:      tensor.Shape{m.batch, m.n},
		Units:    m.batch,
		Division: ir.ByUnits,
		ByUnit:   []bool{true, true},
		Float32:  maxPlusPickCode[float32](m),
		Float64:  maxPlusPickCode[float64](m),
		Fixed:    []bool{true, false},
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return second(m.codeGradient(in[0], grad))
		},
	}
	return o.Apply(winner, v)
}

// pickWeight is the transpose of weightGradient: for every element of y the value of v (units, n) at its winner.
func (m maxPlus) pickWeight(winner, v *gorgonia.Node) (*gorgonia.Node, error) {
	o := &Unitwise{
		Spec:     maxPlusPickWeightOp{},
		Out:      tensor.Shape{m.batch, m.n},
		Units:    m.batch,
		Division: ir.ByUnits,
		ByUnit:   []bool{true, false},
		Float32:  maxPlusPickWeight[float32](m),
		Float64:  maxPlusPickWeight[float64](m),
		Fixed:    []bool{true, false},
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return second(m.weightGradient(in[0], grad))
		},
	}
	return o.Apply(winner, v)
}

func maxPlusValue[T Float](m maxPlus, kernels func() *vector.Set[T]) units[T] {
	return func(dst []T, in [][]T, scratch []T, from, to int) {
		k, h, w := kernels(), in[0], in[1]
		sums := scratch[:m.n]
		for b := from; b < to; b++ {
			y := dst[b*m.n : (b+1)*m.n]
			k.Fill(y, T(math.Inf(-1)))
			for j := range m.units {
				k.AddScalar(sums, w[j*m.n:(j+1)*m.n], h[b*m.units+j])
				k.Max(y, y, sums)
			}
		}
	}
}

func maxPlusWinner[T Float](m maxPlus, kernels func() *vector.Set[T]) units[T] {
	return func(dst []T, in [][]T, scratch []T, from, to int) {
		k, h, w, y := kernels(), in[0], in[1], in[2]
		sums := scratch[:m.n]
		for b := from; b < to; b++ {
			winner, best := dst[b*m.n:(b+1)*m.n], y[b*m.n:(b+1)*m.n]
			k.Fill(winner, T(m.units))
			for j := range m.units {
				k.AddScalar(sums, w[j*m.n:(j+1)*m.n], h[b*m.units+j])
				k.Eq(sums, sums, best)
				k.AddScalar(sums, sums, -1) // 0 where j wins, -1 elsewhere
				k.MulScalar(sums, sums, T(-m.units))
				k.AddScalar(sums, sums, T(j)) // j where it wins, units and more elsewhere
				k.Min(winner, winner, sums)
			}
		}
	}
}

func maxPlusCode[T Float](m maxPlus) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		clear(dst[from*m.units : to*m.units])
		for b := from; b < to; b++ {
			winner, g := in[0][b*m.n:(b+1)*m.n], in[1][b*m.n:(b+1)*m.n]
			for i, j := range winner {
				if j < T(m.units) { // units where y is NaN
					dst[b*m.units+int(j)] += g[i]
				}
			}
		}
	}
}

func maxPlusWeight[T Float](m maxPlus) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		clear(dst[from*m.n : to*m.n])
		for b := range len(in[0]) / m.n {
			winner, g := in[0][b*m.n:(b+1)*m.n], in[1][b*m.n:(b+1)*m.n]
			for i, j := range winner {
				if j >= T(from) && j < T(to) {
					dst[int(j)*m.n+i] += g[i]
				}
			}
		}
	}
}

func maxPlusPickCode[T Float](m maxPlus) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		for b := from; b < to; b++ {
			for i, j := range in[0][b*m.n : (b+1)*m.n] {
				dst[b*m.n+i] = 0
				if j < T(m.units) {
					dst[b*m.n+i] = in[1][b*m.units+int(j)]
				}
			}
		}
	}
}

func maxPlusPickWeight[T Float](m maxPlus) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		for b := from; b < to; b++ {
			for i, j := range in[0][b*m.n : (b+1)*m.n] {
				dst[b*m.n+i] = 0
				if j < T(m.units) {
					dst[b*m.n+i] = in[1][int(j)*m.n+i]
				}
			}
		}
	}
}

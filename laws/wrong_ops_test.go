package laws_test

import (
	"fmt"
	"hash"
	"hash/fnv"
	"math"
	"sync/atomic"
	"time"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/graph/ops"
	"tessera/internal/engine/ir"
)

// meddling is an op with a fault in its output or in its derivative.
type meddling struct {
	gorgonia.SDOp
	name  string
	do    func(in, out []float64)                                // computes the output; nil for the correct output; float32 is always correct
	slope func(c *ops.Chain, grad *gorgonia.Node) *gorgonia.Node // returns the derivative; nil for the correct derivative
}

func (m meddling) WriteHash(h hash.Hash) { fmt.Fprint(h, m.name) }

func (m meddling) Hashcode() uint32 {
	h := fnv.New32a()
	m.WriteHash(h)
	return h.Sum32()
}

func (m meddling) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	y, err := m.SDOp.Do(in...)
	if err != nil || m.do == nil {
		return y, err
	}
	if x, ok := in[0].Data().([]float64); ok {
		m.do(x, y.Data().([]float64))
	}
	return y, nil
}

func (m meddling) SymDiff(in gorgonia.Nodes, y, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	grads, err := m.SDOp.SymDiff(in, y, grad)
	if err != nil || m.slope == nil {
		return grads, err
	}
	var c ops.Chain
	return gorgonia.Nodes{m.slope(&c, grads[0])}, c.Err()
}

// wrongly returns tanh(x) with a fault.
func wrongly(c *ops.Chain, x *gorgonia.Node, m meddling) *gorgonia.Node {
	return c.Do(m.name, func() (*gorgonia.Node, error) {
		y, err := gorgonia.Tanh(x)
		if err != nil {
			return nil, err
		}
		m.SDOp = y.Op().(gorgonia.SDOp)
		return gorgonia.ApplyOp(m, x)
	})
}

// alone returns a function that changes its output if several goroutines call it at the same time.
func alone() func(in, out []float64) {
	var inside atomic.Int32
	return func(_, out []float64) {
		defer inside.Add(-1)
		if inside.Add(1) > 1 {
			out[0] = math.NaN()
		}
		time.Sleep(time.Millisecond) // for another goroutine to come
	}
}

// negated returns -x with a fault.
func negated(c *ops.Chain, x *gorgonia.Node, m meddling) *gorgonia.Node {
	return c.Do(m.name, func() (*gorgonia.Node, error) {
		y, err := gorgonia.Neg(x)
		if err != nil {
			return nil, err
		}
		m.SDOp = y.Op().(gorgonia.SDOp)
		return gorgonia.ApplyOp(m, x)
	})
}

func doubled(c *ops.Chain, grad *gorgonia.Node) *gorgonia.Node { return c.Scale(grad, 2) }

// bent returns a correct derivative of an op. The derivative of its result is incorrect.
func bent(c *ops.Chain, grad *gorgonia.Node) *gorgonia.Node {
	return c.Neg(negated(c, grad, meddling{name: "steep", slope: doubled}))
}

// stale returns a derivative of an op that is correct only in the first run.
func stale(c *ops.Chain, grad *gorgonia.Node) *gorgonia.Node {
	return c.Neg(negated(c, grad, meddling{name: "stale", do: afterOneRun(add)}))
}

func add(_, out []float64) {
	for i := range out {
		out[i] += 0.25
	}
}

func overwrite(in, _ []float64) { in[0] = 7 }

// afterOneRun returns a function that calls do from the second run on.
func afterOneRun(do func(in, out []float64)) func(in, out []float64) {
	ran := false
	return func(in, out []float64) {
		if ran {
			do(in, out)
		}
		ran = true
	}
}

// twofold is an op whose kernel, which only the engine uses, computes something else than the op.
type twofold struct{ meddling }

var _ ops.Kernel = twofold{}

func (twofold) Block([]int) int { return 1 }

// Spec selects the kernel for the engine.
func (t twofold) Spec() any { return t.name }

func (twofold) Float32(dst []float32, in [][]float32, _ int) { copy(dst, in[0]) }

func (twofold) Float64(dst []float64, in [][]float64, _ int) { copy(dst, in[0]) }

func wrongKernel(c *ops.Chain, x *gorgonia.Node) *gorgonia.Node {
	return c.Do("twofold", func() (*gorgonia.Node, error) {
		y, err := gorgonia.Tanh(x)
		if err != nil {
			return nil, err
		}
		return gorgonia.ApplyOp(twofold{meddling{SDOp: y.Op().(gorgonia.SDOp), name: "twofold"}}, x)
	})
}

// onlyIn returns y in the given precision, and x in the other one.
func onlyIn(dtype tensor.Dtype, x, y *gorgonia.Node) *gorgonia.Node {
	if x.Dtype() == dtype {
		return y
	}
	return x
}

// lengthwiseOp is the spec of an op whose kernel reads the length of its input.
type lengthwiseOp struct{}

// lengthwise returns x for a complete batch. The op declares that processes can share the batch, although the kernel scales a
// part of a batch.
func lengthwise(c *ops.Chain, x *gorgonia.Node) *gorgonia.Node {
	images, size := x.Shape()[0], x.Shape().TotalSize()
	return c.Do("lengthwise", func() (*gorgonia.Node, error) {
		return ops.Unitwise{Spec: lengthwiseOp{}, Out: x.Shape(), Units: images, ByUnit: []bool{true}, Division: ir.ByUnits,
			Float32: scaledByLength[float32](images, size), Float64: scaledByLength[float64](images, size),
			Derivative: func(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
				return gorgonia.Nodes{grad}, nil
			},
		}.Apply(x)
	})
}

func scaledByLength[T ir.Float](images, size int) func(dst []T, in [][]T, _ []T, from, to int) {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		for i := from * size / images; i < to*size/images; i++ {
			dst[i] = in[0][i] * T(len(in[0])) / T(size)
		}
	}
}

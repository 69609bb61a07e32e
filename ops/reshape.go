package ops

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/engine/ir"
	"tessera/internal/volume"
)

// ReshapeOp is the spec of [Reshape].
type ReshapeOp struct{ Shape []int }

// Reshape returns x with another shape of equal size. Gorgonia's result shares memory with x without the tape machine's
// knowledge: computing in place then overwrites x, even a batch of images or a weight. This op is safe.
func Reshape(x *gorgonia.Node, shape ...int) (*gorgonia.Node, error) {
	to := tensor.Shape(shape).Clone()
	if len(x.Shape()) == 0 || len(to) == 0 || volume.Of(x.Shape()) != volume.Of(to) {
		return nil, fmt.Errorf("reshape: got shape %v, want as many values as %v", x.Shape(), to)
	}
	l := &layout{ir: ir.Reshape{}}
	var err error
	l.op, err = newOp(ReshapeOp{to}, gorgonia.Nodes{x}, to, nil, func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
		return one(Reshape(grad, l.in[0]...))
	})
	if err != nil {
		return nil, err
	}
	l.alike = len(l.in[0]) == len(to)
	l.f32 = func(dst []float32, in [][]float32) { copy(dst, in[0]) }
	l.f64 = func(dst []float64, in [][]float64) { copy(dst, in[0]) }
	return gorgonia.ApplyOp(l, x)
}

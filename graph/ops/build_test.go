package ops_test

import (
	"strings"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/graph/ops"
	"tessera/internal/engine/ir"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// An incomplete description of an op gives an error with the name of the op, never a panic.
func TestAnIncompleteDescriptionIsRefused(t *testing.T) {
	g := gorgonia.NewGraph()
	x := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(2, 3), gorgonia.WithName("x"))
	y := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(3, 2), gorgonia.WithName("y"))
	block := func(change func(b *ops.Blockwise), in ...*gorgonia.Node) error {
		b := ops.Blockwise{Spec: softsignOp{1}, Float32: ops.Map(func(x float32) float32 { return x }), Float64: ops.Map(func(x float64) float64 { return x })}
		change(&b)
		_, err := b.Apply(in...)
		return err
	}
	unit := func(change func(u *ops.Unitwise), in ...*gorgonia.Node) error {
		u := ops.Unitwise{Spec: mirrorOp{}, Out: []int{2, 3}, Units: 2, ByUnit: []bool{true}, Float32: mirrored[float32](3), Float64: mirrored[float64](3)}
		change(&u)
		_, err := u.Apply(in...)
		return err
	}
	for name, err := range map[string]error{
		"zero value":         block(func(b *ops.Blockwise) { *b = ops.Blockwise{} }, x),
		"no input":           block(func(*ops.Blockwise) {}),
		"a nil input":        block(func(*ops.Blockwise) {}, nil),
		"no kernel":          block(func(b *ops.Blockwise) { b.Float64 = nil }, x),
		"shapes":             block(func(*ops.Blockwise) {}, x, y),
		"fixed":              block(func(b *ops.Blockwise) { b.Fixed = []bool{true, false} }, x),
		"units: zero value":  unit(func(u *ops.Unitwise) { *u = ops.Unitwise{} }, x),
		"units: no input":    unit(func(*ops.Unitwise) {}),
		"units: nil input":   unit(func(*ops.Unitwise) {}, nil),
		"units: no kernel":   unit(func(u *ops.Unitwise) { u.Float32 = nil }, x),
		"units: by unit":     unit(func(u *ops.Unitwise) { u.ByUnit = nil }, x),
		"units: a scalar":    unit(func(u *ops.Unitwise) { u.Out = nil }, x),
		"units: none":        unit(func(u *ops.Unitwise) { u.Units = 0 }, x),
		"units: no equal":    unit(func(u *ops.Unitwise) { u.Units = 4 }, x),
		"units: preparation": unit(func(u *ops.Unitwise) { u.Prepared = &ops.Unitwise{} }, x),
	} {
		expect.AnyError(t, err, name, "accepted")
	}
	if err := block(func(b *ops.Blockwise) { b.Float64 = nil }, x); !strings.HasPrefix(err.Error(), "softsign{Scale:1}: ") {
		t.Errorf("the error does not begin with the op's name: %v", err)
	}
}

// An exporter finds the attributes of an op by its type.
func TestOpsSayWhatTheyCompute(t *testing.T) {
	g := gorgonia.NewGraph()
	geometry := ops.Convolution{In: [3]int{4, 4, 1}, Out: [3]int{2, 2, 3}, Kernel: 2, Stride: 2, Dilation: 1, Groups: 1}
	x := gorgonia.NewTensor(g, tensor.Float32, 4, gorgonia.WithShape(5, 4, 4, 1), gorgonia.WithName("x"))
	w := gorgonia.NewTensor(g, tensor.Float32, 4, gorgonia.WithShape(geometry.Filters()...), gorgonia.WithName("w"))
	y, err := geometry.Convolve(x, w)
	fatal.If(t, err)
	s, err := ops.Softmax(gorgonia.Must(ops.Reshape(y, 5, 12)))
	fatal.If(t, err)
	if o, ok := y.Op().(ir.Kernel).Spec().(ops.ConvolveOp); !ok || ops.Convolution(o) != geometry {
		t.Errorf("got %T%+v", y.Op().(ir.Kernel).Spec(), y.Op().(ir.Kernel).Spec())
	}
	if _, ok := s.Op().(ir.Kernel).Spec().(ops.SoftmaxOp); !ok {
		t.Errorf("got %T", s.Op().(ir.Kernel).Spec())
	}
}

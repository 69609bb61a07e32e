package export_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gorgonia.org/gorgonia"
	"tessera/apps/export/onnx"
	"tessera/config"
	"tessera/graph"
	"tessera/graph/ops"
	"tessera/internal/engine/ir"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/layers"
)

// taps returns a program whose taps f computes from x (batch, 3).
func taps(f func(x *ir.Value) map[string]*ir.Value) onnx.Program {
	return onnx.Program{Module: func(batch int) (*ir.Module, error) {
		shape := []int{batch, 3}
		m := &ir.Module{Batch: batch, Inputs: []ir.Input{{Name: "x", Shape: shape}}}
		list := f(&ir.Value{Op: ir.Leaf{Kind: ir.InputLeaf}, Shape: shape, Name: "x"})
		for i := range len(list) {
			name := fmt.Sprint("y", i)
			m.Taps = append(m.Taps, ir.Tap{Name: name, Value: list[name]})
		}
		return m, nil
	}}
}

// session writes the ONNX graph of a program to a file and returns the path.
func (o *onnxRuntime) session(t *testing.T, name string, p onnx.Program) string {
	t.Helper()
	g, err := onnx.Translate(p)
	fatal.If(t, err)
	g.Name = name
	b, err := (&onnx.Model{FormatVersion: onnx.FormatVersion, Graph: g, Opsets: []onnx.Opset{{Version: onnx.OpsetVersion}}}).Append(nil)
	fatal.If(t, err)
	path, err := o.save(name, b)
	fatal.If(t, err)
	return path
}

// Every primitive of package ir has an ONNX form. It is applied to x and, if it has two args, 1.5.
func TestPrimitivesAgreeInONNXRuntime(t *testing.T) {
	o := startONNXRuntime(t)
	path := o.session(t, "primitives", taps(func(x *ir.Value) map[string]*ir.Value {
		all := map[string]*ir.Value{}
		for p := range ir.Primitives {
			args := []*ir.Value{x, ir.Uniform(1.5, x.Shape)}
			all[fmt.Sprint("y", int(p))] = ir.Point(p, x.Shape, args[:p.Args()]...)
		}
		return all
	}))
	x := []float32{0.25, 1.5, 2.75, 0.5, 1, 3}
	got, err := o.run(path, "x", []int{2, 3}, x)
	fatal.If(t, err)
	for p := range ir.Primitives {
		for i, y := range got[fmt.Sprint("y", int(p))].floats() {
			if want := p.Eval(float64(x[i]), 1.5); math.Abs(float64(y)-want) > tolerance*max(1, math.Abs(want)) {
				t.Errorf("%v of %v: got %v, want %v", p, x[i], y, want)
			}
		}
	}
}

// An output that is broadcast over the batch, or is the same for all rows, has one row per row of the input.
func TestBroadcastsAgreeInONNXRuntime(t *testing.T) {
	o := startONNXRuntime(t)
	path := o.session(t, "broadcasts", taps(func(x *ir.Value) map[string]*ir.Value {
		batch := x.Shape[0]
		seven := ir.Uniform(7, x.Shape)
		doubled := ir.Point(ir.Add, x.Shape, seven, seven)
		row := ir.Reduce(ir.Sum, x, []int{batch, 1}, 1)
		return map[string]*ir.Value{
			"y0": x,     // an input that is also an output
			"y1": seven, // an output that does not depend on the input
			"y2": {Op: ir.Product{TransB: true}, Args: []*ir.Value{doubled, doubled}, Shape: []int{batch, batch}},
			"y3": ir.Broadcasted(row, []int{batch, 2}),
			"y4": ir.Reduce(ir.Max, ir.Broadcasted(row, []int{batch, 2}), nil),
			"y5": seven, // a value with two output names
		}
	}))
	got, err := o.run(path, "x", []int{2, 3}, []float32{1, 2, 3, 4, 5, 6})
	fatal.If(t, err)
	for name, want := range map[string]string{"y0": "[2 3] [1 2 3 4 5 6]", "y1": "[2 3] [7 7 7 7 7 7]", "y2": "[2 2] [588 588 588 588]",
		"y3": "[2 2] [6 6 15 15]", "y4": "[] [15]", "y5": "[2 3] [7 7 7 7 7 7]"} {
		expect.Equal(t, fmt.Sprint(got[name].Dims, " ", got[name].floats()), want, name)
	}
}

// halves is a user-defined layer that keeps the first half of its input.
type halves struct{}

func init() {
	layers.Registry.Register("zz_halves", "the first half of a vector", func() layers.Layer { return &halves{} })
}

func (*halves) OutputShape(in []int) ([]int, error) { return []int{in[0] / 2}, nil }
func (*halves) Parameters([]int) []layers.Parameter { return nil }
func (*halves) Apply(_ layers.Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	return ops.Columns(x, 0, x.Shape()[1]/2)
}

// classes is a user-defined layer that reads whole numbers as classes.
type classes struct{}

func init() {
	layers.Registry.Register("zz_classes", "one-hot rows", func() layers.Layer { return &classes{} })
}

func (*classes) Indices() int                        { return 7 }
func (*classes) OutputShape(in []int) ([]int, error) { return append(slices.Clone(in), 7), nil }
func (*classes) Parameters([]int) []layers.Parameter { return nil }
func (*classes) Apply(_ layers.Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	return ops.OneHot(x, 7)
}

func TestColumnsAreASlice(t *testing.T) {
	r := oneLayer(t, "flatten", "")
	r.Spec.Encoder = append(r.Spec.Encoder, config.Layer{Kind: "zz_halves", Layer: &halves{}})
	model, err := graph.New(r.Spec, r.Shape())
	fatal.If(t, err)
	g, err := onnx.Translate(onnx.Program{Module: func(batch int) (*ir.Module, error) {
		p, err := model.Program(graph.Request{Batch: batch, Want: []string{"code"}})
		if err != nil {
			return nil, err
		}
		return p.Module()
	}})
	fatal.If(t, err)
	for _, n := range g.Nodes {
		if n.Op == "Slice" && slices.Equal(n.Inputs[1:], []string{"ints[0]", fmt.Sprintf("ints[%d]", model.Units()), "ints[1]"}) {
			return
		}
	}
	t.Errorf("no slice among %v", g.Nodes)
}

// Translate returns an error for values that depend on the size of the batch, and for ops without a form.
func TestTranslateRefusesWhatHasNoForm(t *testing.T) {
	for name, c := range map[string]struct {
		of   func(x *ir.Value) *ir.Value
		want string
	}{
		"a mean over the batch": {func(x *ir.Value) *ir.Value {
			return ir.Point(ir.Mul, x.Shape, x, ir.Uniform(1/float64(x.Shape[0]), x.Shape))
		}, "encoder.7 (own): 0.000244140625 depends on the size of the batch: such a model has no ONNX form"},
		"an axis that is no multiple of the batch": {func(x *ir.Value) *ir.Value {
			return ir.Broadcasted(ir.Uniform(1, []int{1}), []int{x.Shape[0] + 1})
		}, "encoder.7 (own): has an axis whose length is no multiple of the size of the batch"},
		"two axes of the batch": {func(x *ir.Value) *ir.Value {
			n := x.Shape[0]
			return ir.Reshaped(ir.Broadcasted(ir.Uniform(1, []int{1, 1}), []int{n, n}), []int{n, 1, n})
		}, "encoder.7 (own): two axes depend on the size of the batch: such a value has no ONNX form"},
		"an op of another module": {func(x *ir.Value) *ir.Value {
			return &ir.Value{Op: ir.Foreign{Run: halving{}}, Args: []*ir.Value{x}, Shape: x.Shape}
		}, "encoder.7 (own): halving has no ONNX form"},
	} {
		_, err := onnx.Translate(taps(func(x *ir.Value) map[string]*ir.Value {
			y := c.of(x)
			for v := y; v != x && len(v.Layer) == 0; v = v.Args[len(v.Args)-1] {
				if v.Layer = "encoder.7 (own)"; len(v.Args) == 0 {
					break
				}
			}
			return map[string]*ir.Value{"y0": y}
		}))
		if err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
	expect.AnyError(t, expect.Err(onnx.Translate(taps(func(x *ir.Value) map[string]*ir.Value {
		return map[string]*ir.Value{"y0": ir.Reshaped(x, []int{1})}
	}))), "a module that Check refuses is translated")
}

type halving struct{}

func (halving) String() string                       { return "halving" }
func (halving) Do(in []ir.Tensor) (ir.Tensor, error) { return in[0], nil }

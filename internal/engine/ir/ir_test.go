package ir_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"tessera/internal/engine/ir"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// dense returns a module that computes the sum of sigmoid(x w + b), built by hand.
func dense() (m *ir.Module, product *ir.Value) {
	x := &ir.Value{Op: ir.Leaf{Kind: ir.InputLeaf}, Shape: []int{2, 3}, Name: "x"}
	w := &ir.Value{Op: ir.Leaf{Kind: ir.ParameterLeaf}, Shape: []int{3, 4}, Name: "w"}
	b := &ir.Value{Op: ir.Leaf{Kind: ir.ParameterLeaf, Index: 1}, Shape: []int{4}, Name: "b"}
	product = &ir.Value{Op: ir.Product{}, Args: []*ir.Value{x, w}, Shape: []int{2, 4}}
	row := ir.Broadcasted(ir.Reshaped(b, []int{1, 4}), []int{2, 4})
	y := ir.Point(ir.Sigmoid, []int{2, 4}, ir.Point(ir.Add, []int{2, 4}, product, row))
	return &ir.Module{
		Inputs:     []ir.Input{{Name: "x", Shape: []int{2, 3}}},
		Parameters: []ir.Parameter{{Name: "w", Shape: []int{3, 4}, Data: make([]float32, 12)}, {Name: "b", Shape: []int{4}, Data: make([]float32, 4)}},
		Taps:       []ir.Tap{{Name: "loss", Value: ir.Reduce(ir.Sum, y, nil)}},
	}, product
}

func TestAModuleWrittenByHandIsCheckedAndPrinted(t *testing.T) {
	m, _ := dense()
	fatal.If(t, m.Check())
	want := strings.TrimLeft(`
%0 input[2 3] x
%1 parameter[3 4] w
%2 A×B[2 4] %0 %1
%3 parameter[4] b
%4 reshape[1 4] %3
%5 broadcast[2 4] %4
%6 +[2 4] %2 %5
%7 sigmoid[2 4] %6
%8 sum[0 1][] %7
`, "\n")
	expect.Equal(t, m.String(), want)
}

func TestAClonesValuesAreItsOwn(t *testing.T) {
	m, product := dense()
	before := m.String()
	c := m.Clone()
	for _, v := range c.Values() {
		v.Shape, v.Args = nil, nil
	}
	if got := m.String(); got != before || len(product.Args) != 2 {
		t.Errorf("the module is now\n%s", got)
	}
}

// Check returns an error for everything that does not fit, and never panics. Back ends rely on this.
func TestCheckRefusesWhatDoesNotFit(t *testing.T) {
	for name, spoil := range map[string]func(m *ir.Module, p *ir.Value){
		"no value":           func(m *ir.Module, _ *ir.Value) { m.Taps[0].Value = nil },
		"no op":              func(_ *ir.Module, p *ir.Value) { p.Op = nil },
		"no arg":             func(_ *ir.Module, p *ir.Value) { p.Args[1] = nil },
		"one factor":         func(_ *ir.Module, p *ir.Value) { p.Args = p.Args[:1] },
		"a cycle":            func(m *ir.Module, p *ir.Value) { p.Args[0] = m.Taps[0].Value },
		"a transposed B":     func(_ *ir.Module, p *ir.Value) { p.Op = ir.Product{TransB: true} },
		"another shape":      func(_ *ir.Module, p *ir.Value) { p.Shape = []int{4, 2} },
		"a negative length":  func(_ *ir.Module, p *ir.Value) { p.Shape = []int{-2, -4} },
		"axes":               func(_ *ir.Module, p *ir.Value) { p.Op, p.Args = ir.Transpose{Axes: ir.NewAxes(0, 0)}, p.Args[:1] },
		"a negative axis":    func(_ *ir.Module, p *ir.Value) { p.Op, p.Args = ir.Transpose{Axes: ir.NewAxes(1, -1)}, p.Args[:1] },
		"an axis of many":    func(_ *ir.Module, p *ir.Value) { p.Op, p.Args = ir.Reduction{Axes: ir.NewAxes(256)}, p.Args[:1] },
		"a negative sum":     func(_ *ir.Module, p *ir.Value) { p.Op, p.Args = ir.Reduction{Axes: ir.NewAxes(-1)}, p.Args[:1] },
		"a reduction":        func(_ *ir.Module, p *ir.Value) { p.Op, p.Args = ir.Reduction{Axes: ir.NewAxes(7)}, p.Args[:1] },
		"an input":           func(m *ir.Module, _ *ir.Value) { m.Inputs = nil },
		"a parameter":        func(m *ir.Module, _ *ir.Value) { m.Parameters[0].Shape = []int{4, 3} },
		"a parameter's data": func(m *ir.Module, _ *ir.Value) { m.Parameters[0].Data = nil },
		"a primitive":        func(_ *ir.Module, p *ir.Value) { p.Op, p.Args = ir.Pointwise{F: ir.Primitives}, nil },
		"no function":        func(_ *ir.Module, p *ir.Value) { p.Op = ir.Pointwise{} },
		"another function":   func(_ *ir.Module, p *ir.Value) { p.Op = ir.Pointwise{F: nothing{}} },
		"no element kernel":  func(_ *ir.Module, p *ir.Value) { p.Op = ir.Pointwise{F: ir.Elementwise{}} },
		"no block kernel":    func(_ *ir.Module, p *ir.Value) { p.Op = ir.Blockwise{Block: 4} },
		"no unit kernel":     func(_ *ir.Module, p *ir.Value) { p.Op = ir.Unitwise{} },
		"no implementation":  func(_ *ir.Module, p *ir.Value) { p.Op = ir.Foreign{} },
		"another op":         func(_ *ir.Module, p *ir.Value) { p.Op = nothing{} },
		"a reducer":          func(m *ir.Module, _ *ir.Value) { m.Taps[0].Value.Op = ir.Reduction{F: 2, Axes: ir.NewAxes(0, 1)} },
		"a kind of leaf":     func(_ *ir.Module, p *ir.Value) { p.Args[0].Op = ir.Leaf{Kind: 2} },
		"a precision":        func(m *ir.Module, _ *ir.Value) { m.Dtype = 2 },
		"a gradient":         func(m *ir.Module, p *ir.Value) { m.Gradients = []ir.Gradient{{Parameter: 2, Value: p}} },
		"an update":          func(m *ir.Module, p *ir.Value) { m.Updates = []ir.Update{{Parameter: 1, Value: p}} },
		"a constant":         func(_ *ir.Module, p *ir.Value) { p.Op, p.Args = ir.Constant{Value: 1}, nil },
		"a message that needs itself": func(m *ir.Module, p *ir.Value) {
			first := &ir.Value{Op: ir.AllReduce{Message: 1}, Args: []*ir.Value{p}, Shape: p.Shape}
			m.Taps[0].Value = &ir.Value{Op: ir.AllReduce{Message: 1, Member: 1}, Args: []*ir.Value{first}, Shape: p.Shape}
		},
		"an all-reduce of another size": func(m *ir.Module, p *ir.Value) {
			m.Taps[0].Value = &ir.Value{Op: ir.AllReduce{}, Args: []*ir.Value{p}, Shape: []int{3}}
		},
		"a gather of half an image": func(m *ir.Module, p *ir.Value) {
			m.Taps[0].Value = &ir.Value{Op: ir.AllGather{Outer: 1, Batch: 3, Processes: 2}, Args: []*ir.Value{p}, Shape: []int{3, 3}}
		},
		"a gather of no processes": func(m *ir.Module, p *ir.Value) {
			m.Taps[0].Value = &ir.Value{Op: ir.AllGather{Outer: 1, Batch: 3}, Args: []*ir.Value{p}, Shape: []int{3, 4}}
		},
		"a boxed arg": func(_ *ir.Module, p *ir.Value) {
			p.Args[0] = &ir.Value{Op: ir.Foreign{Run: nothing{}, Boxed: true}, Shape: []int{2, 3}}
		},
		"a boxed tap": func(m *ir.Module, _ *ir.Value) {
			m.Taps[0].Value = &ir.Value{Op: ir.Foreign{Run: nothing{}, Boxed: true}}
		},
	} {
		m, product := dense()
		spoil(m, product)
		expect.AnyError(t, m.Check(), name)
	}
	expect.AnyError(t, (*ir.Module)(nil).Check(), "no module")
}

// nothing is an op that computes nothing.
type nothing struct{}

func (nothing) String() string                    { return "nothing" }
func (nothing) Do([]ir.Tensor) (ir.Tensor, error) { return ir.Tensor{}, nil }

func TestPrimitivesHaveTextsArgsAndValues(t *testing.T) {
	texts := map[string]bool{}
	for p := ir.Primitive(0); p < ir.Primitives; p++ {
		if texts[p.String()] || p.String() == "" || p.Args() < 1 || p.Args() > 2 {
			t.Errorf("primitive %d: %q of %d numbers", p, p, p.Args())
		}
		texts[p.String()] = true
		if y := p.Eval(0.5, 0.25); math.IsNaN(y) {
			t.Errorf("%v of 0.5 and 0.25 is NaN", p)
		}
	}
}

func TestReduceSortsItsAxesAndKeepsTheRest(t *testing.T) {
	x := &ir.Value{Op: ir.Leaf{}, Shape: []int{2, 3, 4}}
	v := ir.Reduce(ir.Max, x, []int{3, 1}, 2, 0, 2)
	inner := v.Args[0]
	if r := inner.Op.(ir.Reduction); v.Op != (ir.Reshape{}) || !slices.Equal(inner.Shape, []int{3}) || r.Axes != ir.NewAxes(0, 2) {
		t.Errorf("got %v%v of %v%v", v.Op, v.Shape, inner.Op, inner.Shape)
	}
}

package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/graph/ops"
	"tessera/internal/engine/ir"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/volume"
)

// lowered builds a graph in float64 and returns it as a module.
func lowered(t *testing.T, build func(p *program)) *module {
	t.Helper()
	p := newProgram(t, tensor.Float64)
	build(p)
	m, err := p.Module()
	fatal.If(t, err)
	return newModule(m)
}

// want compares the text of a module with drawing, ignoring indentation.
func want(t *testing.T, m *module, drawing string) {
	t.Helper()
	var lines []string
	for line := range strings.Lines(drawing) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	expect.Equal(t, strings.TrimSpace(m.String()), strings.Join(lines, "\n"))
}

func TestProductsReadTransposedMatricesInPlace(t *testing.T) {
	m := lowered(t, func(p *program) {
		x, w, g := p.input("x", 6, 5), p.parameter("w", 4, 5), p.input("g", 6, 4)
		twice := must(ops.Transpose(must(ops.Transpose(x))))
		p.tap("y", must(G.Mul(twice, must(ops.Transpose(w)))))
		p.tap("turned", must(ops.Transpose(must(G.Mul(must(ops.Transpose(g)), x)))))
	})
	for rewrite[float64](m) {
	}
	want(t, m, `
		%0 input[6 5] x
		%1 parameter[4 5] w
		%2 A×Bᵀ[6 4] %0 %1
		%3 input[6 4] g
		%4 Aᵀ×B[5 4] %0 %3`)
}

func TestFoldComputesConstantsAndRemovesViews(t *testing.T) {
	x := &ir.Value{Op: ir.Leaf{Kind: ir.InputLeaf, Index: 0}, Shape: []int{3, 4}, Name: "x"}
	flat := ir.Reshaped(ir.Reshaped(x, []int{12}), []int{3, 4})
	seven := ir.Point(ir.Add, nil, ir.Uniform(3, nil), ir.Uniform(4, nil))
	m := &module{wanted: []*ir.Value{ir.Point(ir.Mul, x.Shape, flat, ir.Point(ir.Mul, nil, ir.Uniform(2, nil), seven))}}
	fold[float64](m)
	want(t, m, `
		%0 input[3 4] x
		%1 14[1 1]
		%2 broadcast[3 4] %1
		%3 ⊙[3 4] %0 %2`)
}

func TestMergeComputesEqualExpressionsOnce(t *testing.T) {
	x := &ir.Value{Op: ir.Leaf{Kind: ir.InputLeaf, Index: 0}, Shape: []int{4}, Name: "x"}
	y := &ir.Value{Op: ir.Leaf{Kind: ir.InputLeaf, Index: 1}, Shape: []int{4}, Name: "y"}
	m := &module{wanted: []*ir.Value{
		ir.Point(ir.Add, x.Shape, ir.Point(ir.Mul, x.Shape, x, y), ir.Point(ir.Exp, x.Shape, x)),
		ir.Point(ir.Sub, x.Shape, ir.Point(ir.Mul, x.Shape, y, x), ir.Point(ir.Exp, x.Shape, x)),
	}}
	merge(m)
	want(t, m, `
		%0 input[4] x
		%1 input[4] y
		%2 ⊙[4] %0 %1
		%3 exp[4] %0
		%4 +[4] %2 %3
		%5 -[4] %2 %3`)
}

// scaling multiplies by a factor that its text omits, as user-defined ops may.
type scaling struct {
	failing
	by float64
}

func (s scaling) Hashcode() uint32 { return uint32(s.by) }
func (scaling) Spec() any          { return nil }
func (scaling) Block(s []int) int  { return s[len(s)-1] }
func (s scaling) Float32(dst []float32, in [][]float32, _ int) {
	for i, v := range in[0] {
		dst[i] = float32(s.by) * v
	}
}
func (s scaling) Float64(dst []float64, in [][]float64, _ int) {
	for i, v := range in[0] {
		dst[i] = s.by * v
	}
}

// parallelScaling is scaling in units.
type parallelScaling struct {
	failing
	by float64
}

func (s parallelScaling) Hashcode() uint32                                        { return uint32(s.by) }
func (parallelScaling) Units() int                                                { return 4 }
func (parallelScaling) Prepared() (ir.Units, []int)                               { return nil, nil }
func (parallelScaling) Spec() any                                                 { return nil }
func (parallelScaling) ByUnit(int) bool                                           { return true }
func (parallelScaling) Scratch() int                                              { return 0 }
func (parallelScaling) Work() float64                                             { return 4 }
func (parallelScaling) Float32(_ []float32, _ [][]float32, _ []float32, _, _ int) {}
func (parallelScaling) Float64(_ []float64, _ [][]float64, _ []float64, _, _ int) {}

func TestMergeKeepsOpsOfEqualTextsApart(t *testing.T) {
	x := &ir.Value{Op: ir.Leaf{Kind: ir.InputLeaf, Index: 0}, Shape: []int{4}, Name: "x"}
	for name, of := range map[string]func(by float64) *ir.Value{
		"element by element": func(by float64) *ir.Value { return ir.Point(ir.Elementwise{Blocks: scaling{by: by}}, x.Shape, x) },
		"row by row":         func(by float64) *ir.Value { return ir.InBlocks(scaling{by: by}, x.Shape, x) },
		"in units": func(by float64) *ir.Value {
			return &ir.Value{Op: ir.Unitwise{Kernel: parallelScaling{failing{}, by}}, Args: []*ir.Value{x}, Shape: x.Shape}
		},
	} {
		m := &module{wanted: []*ir.Value{of(2), of(3), of(2)}}
		merge(m)
		if m.wanted[0] == m.wanted[1] {
			t.Errorf("%s: two factors are one", name)
		}
		expect.Equal(t, m.wanted[0], m.wanted[2], name, "one factor is two")
	}
}

func TestRewriteRules(t *testing.T) {
	shape := []int{8}
	x := func() *ir.Value { return &ir.Value{Op: ir.Leaf{Kind: ir.InputLeaf, Index: 0}, Shape: shape, Name: "x"} }
	c := func(v float64) *ir.Value { return ir.Uniform(v, shape) }
	of := func(f ir.Primitive, args ...*ir.Value) *ir.Value { return ir.Point(f, shape, args...) }
	y := x() // has two readers
	for _, test := range []struct {
		name string
		from *ir.Value
		to   string
	}{
		{"x+0", of(ir.Add, x(), c(0)), "x"},
		{"1*x", of(ir.Mul, c(1), x()), "x"},
		{"x/1", of(ir.Div, x(), c(1)), "x"},
		{"-(-x)", of(ir.Neg, of(ir.Neg, x())), "x"},
		{"x+(-x)", of(ir.Add, of(ir.Exp, x()), of(ir.Neg, x())), "(exp(x) - x)"},
		{"(-x)+x", of(ir.Add, of(ir.Neg, x()), of(ir.Exp, x())), "(exp(x) - x)"},
		{"x-(-x)", of(ir.Sub, of(ir.Exp, x()), of(ir.Neg, x())), "(exp(x) + x)"},
		{"-(x*3)", of(ir.Neg, of(ir.Mul, x(), c(3))), "(x ⊙ -3)"},
		{"(-x)*3", of(ir.Mul, of(ir.Neg, x()), c(3)), "(x ⊙ -3)"},
		{"sigmoid(x)*sigmoid(-x)", of(ir.Mul, of(ir.Sigmoid, y), of(ir.Sigmoid, of(ir.Neg, y))), "(sigmoid(x) ⊙ (1 - sigmoid(x)))"},
		{"sigmoid(-x)*sigmoid(x)", of(ir.Mul, of(ir.Sigmoid, of(ir.Neg, y)), of(ir.Sigmoid, y)), "(sigmoid(x) ⊙ (1 - sigmoid(x)))"},
		{"sigmoid(-x) stays: 1 - sigmoid(x) is 0 for large x", of(ir.Sigmoid, of(ir.Neg, x())), "sigmoid(neg(x))"},
		{"x/4", of(ir.Div, x(), c(4)), "(x ⊙ 0.25)"},
		{"x/0 stays", of(ir.Div, x(), c(0)), "(x ÷ 0)"},
		{"(x*3)*5", of(ir.Mul, of(ir.Mul, x(), c(3)), c(5)), "(x ⊙ 15)"},
		{"0*x stays: x may be NaN", of(ir.Mul, c(0), x()), "(0 ⊙ x)"},
	} {
		m := &module{wanted: []*ir.Value{test.from}}
		rewrite[float64](m)
		expect.Equal(t, formula(m.wanted[0]), test.to, test.name)
	}
}

func TestRewriteMakesNoConstantThatThePrecisionCannotHold(t *testing.T) {
	shape := []int{8}
	x := &ir.Value{Op: ir.Leaf{Kind: ir.InputLeaf, Index: 0}, Shape: shape, Name: "x"}
	of := func(f ir.Primitive, v *ir.Value, c float64) *ir.Value {
		return ir.Point(f, shape, v, ir.Uniform(c, shape))
	}
	for _, test := range []struct {
		from           *ir.Value
		single, double string
	}{
		{of(ir.Div, x, 0x1p-140), "(x ÷ 7.174648137343064e-43)", "(x ⊙ 1.393796574908164e+42)"},
		{of(ir.Mul, of(ir.Mul, x, 0x1p-100), 0x1p-100), "((x ⊙ 7.888609052210118e-31) ⊙ 7.888609052210118e-31)", "(x ⊙ 6.223015277861142e-61)"},
		{of(ir.Mul, of(ir.Mul, x, 0x1p100), 0x1p100), "((x ⊙ 1.2676506002282294e+30) ⊙ 1.2676506002282294e+30)", "(x ⊙ 1.6069380442589903e+60)"},
	} {
		m := &module{wanted: []*ir.Value{test.from}}
		rewrite[float32](m)
		expect.Equal(t, formula(m.wanted[0]), test.single, "single precision")
		rewrite[float64](m)
		expect.Equal(t, formula(m.wanted[0]), test.double, "double precision")
	}
}

// The first round only rewrites x/4 as a product and does not remove a value. Only the second round finds that the two
// products are equal.
func TestOptimiseGoesOnWhileAPassChangesAnything(t *testing.T) {
	shape := []int{8}
	x := &ir.Value{Op: ir.Leaf{Kind: ir.InputLeaf, Index: 0}, Shape: shape, Name: "x"}
	of := func(f ir.Primitive, args ...*ir.Value) *ir.Value { return ir.Point(f, shape, args...) }
	a := of(ir.Exp, of(ir.Div, x, ir.Uniform(4, shape)))
	b := of(ir.Exp, of(ir.Mul, x, ir.Uniform(0.25, shape)))
	m := &module{wanted: []*ir.Value{of(ir.Mul, of(ir.Sigmoid, a), of(ir.Sigmoid, of(ir.Neg, b)))}}
	optimise[float64](m)
	const want = "(sigmoid(exp((x ⊙ 0.25))) ⊙ (1 - sigmoid(exp((x ⊙ 0.25)))))"
	expect.Equal(t, formula(m.wanted[0]), want)
}

// formula returns the formula of a pointwise value as text.
func formula(v *ir.Value) string {
	if c, ok := ir.ConstantOf(v); ok {
		return fmt.Sprint(c)
	}
	switch p, ok := v.Op.(ir.Pointwise); {
	case ok && len(v.Args) == 1:
		return fmt.Sprintf("%v(%s)", p.F, formula(v.Args[0]))
	case ok:
		return fmt.Sprintf("(%s %v %s)", formula(v.Args[0]), p.F, formula(v.Args[1]))
	}
	return v.Name
}

func TestBroadcastsAreHoistedAndFoldsJoined(t *testing.T) {
	row := &ir.Value{Op: ir.Leaf{Kind: ir.InputLeaf, Index: 0}, Shape: []int{1, 5}, Name: "row"}
	wide := ir.Broadcasted(row, []int{3, 5})
	m := &module{wanted: []*ir.Value{ir.Point(ir.Exp, wide.Shape, wide)}}
	rewrite[float64](m)
	want(t, m, "%0 input[1 5] row\n%1 exp[1 5] %0\n%2 broadcast[3 5] %1")

	x := &ir.Value{Op: ir.Leaf{Kind: ir.InputLeaf, Index: 0}, Shape: []int{3, 5}, Name: "x"}
	rows := ir.Reduce(ir.Sum, x, []int{3}, 1)
	m = &module{wanted: []*ir.Value{ir.Reduce(ir.Sum, ir.Point(ir.Mul, rows.Shape, ir.Uniform(0.5, rows.Shape), rows), nil, 0)}}
	rewrite[float64](m)
	want(t, m, "%0 0.5[]\n%1 input[3 5] x\n%2 sum[0 1][] %1\n%3 ⊙[] %0 %2")
}

func TestFuseMakesOnePassOfWhatOnePassCanCompute(t *testing.T) {
	m := lowered(t, shallow(32, 49, 10))
	optimise[float64](m)
	f := fuse(m)
	groups := map[*group]bool{}
	for _, v := range m.values {
		if space, ok := spaceOf(v); ok {
			g := f.groupOf[v]
			if g == nil || g.size != volume.Of(space) {
				t.Fatalf("%v: in a group of %v elements", v.Op, g)
			}
			groups[g] = true
		}
	}
	var sizes []int
	for g := range groups {
		sizes = append(sizes, g.size)
	}
	slices.Sort(sizes)
	if fmt.Sprint(sizes) != "[1 10 320 320 1568]" { // sizes of the sum of the terms, the KL term, the code, its gradient and the output
		t.Errorf("groups of %v elements", sizes)
	}
}

func TestCollapseKeepsTheSlowestAxisUnlessAllJoin(t *testing.T) {
	whole := split(contiguous([]int{2, 3, 4}), []int{1, 4, 12, 24})
	expect.Equal(t, fmt.Sprint(collapse([][]axis{slices.Clone(whole)}, true)), "[[{24 1}]]")
	expect.Equal(t, fmt.Sprint(collapse([][]axis{slices.Clone(whole)}, false)), "[[{2 12} {12 1}]]")
	row := []axis{{2, 0}, {3, 4}, {4, 1}} // repeated along the slowest axis
	expect.Equal(t, fmt.Sprint(collapse([][]axis{slices.Clone(whole), row}, true)), "[[{2 12} {12 1}] [{2 0} {12 1}]]")
}

func TestRefineFindsTheCommonFactorisation(t *testing.T) {
	if b, ok := refine(boundaries([]int{128, 28, 28}), boundaries([]int{128, 784})); !ok || fmt.Sprint(b) != "[1 28 784 100352]" {
		t.Error(b, ok)
	}
	if _, ok := refine(boundaries([]int{2, 3}), boundaries([]int{3, 2})); ok {
		t.Error("2x3 and 3x2 have no common factorisation")
	}
}

func TestPlacedBlocksNeverOverlapWhileTheyLive(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		phases := make([]phase, 1+r.IntN(8))
		var values []*ir.Value
		for i := range phases {
			for range r.IntN(4) {
				v := &ir.Value{ID: len(values), Op: ir.Product{}, Shape: []int{1 + r.IntN(100)}}
				st := &step{writes: []operand{{v, rows}}}
				if len(values) > 0 {
					st.reads = append(st.reads, operand{values[r.IntN(len(values))], rows})
				}
				values = append(values, v)
				phases[i].shared = append(phases[i].shared, st)
			}
		}
		blocks, total := place(phases, nil, nil, nil)
		for i, a := range blocks {
			if a.offset%align != 0 || a.offset+a.len > total {
				t.Fatalf("%+v in %d elements", a, total)
			}
			for _, b := range blocks[:i] {
				if a.first <= b.last && b.first <= a.last && a.offset < b.offset+b.len && b.offset < a.offset+a.len {
					t.Fatalf("%+v overlaps %+v", a, b)
				}
			}
		}
	}
}

func TestScheduleWaitsWhereRowsMix(t *testing.T) {
	v := func(id int) *ir.Value { return &ir.Value{ID: id, Op: ir.Product{}, Shape: []int{64, 64}} }
	x, a, b, c := v(0), v(1), v(2), v(3)
	rowwise := &step{name: "a", units: 64, reads: []operand{{x, rows}}, writes: []operand{{a, rows}}}
	follows := &step{name: "b", units: 64, reads: []operand{{a, rows}}, writes: []operand{{b, rows}}}
	mixes := &step{name: "c", units: 64, reads: []operand{{a, whole}}, writes: []operand{{c, rows}}}
	phases := schedule([]*step{rowwise, follows, mixes})
	if len(phases) != 2 || len(phases[0].shared) != 2 || phases[1].shared[0] != mixes {
		t.Errorf("%+v", phases)
	}
}

// weighted returns the products x W and d Wᵀ for a batch of 32 and a matrix W of the given shape.
func weighted(rows, columns int, trained bool) (m *module, forward, backward *ir.Value) {
	x := &ir.Value{Op: ir.Leaf{Kind: ir.InputLeaf, Index: 0}, Shape: []int{32, rows}, Name: "x"}
	d := &ir.Value{Op: ir.Leaf{Kind: ir.InputLeaf, Index: 1}, Shape: []int{32, columns}, Name: "d"}
	w := &ir.Value{Op: ir.Leaf{Kind: ir.ParameterLeaf, Index: 0}, Shape: []int{rows, columns}, Name: "w"}
	forward = &ir.Value{Op: ir.Product{}, Args: []*ir.Value{x, w}, Shape: []int{32, columns}}
	backward = &ir.Value{Op: ir.Product{TransB: true}, Args: []*ir.Value{d, w}, Shape: []int{32, rows}}
	return &module{wanted: []*ir.Value{forward, backward}, trained: []bool{trained}}, forward, backward
}

func TestDivideMakesPartsOfWhatIsSummedAlongTheLongerSide(t *testing.T) {
	m, _, backward := weighted(256, 64, true)
	divide(m, 2)
	want(t, m, `
		%0 input[32 256] x
		%1 parameter[256 64] w
		%2 A×B partial[32 64] %0 %1
		%3 A×B partial[32 64] %0 %1
		%4 +[32 64] %2 %3
		%5 input[32 64] d
		%6 A×Bᵀ[32 256] %5 %1`)
	expect.Equal(t, m.values[2].Op.(partialProduct).thread, 0, "the partial products are not those of threads 0 and 1")
	expect.Equal(t, m.values[3].Op.(partialProduct).thread, 1, "the partial products are not those of threads 0 and 1")
	if !m.byColumns(backward, 2) {
		t.Error("the product that keeps the longer side is not shared along it")
	}
	m, forward, _ := weighted(64, 256, true)
	divide(m, 2)
	want(t, m, `
		%0 input[32 64] x
		%1 parameter[64 256] w
		%2 A×B[32 256] %0 %1
		%3 input[32 256] d
		%4 A×Bᵀ partial[32 64] %3 %1
		%5 A×Bᵀ partial[32 64] %3 %1
		%6 +[32 64] %4 %5`)
	if !m.byColumns(forward, 2) {
		t.Error("the product that keeps the longer side is not shared along it")
	}
}

func TestDivideLeavesWhatItDoesNotHelp(t *testing.T) {
	for name, of := range map[string]struct {
		rows, columns, threads int
		trained                bool
	}{
		"one thread":           {256, 64, 1, true},
		"not trained":          {256, 64, 2, false},
		"a small one":          {256, 32, 2, true},
		"thin shares":          {160, 160, 3, true},
		"a small batch matrix": {24, 30, 2, true},
	} {
		m, forward, backward := weighted(of.rows, of.columns, of.trained)
		divide(m, of.threads)
		for _, v := range m.values {
			if _, ok := v.Op.(partialProduct); ok {
				t.Errorf("%s: there is a partial product", name)
			}
		}
		if m.byColumns(forward, of.threads) && of.columns <= 32 || m.keeps(forward, of.threads) || m.keeps(backward, of.threads) {
			t.Errorf("%s: threads keep shares", name)
		}
	}
}

// TestBandsAgreeWithTheTapeMachine covers chains, sums over the batch and convolutions, with several bands per thread.
func TestBandsAgreeWithTheTapeMachine(t *testing.T) {
	const batch, threads = 48, 2
	geometry := ops.Convolution{In: [3]int{32, 32, 8}, Out: [3]int{32, 32, 8}, Kernel: 3, Stride: 1, Dilation: 1, Groups: 1, Top: 1, Left: 1}
	build := func(p *program) {
		x, w := p.input("x", batch, 32, 32, 8), p.parameter("w", geometry.Filters()...)
		y := must(ops.Ramp(must(geometry.Convolve(x, w)), 1, 0.1))
		z := must(geometry.Convolve(y, p.parameter("v", geometry.Filters()...)))
		p.tap("over the batch", must(G.Sum(z, 0)))
		var c ops.Chain
		p.loss(c.Mean(c.Square(c.Flatten(z))))
	}
	plan := compare[float64](t, threads, 1e-12, build)
	parts := 0
	for _, ph := range plan.phases {
		for _, b := range ph.bands {
			if len(b.steps) > 1 {
				parts = max(parts, batch/threads/b.units)
			}
		}
	}
	if parts < 2 {
		t.Error("no band is gone through in parts: the test shows nothing")
	}
	compare[float32](t, 1, 1e-5, build)
}

func TestAStepIsDelayedToThePhaseOfItsOnlyReaders(t *testing.T) {
	v := func(id int) *ir.Value { return &ir.Value{ID: id, Op: ir.Product{}, Shape: []int{64, 64}} }
	x, a, b, c, d := v(0), v(1), v(2), v(3), v(4)
	early := &step{name: "early", units: 64, divisible: true, reads: []operand{{x, rows}}, writes: []operand{{a, rows}}}
	other := &step{name: "other", units: 8, reads: []operand{{x, whole}}, writes: []operand{{b, rows}}}
	reader := &step{name: "reader", units: 64, divisible: true, reads: []operand{{a, rows}, {b, whole}}, writes: []operand{{c, rows}}}
	mixes := &step{name: "mixes", units: 64, divisible: true, reads: []operand{{c, whole}}, writes: []operand{{d, rows}}}
	phases := schedule([]*step{early, other, reader, mixes})
	if len(phases) != 3 || len(phases[0].shared) != 1 || phases[0].shared[0] != other {
		t.Fatalf("%+v", phases)
	}
	if list := phases[1].bands; len(list) != 1 || len(list[0].steps) != 2 || list[0].steps[0] != early || list[0].steps[1] != reader {
		t.Errorf("%+v", list)
	}
	if list := phases[2].bands; len(list) != 1 || list[0].units != 64 {
		t.Errorf("%+v", list)
	}
}

func TestAStepThatSeveralPhasesReadStays(t *testing.T) {
	v := func(id int) *ir.Value { return &ir.Value{ID: id, Op: ir.Product{}, Shape: []int{64, 64}} }
	x, a, b, c := v(0), v(1), v(2), v(3)
	early := &step{name: "early", units: 64, divisible: true, reads: []operand{{x, rows}}, writes: []operand{{a, rows}}}
	now := &step{name: "now", units: 64, divisible: true, reads: []operand{{a, rows}}, writes: []operand{{b, rows}}}
	later := &step{name: "later", units: 64, divisible: true, reads: []operand{{a, rows}, {b, whole}}, writes: []operand{{c, rows}}}
	phases := schedule([]*step{early, now, later})
	if len(phases) != 2 || len(phases[0].shared) != 2 || phases[0].shared[0] != early {
		t.Errorf("%+v", phases)
	}
}

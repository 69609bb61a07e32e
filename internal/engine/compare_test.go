package engine

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/graph"
	"tessera/graph/tape"
	"tessera/internal/engine/ir"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/parallel/team"
	"tessera/internal/volume"
)

// program is a hand-built graph under test.
type program struct {
	*graph.Program
	t testing.TB
}

func newProgram(t testing.TB, dtype tensor.Dtype) *program {
	return &program{&graph.Program{Graph: G.NewGraph(), Dtype: dtype}, t}
}

func (p *program) input(name string, shape ...int) *G.Node {
	n := G.NewTensor(p.Graph, p.Dtype, len(shape), G.WithShape(shape...), G.WithName(name))
	p.Inputs = append(p.Inputs, graph.Input{Name: name, Node: n, Shape: shape})
	return n
}

func (p *program) parameter(name string, shape ...int) *G.Node {
	n := G.NewTensor(p.Graph, p.Dtype, len(shape), G.WithShape(shape...), G.WithName(name))
	r := rand.New(rand.NewPCG(1, uint64(len(p.Parameters))))
	data := lists.Of(volume.Of(shape), func(int) float32 { return float32(r.NormFloat64()) / 2 })
	p.Parameters = append(p.Parameters, graph.Binding{Node: n,
		Parameter: &graph.Parameter{Path: name, Shape: shape, Data: data, Trainable: true}})
	return n
}

func (p *program) tap(name string, n *G.Node) {
	p.Taps = append(p.Taps, graph.Tap{Name: name, Node: n})
}

// loss taps n and adds the gradients with respect to every parameter.
func (p *program) loss(n *G.Node) {
	p.tap("loss", n)
	var wrt G.Nodes
	for _, b := range p.Parameters {
		wrt = append(wrt, b.Node)
	}
	grads, err := G.Grad(n, wrt...)
	if err != nil {
		p.t.Fatal(err)
	}
	for i, g := range grads {
		p.Parameters[i].Gradient = g
	}
}

// must returns n. It panics if err is not nil.
func must(n *G.Node, err error) *G.Node {
	if err != nil {
		panic(err)
	}
	return n
}

// compare builds the program twice, for the engine and for the tape machine. It compares every tap and gradient of the
// two over several runs with new inputs.
func compare[T ir.Float](t *testing.T, threads int, tolerance float64, build func(p *program)) *Plan[T] {
	t.Helper()
	reference, compiled := newProgram(t, dtypeOf[T]()), newProgram(t, dtypeOf[T]())
	build(reference)
	build(compiled)
	want, err := tape.Compile[T](reference.Program)
	fatal.If(t, err)
	team := team.New(threads)
	t.Cleanup(team.Close)
	got, err := compileProgram[T](compiled.Program, team)
	fatal.If(t, err)
	r := rand.New(rand.NewPCG(7, 7))
	for round := range 3 {
		for i, in := range reference.Inputs {
			values := lists.Of(volume.Of(in.Shape), func(int) T { return T(r.Float64()*2 - 0.7) })
			fatal.If(t, want.Bind(i, values))
			fatal.If(t, got.Bind(i, values))
		}
		fatal.If(t, want.Run())
		fatal.If(t, got.Run())
		for i, tap := range reference.Taps {
			near(t, fmt.Sprintf("round %d: %s", round, tap.Name), got.Tap(i), want.Tap(i), tolerance)
		}
		for i, b := range reference.Parameters {
			near(t, fmt.Sprintf("round %d: gradient of %s", round, b.Path), got.Gradient(i), want.Gradient(i), tolerance)
		}
	}
	return got
}

// near reports the error of differ, if any.
func near[T ir.Float](t *testing.T, what string, got, want []T, tolerance float64) {
	t.Helper()
	expect.NoError(t, differ(what, got, want, tolerance))
}

// elementTolerance is the tolerance of one element relative to the largest magnitude, in multiples of the tolerance of
// the norm of the tensor.
const elementTolerance = 4

// differ returns an error unless ||got-want|| <= tolerance ||want|| and, for every element, |got-want| <=
// elementTolerance tolerance max|want|. The second condition is needed because one wrong element among many changes the
// norm little.
func differ[T ir.Float](what string, got, want []T, tolerance float64) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s: %d values, want %d", what, len(got), len(want))
	}
	var d, n, worst, largest float64
	at := 0
	for i := range got {
		if off := math.Abs(float64(got[i]) - float64(want[i])); off > worst {
			worst, at = off, i
		}
		largest = max(largest, math.Abs(float64(want[i])))
		d += (float64(got[i]) - float64(want[i])) * (float64(got[i]) - float64(want[i]))
		n += float64(want[i]) * float64(want[i])
	}
	if relative := math.Sqrt(d) / max(math.Sqrt(n), 1e-30); !(relative <= tolerance) && d > 0 {
		return fmt.Errorf("%s: relative difference %.3g, want <= %g", what, relative, tolerance)
	}
	if bound := elementTolerance * tolerance * max(largest, 1e-30); worst > bound {
		return fmt.Errorf("%s: element %d is %g, want %g within %.3g", what, at, got[at], want[at], bound)
	}
	return nil
}

func TestOneWrongElementOfManyIsFound(t *testing.T) {
	want := lists.Of(100_000, func(int) float64 { return 1 })
	got := slices.Clone(want)
	got[777] += 1e-4 // changes the norm by 3e-7 only
	if differ("ones", got, want, 1e-5) == nil {
		t.Error("an element that is off by 1e-4 was not found")
	}
	expect.NoError(t, differ("ones", want, want, 1e-5))
}

// shallow returns a function that builds the study's auto-encoder with a sparsity term.
func shallow(batch, pixels, units int) func(p *program) {
	return func(p *program) {
		x := p.input("x", batch, pixels)
		w, b := p.parameter("w", pixels, units), p.parameter("b", units)
		v, c := p.parameter("v", units, pixels), p.parameter("c", pixels)
		h := must(G.Sigmoid(must(G.BroadcastAdd(must(G.Mul(x, w)), b, nil, []byte{0}))))
		y := must(G.LeakyRelu(must(G.BroadcastAdd(must(G.Mul(h, v)), c, nil, []byte{0})), 0.1))
		rows := must(G.Mean(must(G.Square(must(G.Sub(y, x)))), 1)) // one axis at a time, because the reference adds sequentially in float32
		mse := must(G.Mean(rows))
		mean := must(G.Mean(h, 0))
		number := func(f float64) *G.Node {
			if p.Dtype == tensor.Float32 {
				return G.NewConstant(float32(f))
			}
			return G.NewConstant(f)
		}
		on := must(G.HadamardProd(number(0.05), must(G.Log(must(G.HadamardDiv(number(0.05), mean))))))
		rest := must(G.Sub(number(1), mean))
		off := must(G.HadamardProd(number(0.95), must(G.Log(must(G.HadamardDiv(number(0.95), rest))))))
		kl := must(G.Sum(must(G.Add(on, off))))
		p.tap("code", h)
		p.tap("output", y)
		p.loss(must(G.Add(mse, must(G.Mul(number(0.001), kl)))))
	}
}

func TestCompiledShallowAgreesWithTheTapeMachine(t *testing.T) {
	for _, threads := range []int{1, 2, 3} {
		for _, batch := range []int{1, 2, 5, 32} {
			t.Run(fmt.Sprint(threads, " threads, batch ", batch), func(t *testing.T) {
				compare[float64](t, threads, 1e-12, shallow(batch, 49, 10))
				compare[float32](t, threads, 1e-5, shallow(batch, 49, 10))
			})
		}
	}
	compare[float64](t, 3, 1e-12, shallow(20, 300, 64)) // large enough that products are divided among the threads
	plan := compare[float32](t, 2, 1e-5, shallow(128, 784, 100))
	t.Log("\n" + plan.String())
}

func TestAStepAllocatesNothing(t *testing.T) {
	plan := compare[float32](t, 2, 1e-5, shallow(128, 784, 100))
	if raceEnabled {
		return
	}
	expect.Equal(t, testing.AllocsPerRun(20, func() {
		fatal.If(t, plan.Run())
	}), 0, "allocations per step")
}

func BenchmarkShallowStep(b *testing.B) {
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprint("threads=", threads), func(b *testing.B) {
			p := newProgram(b, tensor.Float32)
			shallow(128, 784, 100)(p)
			members := team.New(threads)
			defer members.Close()
			plan, err := compileProgram[float32](p.Program, members)
			fatal.If(b, err)
			b.Run("whole", func(b *testing.B) {
				for b.Loop() {
					fatal.If(b, plan.Run())
				}
			})
			b.Run("products", func(b *testing.B) { // the matrix products of the step alone: a lower bound of its time
				work := func(thread int) {
					for _, ph := range plan.phases {
						for _, st := range ph.shared {
							switch st.work.(type) {
							case *multiply[float32], *partial[float32]:
								from, to := team.Share(st.units, thread, threads)
								st.work.run(thread, from, to)
							}
						}
					}
				}
				for b.Loop() {
					members.Do(work)
				}
			})
		})
	}
}

// dtypeOf returns Gorgonia's type for T.
func dtypeOf[T ir.Float]() tensor.Dtype {
	if ir.DtypeOf[T]() == ir.Float64 {
		return tensor.Float64
	}
	return tensor.Float32
}

// compileProgram compiles the module of a graph program.
func compileProgram[T ir.Float](p *graph.Program, team *team.Team) (*Plan[T], error) {
	m, err := p.Module()
	if err != nil {
		return nil, err
	}
	return Compile[T](m, team)
}

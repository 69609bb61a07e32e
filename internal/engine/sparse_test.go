package engine

import (
	"math"
	"testing"

	"tessera/config"
	"tessera/graph"
	"tessera/internal/engine/ir"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/parallel/team"
)

// sparseModels declares models whose codes are almost all zeros: with and without rectification, with and without
// biases, with two sparse codes in sequence, and with rows of varying numbers of values: few, many, or many in some rows only.
const sparseModels = `
[model.rectified]
dataset = "bars"
encoder = [{ kind = "dense", units = 640, activation = "relu" }, { kind = "top_k", k = 8 }]
decoder = [{ kind = "dense" }]

[model.linear]
dataset = "bars"
encoder = [{ kind = "dense", units = 700, bias = false }, { kind = "top_k", k = 5 }]
decoder = [{ kind = "dense", bias = false, activation = "sigmoid" }]
loss    = [{ kind = "mse" }, { kind = "l1", weight = 0.1 }]

[model.plain]
dataset = "bars"
encoder = [{ kind = "dense", units = 700 }, { kind = "top_k", k = 5 }]
decoder = [{ kind = "dense" }]

[model.twice]
dataset = "bars"
encoder = [{ kind = "dense", units = 512, activation = "tanh" }, { kind = "top_k", k = 9 }, { kind = "dense", units = 400, activation = "relu" }, { kind = "top_k", k = 3 }]
decoder = [{ kind = "dense", units = 256, activation = "relu" }, { kind = "dense" }]

[model.tied]
dataset = "bars"
encoder = [{ kind = "dense", units = 640, activation = "relu" }, { kind = "top_k", k = 8 }]
decoder = [{ kind = "tied" }]

[model.groups]
dataset = "bars"
encoder = [{ kind = "dense", units = 640, activation = "relu" }, { kind = "group_max", groups = 8 }]
decoder = [{ kind = "dense" }]

[model.batch]
dataset = "bars"
encoder = [{ kind = "dense", units = 640 }, { kind = "batch_top_k", k = 8 }]
decoder = [{ kind = "dense" }]

[model.half]
dataset = "bars"
encoder = [{ kind = "dense", units = 640 }, { kind = "batch_top_k", k = 150 }]
decoder = [{ kind = "dense" }]

[model.jump]
dataset = "bars"
encoder = [{ kind = "dense", units = 640 }, { kind = "jump_relu", threshold = 0.35, width = 0.1 }]
decoder = [{ kind = "dense" }]
loss    = [{ kind = "mse" }, { kind = "l0", weight = 0.01 }]

[model.tanh]
dataset = "bars"
encoder = [{ kind = "dense", units = 640 }, { kind = "jump_relu", threshold = 0.4, width = 0.005, kernel = "tanh" }]
decoder = [{ kind = "dense" }]

[model.gated]
dataset = "bars"
encoder = [{ kind = "dense", units = 640 }, { kind = "affine", offset = -0.35 }, { kind = "gated" }]
decoder = [{ kind = "dense" }]
loss    = [{ kind = "mse" }, { kind = "gated" }, { kind = "l1", on = "encoder.2.gate", weight = 0.02 }]

[model.many]
dataset = "bars"
encoder = [{ kind = "dense", units = 600, activation = "relu" }, { kind = "top_k", k = 300 }]
decoder = [{ kind = "dense" }]
`

// ordinary returns the program with kernels that do not report that their results are almost all zeros.
func ordinary(m *ir.Module) *ir.Module {
	m = m.Clone()
	for _, v := range m.Values() {
		if o, ok := v.Op.(ir.Blockwise); ok {
			v.Op = ir.Blockwise{Kernel: struct{ ir.Blocks }{o.Kernel}, Block: o.Block}
		}
	}
	return m
}

// sameSparse runs the training program of a model with and without reported zeros, and compares all bits.
func sameSparse[T ir.Float](t *testing.T, spec *config.Model, threads int, prepare func(m *graph.Model)) {
	t.Helper()
	m := built(t, spec)
	prepare(m)
	p, err := m.Program(graph.Request{Batch: 300, Training: true, Dtype: dtypeOf[T]()})
	fatal.If(t, err)
	module, err := p.Module()
	fatal.If(t, err)
	members := team.New(threads)
	defer members.Close()
	var values [2][][]T
	for i, program := range []*ir.Module{module, ordinary(module)} {
		plan, err := Compile[T](program, members)
		fatal.If(t, err)
		for seed := range uint64(2) { // the second run finds the elements of the first
			for j, in := range p.Inputs {
				values := ir.ParameterValues[T](sampled(m, in, seed+1))
				if len(values) == 300*64 { // a few samples exceed the others, and have more active units
					for i := range values[:64] {
						values[i], values[150*64+i] = 50*values[i], 70*values[150*64+i]
					}
				}
				fatal.If(t, plan.Bind(j, values))
			}
			fatal.If(t, plan.Run())
		}
		for j := range program.Taps {
			values[i] = append(values[i], plan.Tap(j))
		}
		for j := range program.Parameters {
			values[i] = append(values[i], plan.Gradient(j))
		}
	}
	for i, got := range values[0] {
		for j, v := range got {
			w := values[1][i][j]
			if math.Float64bits(float64(v)) != math.Float64bits(float64(w)) && (v == v || w == w) {
				t.Fatalf("%s, %d threads, %T: value %d[%d]: got %v, want %v", spec.Name, threads, v, i, j, v, w)
			}
		}
	}
}

func TestProductsWithoutZerosChangeNoBit(t *testing.T) {
	file, err := config.Load("models.toml", []byte(sparseModels))
	fatal.If(t, err)
	infinite := func(path string, v float64) func(m *graph.Model) {
		return func(m *graph.Model) {
			if p, err := m.Parameter(path); err == nil {
				p.Data[len(p.Data)/3] = float32(v)
			}
		}
	}
	for name, prepare := range map[string]func(m *graph.Model){
		"finite":              func(*graph.Model) {},
		"infinite in decoder": infinite("decoder.0.weight", math.Inf(1)),
		"NaN in decoder":      infinite("decoder.0.weight", math.NaN()),
		"infinite in encoder": infinite("encoder.0.weight", math.Inf(-1)),
		"NaN in encoder":      infinite("encoder.0.weight", math.NaN()),
	} {
		t.Run(name, func(t *testing.T) {
			for _, model := range file.Names() {
				spec, err := file.Model(model)
				fatal.If(t, err)
				for threads := 1; threads <= 3; threads++ {
					if threads == 3 || name == "finite" && !testing.Short() { // -short is set by the run under the race detector
						sameSparse[float32](t, spec, threads, prepare)
					}
				}
				if name == "finite" {
					sameSparse[float64](t, spec, 2, prepare)
				}
			}
		})
	}
}

// sparseProgram returns the training program of a model for a batch of 300.
func sparseProgram(t *testing.T, name string) *ir.Module {
	t.Helper()
	file, err := config.Load("models.toml", []byte(sparseModels))
	fatal.If(t, err)
	spec, err := file.Model(name)
	fatal.If(t, err)
	m := built(t, spec)
	p, err := m.Program(graph.Request{Batch: 300, Training: true})
	fatal.If(t, err)
	module, err := p.Module()
	fatal.If(t, err)
	return module
}

// selections counts the products of which only selected elements are computed.
func selections(m *module) (n int) {
	for _, v := range m.values {
		if _, ok := v.Op.(selectedProduct); ok {
			n++
		}
	}
	return n
}

// If few values of a code are kept, only their gradients are computed. This excludes `linear`, where the loss adds to
// the product first, `tied`, whose product is of another kind, and `many`, which keeps too many values.
func TestOnlyTheSelectedElementsOfAProductAreComputed(t *testing.T) {
	for name, want := range map[string]int{"rectified": 1, "plain": 1, "linear": 0, "twice": 2, "tied": 0, "many": 0} {
		m := newModule(sparseProgram(t, name))
		optimise[float32](m)
		selectElements(m)
		expect.Equal(t, selections(m), want, name, m)
	}
}

func TestAProductThatIsAlsoReadElsewhereIsWhole(t *testing.T) {
	m := newModule(sparseProgram(t, "rectified"))
	optimise[float32](m)
	for _, v := range m.values {
		if o, ok := v.Op.(ir.Blockwise); ok && len(v.Args) > 1 && o.Kernel.(ir.Selecting).Selection() != nil {
			m.wanted = append(m.wanted, v.Args[len(v.Args)-1])
		}
	}
	selectElements(m)
	expect.Equal(t, selections(m), 0, m)
}

func TestOnlyCopiesOfParametersAndViewsRemain(t *testing.T) {
	for _, name := range []string{"batch", "jump", "gated"} {
		m := newModule(sparseProgram(t, name))
		optimise[float32](m)
		stopped := copies(m)
		if dropCopies(m); copies(m) >= stopped {
			t.Errorf("%s: %d of %d copies remain, want fewer\n%v", name, copies(m), stopped, m)
		}
	}
}

// copies counts the copies of values.
func copies(m *module) (n int) {
	for _, v := range m.values {
		if p, ok := v.Op.(ir.Pointwise); ok && p.F == ir.Copy {
			n++
		}
	}
	return n
}

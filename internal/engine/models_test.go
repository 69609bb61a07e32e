package engine

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"tessera/config"
	"tessera/data"
	"tessera/graph"
	"tessera/graph/tape"
	"tessera/hooks"
	"tessera/internal/engine/ir"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/parallel/team"
	"tessera/internal/random"
	"tessera/internal/volume"

	"gorgonia.org/tensor"
)

// shipped returns every auto-encoder of models.toml. All tests share the models and must not change them.
func shipped(t testing.TB) []*config.Model {
	t.Helper()
	models, err := readShipped()
	fatal.If(t, err)
	return slices.Clone(models)
}

var readShipped = sync.OnceValues(func() (models []*config.Model, err error) {
	const path = "../../models.toml"
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	file, err := config.Load(path, text)
	if err != nil {
		return nil, err
	}
	for _, name := range file.Names() {
		m, err := file.Model(name)
		if err != nil {
			return nil, err
		}
		if len(m.Encoder) > 0 {
			models = append(models, m)
		}
	}
	return models, nil
})

// shapeOf returns the shape of a model's images.
func shapeOf(t testing.TB, m *config.Model) []int {
	t.Helper()
	shape, ok := m.Dataset.Source.Shape(data.Dirs{})
	if !ok {
		t.Fatalf("%s: the shape of its images is not known", m.Name)
	}
	return shape
}

// pair is one training program on two back ends: the tape machine as reference and the engine.
type pair[T ir.Float] struct {
	model          *graph.Model
	program        *graph.Program // program of the reference
	reference, got ir.Runner[T]
}

// newReference returns a pair without the engine.
func newReference[T ir.Float](t *testing.T, m *graph.Model, batch int) pair[T] {
	t.Helper()
	program, err := m.Program(graph.Request{Batch: batch, Training: true, Dtype: dtypeOf[T]()})
	fatal.If(t, err)
	reference, err := tape.Compile[T](program)
	fatal.If(t, err)
	return pair[T]{model: m, program: program, reference: reference}
}

func newPair[T ir.Float](t *testing.T, m *graph.Model, batch int, team *team.Team) pair[T] {
	t.Helper()
	p := newReference[T](t, m, batch)
	program, err := m.Program(graph.Request{Batch: batch, Training: true, Dtype: dtypeOf[T]()})
	fatal.If(t, err)
	if p.got, err = compileProgram[T](program, team); err != nil {
		t.Fatal(err)
	}
	return p
}

// step runs both back ends with the same weights on the same images and noise, and compares all results. Then it moves
// the weights along the negative gradients of the reference.
//
// In float32, rounding may move the input of a leaky relu across 0, where the derivative jumps. With the millions of
// inputs of a deep encoder this is common. A batch in float32 therefore also passes if the engine is about as close to
// float64 as the reference is. If a batch fails, step tries up to two more batches: an error in the engine, unlike
// rounding, would fail all of them. In float64 there is one batch.
func (p pair[T]) step(t *testing.T, step int, tolerance float64) {
	t.Helper()
	batches := 1
	if dtypeOf[T]() == tensor.Float32 {
		batches = 3
	}
	var wrong error
	for i := range batches {
		batch := uint64(step + 100*i)
		p.bind(t, batch)
		if wrong = p.compare(t, tolerance); wrong != nil && batches > 1 {
			wrong = p.compareExactly(t, batch, tolerance)
		}
		if wrong == nil {
			break
		}
	}
	if wrong != nil {
		t.Errorf("step %d: %v", step, wrong)
	}
	for i := range p.program.Parameters {
		w := p.reference.Parameter(i)
		for j, g := range p.reference.Gradient(i) {
			w[j] -= g / 10
		}
	}
}

// compareExactly compares both back ends with the reference in float64. It returns an error for each result that
// differs from the float32 reference and whose distance from float64 is more than three times that of the reference.
func (p pair[T]) compareExactly(t *testing.T, batch uint64, tolerance float64) error {
	t.Helper()
	exact := newReference[float64](t, p.model, p.program.Batch)
	exact.bind(t, batch)
	fatal.If(t, exact.reference.Run())
	var differences []error
	compare := func(name string, got, single []T, double []float64) {
		if err := differ(name, got, single, tolerance); err != nil && distance(got, double) > tolerance*norm(double)+3*distance(single, double) {
			differences = append(differences, err)
		}
	}
	for i, tap := range p.program.Taps {
		compare(tap.Name, p.got.Tap(i), p.reference.Tap(i), exact.reference.Tap(i))
	}
	zero := p.zero(tolerance)
	for i, b := range p.program.Parameters {
		if norm(p.got.Gradient(i)) > zero || norm(p.reference.Gradient(i)) > zero {
			compare("gradient of "+b.Path, p.got.Gradient(i), p.reference.Gradient(i), exact.reference.Gradient(i))
		}
	}
	return errors.Join(differences...)
}

// distance returns the norm of single - double.
func distance[T ir.Float](single []T, double []float64) float64 {
	difference := make([]float64, len(double))
	for i, v := range double {
		difference[i] = float64(single[i]) - v
	}
	return norm(difference)
}

// sampled returns an input of one batch: noise drawn by its sampler, or images half of whose pixels are 0.
func sampled(m *graph.Model, in graph.Input, batch uint64) []float32 {
	values := make([]float32, volume.Of(in.Shape))
	if in.Sampler != nil {
		in.Sampler.Sample(values, random.Stream(1, in.Name, batch))
		return values
	}
	r := rand.New(rand.NewPCG(3, batch))
	for i := range values {
		values[i] = float32(r.IntN(256)) / 255 * float32(r.IntN(2))
	}
	if m == nil { // a program without a model
		return values
	}
	for _, w := range m.Spec.Wanted(m.Layout) {
		if w.Column != in.Column || w.Holds(0.5) {
			continue
		}
		for i := range values { // numbers of tokens, lengths
			for values[i] = float32(r.IntN(100)); !w.Holds(values[i]) && values[i] > 0; {
				values[i] = float32(int(values[i]) / 2)
			}
		}
	}
	return values
}

// bind binds the same images and noise of one batch on both back ends.
func (p pair[T]) bind(t *testing.T, batch uint64) {
	t.Helper()
	for i, in := range p.program.Inputs {
		values := ir.ParameterValues[T](sampled(p.model, in, batch))
		for _, r := range []ir.Runner[T]{p.reference, p.got} {
			if r == nil {
				continue
			}
			fatal.If(t, r.Bind(i, values))
		}
	}
}

// compare runs both back ends with the weights of the reference and returns the differences.
func (p pair[T]) compare(t *testing.T, tolerance float64) error {
	t.Helper()
	for i := range p.program.Parameters {
		copy(p.got.Parameter(i), p.reference.Parameter(i))
	}
	differences := p.run(t, tolerance)
	for i, tap := range p.program.Taps {
		differences = append(differences, differ(tap.Name, p.got.Tap(i), p.reference.Tap(i), tolerance))
	}
	zero := p.zero(tolerance)
	for i, b := range p.program.Parameters {
		if g := p.reference.Gradient(i); norm(g) > zero || norm(p.got.Gradient(i)) > zero {
			differences = append(differences, differ("gradient of "+b.Path, p.got.Gradient(i), g, tolerance))
		}
	}
	return errors.Join(differences...)
}

// zero returns the norm below which a gradient counts as rounding error, relative to the largest gradient.
func (p pair[T]) zero(tolerance float64) float64 {
	largest := 0.0
	for i := range p.program.Parameters {
		largest = max(largest, norm(p.reference.Gradient(i)))
	}
	return tolerance * largest
}

// run runs both back ends and compares the values that they assign to parameters. In float32 both share the memory of
// these parameters, so run restores the initial values before the second run.
func (p pair[T]) run(t *testing.T, tolerance float64) (differences []error) {
	t.Helper()
	before, moved := p.state(p.reference), [2][][]T{}
	for i, r := range []ir.Runner[T]{p.reference, p.got} {
		for j, u := range p.program.Updates {
			copy(r.Parameter(p.program.IndexOf(u.Parameter)), before[j])
		}
		fatal.If(t, r.Run())
		moved[i] = p.state(r)
	}
	for j, u := range p.program.Updates {
		differences = append(differences, differ("next "+u.Parameter.Path, moved[1][j], moved[0][j], tolerance))
	}
	return differences
}

// norm returns the square root of the sum of the squares.
func norm[T ir.Float](values []T) float64 {
	sum := 0.0
	for _, v := range values {
		sum += float64(v) * float64(v)
	}
	return math.Sqrt(sum)
}

// state returns copies of the parameters that a program updates itself.
func (p pair[T]) state(r ir.Runner[T]) (values [][]T) {
	for _, u := range p.program.Updates {
		values = append(values, slices.Clone(r.Parameter(p.program.IndexOf(u.Parameter))))
	}
	return values
}

// layersOf lists the kinds of the layers of a model.
func layersOf(m *config.Model) string {
	var kinds []string
	for _, list := range [][]config.Layer{m.Encoder, m.Decoder} {
		for _, l := range list {
			kinds = append(kinds, l.Kind)
		}
		kinds = append(kinds, "|")
	}
	return strings.Join(kinds, " ")
}

// partsOf lists the kinds of the layers and losses of a model.
func partsOf(m *config.Model) string {
	key := layersOf(m)
	for _, l := range m.Losses {
		key += " " + l.Kind
	}
	return key
}

// distinct returns the models without those that have the layers and losses of an earlier one and differ only in settings.
func distinct(models []*config.Model) []*config.Model {
	return unlike(models, func(m *config.Model) []string { return []string{partsOf(m)} })
}

// adding returns the models whose layers, or one of whose losses, no earlier model has.
func adding(models []*config.Model) []*config.Model {
	return unlike(models, func(m *config.Model) []string {
		keys := []string{layersOf(m)}
		for _, l := range m.Losses {
			keys = append(keys, l.Kind)
		}
		return keys
	})
}

// unlike returns the models that have a key that no earlier model has.
func unlike(models []*config.Model, keys func(*config.Model) []string) []*config.Model {
	seen := map[string]bool{}
	return slices.DeleteFunc(models, func(m *config.Model) bool {
		known := true
		for _, key := range keys(m) {
			known = known && seen[key]
			seen[key] = true
		}
		return known
	})
}

// valuesOf returns the number of values of the parameters of a model.
func valuesOf(m *graph.Model) (n int) {
	for _, p := range m.Parameters {
		n += len(p.Data)
	}
	return n
}

// built builds the graph of a model. A hook that lends parameters, such as a teacher, lends copies.
func built(t testing.TB, spec *config.Model) *graph.Model {
	t.Helper()
	m, err := graph.New(spec, shapeOf(t, spec))
	fatal.If(t, err)
	for name, h := range spec.Hooks {
		if _, lends := h.(hooks.Lender); lends {
			for _, p := range m.Parameters {
				m.Lent = append(m.Lent, &graph.Parameter{Path: name + "." + p.Path, Shape: p.Shape, Data: slices.Clone(p.Data), Frozen: true})
			}
		}
	}
	return m
}

// In float32 a large model is compared only if it adds layers or a loss.
func TestEveryShippedModelAgreesWithTheTapeMachine(t *testing.T) {
	const large = 1 << 19
	models, parts, added := shipped(t), distinct(shipped(t)), adding(shipped(t))
	if testing.Short() { // -short is set by the run under the race detector
		models = parts
	}
	shapes := map[string]bool{}
	for _, spec := range models {
		key := partsOf(spec)
		for _, p := range built(t, spec).Parameters {
			key += fmt.Sprint(p.Shape)
		}
		if shapes[key] { // the program of an earlier model, with other numbers
			continue
		}
		shapes[key] = true
		t.Run(spec.Name, func(t *testing.T) {
			t.Parallel()
			team := team.New(2)
			defer team.Close()
			m := built(t, spec)
			if testing.Short() && valuesOf(m) > large {
				t.Skip("a large model")
			}
			batch, singles := 5, 16
			if valuesOf(m) > large {
				batch, singles = 3, 5
			}
			double := newPair[float64](t, m, batch, team)
			double.step(t, 0, 1e-12)
			if testing.Short() || !slices.Contains(parts, spec) { // the model differs from an earlier one only in settings
				return
			}
			double.step(t, 1, 1e-12)
			if valuesOf(m) > large && !slices.Contains(added, spec) {
				return
			}
			single := newPair[float32](t, m, singles, team)
			for step := range 2 {
				single.step(t, step, 1e-5)
			}
		})
	}
}

// No shipped model has a foreign op, which would run on one thread, on copies, by its own Do method. Such an op would
// make the model slow without a message.
func TestTheEngineKnowsEveryOpOfTheShippedModels(t *testing.T) {
	if testing.Short() {
		t.Skip("runs nothing, so the race detector finds nothing")
	}
	for _, spec := range shipped(t) {
		m := built(t, spec)
		wantKnownOps(t, m)
	}
}

func wantKnownOps(t *testing.T, m *graph.Model) {
	t.Helper()
	requests := []graph.Request{{Batch: 5, Training: true}, {Batch: 5}, {Batch: 5, Want: []string{"code"}}}
	if len(m.Layout.Decoder) > 0 {
		requests = append(requests, graph.Request{Batch: 5, Given: []string{"code"}, Want: []string{"output"}})
	}
	for _, o := range requests {
		p, err := m.Program(o)
		fatal.If(t, err)
		translated, err := p.Module()
		fatal.If(t, err)
		for _, v := range translated.Values() {
			if _, unknown := v.Op.(ir.Foreign); unknown {
				t.Errorf("%s: %v runs through its own Do", m.Spec.Name, v.Op)
			}
		}
	}
}

// layered declares models with the layers on images and on tokens that no shipped model has.
const layered = `
[model.pooled]
dataset = "bars"
encoder = [
  { kind = "conv2d", filters = 4, groups = 1 },
  { kind = "instance_norm" },
  { kind = "elu" },
  { kind = "max_pool", kernel = 3, stride = 2, padding = "same" },
  { kind = "residual", layers = [{ kind = "layer_norm" }, { kind = "conv2d", filters = 4, groups = 2 }, { kind = "tanh" }] },
  { kind = "avg_pool" },
  { kind = "dense", units = 5, activation = "sigmoid" },
]
decoder = [
  { kind = "dense", units = 12 },
  { kind = "layer_norm" },
  { kind = "reshape", shape = [2, 2, 3] },
  { kind = "upsample" },
  { kind = "conv2d_transpose", filters = 2, kernel = 4, stride = 2, activation = "tanh" },
  { kind = "conv2d_transpose", filters = 1, padding = 1 },
]

[model.filtered]      # enough channels for Winograd's algorithm, in a batch of 5
dataset = "bars"
encoder = [
  { kind = "conv2d", filters = 64 },
  { kind = "tanh" },
  { kind = "conv2d", filters = 64 },
  { kind = "dense", units = 5, activation = "sigmoid" },
]

[model.grey]
dataset = "bars"
encoder = [
  { kind = "max_pool" },
  { kind = "upsample" },
  { kind = "residual", layers = [{ kind = "conv2d", filters = 1 }] },
  { kind = "layer_norm" },
  { kind = "avg_pool", kernel = 3, stride = 2, padding = 1 },
  { kind = "dense", units = 5, activation = "sigmoid" },
]

[model.tokens]
dataset = "bars"
encoder = [
  { kind = "attention", heads = 2, bias = true },
  { kind = "patches", size = 2 },
  { kind = "position" },
  { kind = "residual", layers = [{ kind = "attention", heads = 1 }, { kind = "token_dense", units = 4, activation = "tanh" }] },
  { kind = "plasticity" },
  { kind = "dense", units = 5, activation = "sigmoid" },
]
decoder = [{ kind = "tied", weight = "encoder.5.weight", activation = "tanh" }, { kind = "dense" }]

[model.tied]
dataset = "bars"
encoder = [{ kind = "dense", units = 7, activation = "tanh" }, { kind = "dense", units = 5 }, { kind = "plasticity", mean = 0.1 }]
decoder = [{ kind = "tied", weight = "encoder.1.weight" }, { kind = "tied" }, { kind = "leaky_relu" }]
loss = [{ kind = "mse" }, { kind = "weight_decay", weight = 0.01 }, { kind = "max_approximation", weight = 0.1 }]
`

func TestLayersOnImagesAndTokensAgreeWithTheTapeMachine(t *testing.T) {
	file, err := config.Load("models.toml", []byte(layered))
	fatal.If(t, err)
	for _, name := range file.Names() {
		t.Run(name, func(t *testing.T) {
			spec, err := file.Model(name)
			fatal.If(t, err)
			m := built(t, spec)
			threads, batches := []int{1, 2}, []int{1, 5}
			if testing.Short() { // -short is set by the run under the race detector
				threads, batches = []int{2}, []int{5}
			}
			for _, threads := range threads {
				team := team.New(threads)
				defer team.Close()
				for _, batch := range batches {
					double, single := newPair[float64](t, m, batch, team), newPair[float32](t, m, batch, team)
					for step := range 2 {
						double.step(t, step, 1e-12)
						single.step(t, step, 1e-5)
					}
				}
			}
			wantKnownOps(t, m)
		})
	}
}

// A causal sequence of more tokens than products take at once has the values and gradients of the tape machine, equal bytes in every run, and
// values of equal bytes on 1 and 2 threads.
func TestALongCausalSequenceAgreesWithTheTapeMachine(t *testing.T) {
	file, err := config.Load("models.toml", []byte(`
[model.long]
dataset = { grammar = 20, length = 300, tokens = "characters", validation = 0 }
encoder = [
  { kind = "embedding", vocabulary = 32, units = 6 },
  { kind = "position" },
  { kind = "transformer", causal = true, heads = 3, ratio = 1.0 },
  { kind = "attention", heads = 1, causal = true, position = "rotary" },
]
decoder = []
head.next = { from = "encoder.3", layers = [{ kind = "token_dense", units = 32 }] }
loss = [{ kind = "next_token", length = "length" }]
`))
	fatal.If(t, err)
	spec, err := file.Model("long")
	fatal.If(t, err)
	one, two := team.New(1), team.New(2)
	defer one.Close()
	defer two.Close()
	m := built(t, spec)
	newPair[float64](t, m, 2, two).step(t, 0, 1e-12)
	single := newPair[float32](t, m, 2, two)
	single.step(t, 0, 1e-5)
	other := newPair[float32](t, m, 2, two)
	for _, p := range []pair[float32]{single, other} {
		p.bind(t, 0)
		for i := range p.program.Parameters {
			copy(p.got.Parameter(i), other.reference.Parameter(i))
		}
		fatal.If(t, p.got.Run())
	}
	for i, b := range single.program.Parameters {
		expect.Slice(t, single.got.Gradient(i), other.got.Gradient(i), "two runs give different gradients of", b.Path)
	}
	next := func(on *team.Team) []float32 {
		program, err := m.Program(graph.Request{Batch: 2, Want: []string{"next"}})
		fatal.If(t, err)
		r, err := compileProgram[float32](program, on)
		fatal.If(t, err)
		fatal.If(t, r.Bind(0, sampled(m, program.Inputs[0], 0)))
		fatal.If(t, r.Run())
		return r.Tap(0)
	}
	expect.Slice(t, next(one), next(two), "1 and 2 threads give different values")
}

package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"gorgonia.org/tensor"
	"tessera/config"
	"tessera/graph"
	"tessera/internal/engine/ir"
	"tessera/internal/engine/ir/shard"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/parallel/collective"
	"tessera/internal/parallel/team"
)

// crew is a program compiled for one process and for the processes of a local group.
type crew[T ir.Float] struct {
	model   *graph.Model
	program *graph.Program
	alone   *Plan[T]
	parts   []*shard.Program
	members []*Plan[T]
}

// newCrew compiles the training program of m for a batch of images, on processes of one thread each.
func newCrew[T ir.Float](t testing.TB, m *graph.Model, batch, processes int) *crew[T] {
	t.Helper()
	p, err := m.Program(graph.Request{Batch: batch, Training: true, Dtype: dtypeOf[T]()})
	fatal.If(t, err)
	return crewOf[T](t, m, p, processes, nil)
}

// crewOf compiles a program. again builds the program once more for each process. It is needed for programs with ops of
// Gorgonia that have state, such as its max pooling, because two goroutines must not run the same op. If again is nil,
// the processes share the ops.
func crewOf[T ir.Float](t testing.TB, m *graph.Model, p *graph.Program, processes int, again func() *graph.Program) *crew[T] {
	t.Helper()
	c := &crew[T]{model: m, program: p}
	whole, err := p.Module()
	fatal.If(t, err)
	if c.alone, err = Compile[T](whole, nil); err != nil {
		t.Fatal(err)
	}
	for rank, group := range collective.Local(processes) {
		part, err := Partition(whole, rank, processes)
		fatal.If(t, err)
		own := separate(whole)
		if again != nil {
			if own, err = again().Module(); err != nil {
				t.Fatal(err)
			}
		}
		plan, err := CompileShared[T](own, nil, group)
		fatal.If(t, err)
		c.parts, c.members = append(c.parts, part), append(c.members, plan)
	}
	return c
}

// separate returns the program with copies of the parameters, as every process has its own.
func separate(m *ir.Module) *ir.Module {
	m = m.Clone()
	m.Parameters = slices.Clone(m.Parameters)
	for i := range m.Parameters {
		m.Parameters[i].Data = slices.Clone(m.Parameters[i].Data)
	}
	return m
}

// rows returns the part of values that process rank reads: its images, from both halves of the values if there are two
// views.
func (c *crew[T]) rows(values []T, rank, outer int) (part []T) {
	from, to := shard.Rows(c.program.Batch, rank, len(c.members))
	rest := len(values) / (outer * c.program.Batch)
	for i := range outer {
		first := i * c.program.Batch
		part = append(part, values[(first+from)*rest:(first+to)*rest]...)
	}
	return part
}

// bind binds the images and the noise of one batch to all programs.
func (c *crew[T]) bind(t testing.TB, batch uint64) {
	t.Helper()
	for i, in := range c.program.Inputs {
		values := ir.ParameterValues[T](sampled(c.model, in, batch))
		errs := []error{c.alone.Bind(i, values)}
		for rank, member := range c.members {
			part := values
			if n := shard.Views(in.Shape, c.program.Batch); n > 0 {
				part = c.rows(values, rank, n)
			}
			errs = append(errs, member.Bind(i, part))
		}
		fatal.If(t, errors.Join(errs...))
	}
}

// run runs the processes concurrently.
func (c *crew[T]) run(t testing.TB) {
	t.Helper()
	errs := make([]error, len(c.members))
	var all sync.WaitGroup
	for rank, member := range c.members {
		all.Go(func() { errs[rank] = member.Run() })
	}
	all.Wait()
	fatal.If(t, errors.Join(errs...))
}

// compare runs the program on one process and on several, and returns the differences.
func (c *crew[T]) compare(t testing.TB, tolerance float64) error {
	t.Helper()
	fatal.If(t, c.alone.Run())
	c.run(t)
	zero := 0.0
	for i := range c.program.Parameters {
		zero = max(zero, tolerance*norm(c.alone.Gradient(i)))
	}
	var wrong []error
	for rank, member := range c.members {
		of := func(name string) string { return fmt.Sprintf("process %d of %d: %s", rank, len(c.members), name) }
		for i, tap := range c.program.Taps {
			want := c.alone.Tap(i)
			if c.parts[rank].Parts[i] {
				want = c.rows(want, rank, 1)
			}
			wrong = append(wrong, differ(of(tap.Name), member.Tap(i), want, tolerance))
		}
		for i, b := range c.program.Parameters {
			if g := c.alone.Gradient(i); norm(g) > zero || norm(member.Gradient(i)) > zero {
				wrong = append(wrong, differ(of("gradient of "+b.Path), member.Gradient(i), g, tolerance))
			}
			wrong = append(wrong, differ(of(b.Path), member.Parameter(i), c.alone.Parameter(i), tolerance))
			if !slices.Equal(member.Gradient(i), c.members[0].Gradient(i)) || !slices.Equal(member.Parameter(i), c.members[0].Parameter(i)) {
				wrong = append(wrong, errors.New(of(b.Path)+": other bits than on process 0"))
			}
		}
	}
	return errors.Join(wrong...)
}

// descend moves the parameters of all programs along the negative gradients.
func (c *crew[T]) descend(rate T) {
	for _, plan := range append([]*Plan[T]{c.alone}, c.members...) {
		for i := range c.program.Parameters {
			w := plan.Parameter(i)
			for j, g := range plan.Gradient(i) {
				w[j] -= rate * g
			}
		}
	}
}

// Several processes together compute the same as one process, also if they have different numbers of images: sums over
// the batch, batch norm, contrastive losses and noise.
func TestProcessesTogetherComputeWhatOneDoes(t *testing.T) {
	const batch, small = 10, 1 << 19
	own, added := len(others(t)), adding(shipped(t))
	kinds := distinct(shipped(t))
	if testing.Short() {
		kinds = nil // the shipped models take long
	}
	for i, spec := range append(others(t), kinds...) {
		m := built(t, spec)
		if i >= own && valuesOf(m) > small && !slices.Contains(added, spec) {
			continue
		}
		t.Run(spec.Name, func(t *testing.T) {
			tolerance := 1e-12
			if has(spec, "contrastive_divergence") {
				tolerance = 1e-11 // a small difference of large energies
			}
			for processes := 2; processes <= 4; processes++ {
				large, race := valuesOf(m) > small, testing.Short() // -short is set by the run under the race detector
				if large && race || (large || race || i >= own) && processes != 3 {
					continue // 10 images on 3 processes is the hardest case; the models of this test have all kinds of layers
				}
				c := newCrew[float64](t, m, batch, processes)
				c.bind(t, 0)
				expect.NoError(t, c.compare(t, tolerance))
			}
		})
	}
}

// has reports whether a model has a loss of a kind.
func has(spec *config.Model, loss string) bool {
	return slices.ContainsFunc(spec.Losses, func(l config.Loss) bool { return l.Kind == loss })
}

// others returns models with layers and losses that no shipped model has.
func others(t *testing.T) (models []*config.Model) {
	t.Helper()
	file, err := config.Load("models.toml", []byte(layered+unusual))
	fatal.If(t, err)
	for _, name := range file.Names() {
		spec, err := file.Model(name)
		fatal.If(t, err)
		models = append(models, spec)
	}
	return models
}

// unusual declares models whose objective depends on more of the whole batch, or on derivatives of derivatives of
// layers.
const unusual = `
[model.sparse]
dataset = "bars"
encoder = [
  { kind = "conv2d", filters = 3 }, { kind = "batch_norm" }, { kind = "gaussian_noise" }, { kind = "max_pool" },
  { kind = "dense", units = 7 }, { kind = "batch_norm" }, { kind = "dropout" }, { kind = "dense", units = 6, activation = "sigmoid" },
]
decoder = [{ kind = "max_plus", units = 64 }, { kind = "reshape", shape = [8, 8] }]
loss = [{ kind = "mae" }, { kind = "kl", weight = 0.1 }, { kind = "mean_hoyer" }, { kind = "hoyer", weight = 0.2 }, { kind = "contractive", weight = 0.01 }]

[model.joined]
dataset = "bars"
encoder = [
  { kind = "upsample_bilinear" }, { kind = "concat", layers = [{ kind = "conv2d", filters = 2 }] }, { kind = "prelu" },
  { kind = "global_pool", value = "max" }, { kind = "top_k", k = 2 }, { kind = "dense", units = 4, activation = "softmax" },
]
loss = [{ kind = "huber" }, { kind = "l1" }, { kind = "overlap" }]

[model.similar]
dataset = "bars"
encoder = [{ kind = "conv2d", filters = 3 }, { kind = "dropout" }, { kind = "batch_norm" }, { kind = "dense", units = 6, activation = "sigmoid" }]
decoder = [{ kind = "dense" }]
head.projection.layers = [{ kind = "dense", units = 4 }]
view = [{ augment = [{ kind = "noise" }] }]
loss = [{ kind = "ssim" }, { kind = "nt_xent" }, { kind = "log" }]
`

// Ops outside of any layer are also computed as on one process: ops that the partition does not support, sums and
// maxima along any axis, and batched products. An input contains images if its first axis has the length of the first
// axis of the first input.
func TestAnyProgramRunsOnSeveralProcesses(t *testing.T) {
	for name, build := range anything {
		t.Run(name, func(t *testing.T) {
			for processes := 2; processes <= 3; processes++ {
				made := func() *graph.Program {
					p := newProgram(t, tensor.Float64)
					build(p)
					p.Batch = p.Inputs[0].Shape[0]
					return p.Program
				}
				c := crewOf[float64](t, nil, made(), processes, made)
				c.bind(t, 0)
				expect.NoError(t, c.compare(t, 1e-12), c.parts[0])
			}
		})
	}
}

// Only contrastive losses, which compare every image with every other one, gather values, code books, whose dead entries are
// replaced by tokens of the whole batch, and persistent chains, whose number differs from that of the images. The partition supports every other op of the shipped models, so no op runs on
// the whole batch as a fallback.
func TestOnlyContrastiveLossesGather(t *testing.T) {
	if testing.Short() {
		t.Skip("runs nothing, so the race detector finds nothing")
	}
	for _, spec := range append(shipped(t), others(t)...) {
		m := built(t, spec)
		p, err := m.Program(graph.Request{Batch: 12, Training: true})
		fatal.If(t, err)
		whole, err := p.Module()
		fatal.If(t, err)
		part, err := Partition(whole, 1, 3)
		fatal.If(t, err)
		contrastive, machine := has(spec, "nt_xent"), has(spec, "contrastive_divergence")
		part.Gathers = slices.DeleteFunc(part.Gathers, func(g shard.Gather) bool {
			return strings.HasPrefix(g.Reader, "refill{") || strings.HasPrefix(g.Reader, "least{") || machine && strings.HasPrefix(g.Reader, "columns{")
		})
		if has(spec, "contrastive") { // gathers one of its values, and the cosines, whose rows and columns it normalises
			if len(part.Gathers) != 2 || part.Gathers[0].Fallback {
				t.Errorf("%s: gathers %+v", spec.Name, part.Gathers)
			}
			continue
		}
		if got := len(part.Gathers); got > 1 || got == 1 && (!contrastive || part.Gathers[0].Fallback) {
			t.Errorf("%s: gathers %+v", spec.Name, part.Gathers)
		}
	}
}

// Training on several processes differs from training on one process only by rounding. This also holds for a batch that
// gives the processes different numbers of images.
func TestTwentyStepsOfProcessesAreThoseOfOne(t *testing.T) {
	steps := 20
	if testing.Short() { // -short is set by the run under the race detector
		steps = 2
	}
	for name, processes := range map[string][]int{"shallow-nonneg-kl": {2, 4}, "simclr": {3}} {
		for _, n := range processes {
			c := newCrew[float64](t, shippedModel(t, name), 6, n)
			for step := range steps {
				c.bind(t, uint64(step))
				fatal.If(t, c.compare(t, 1e-12), name, "step", step+1)
				c.descend(0.05)
			}
		}
	}
}

func shippedModel(t testing.TB, name string) *graph.Model {
	t.Helper()
	models := shipped(t)
	spec := models[slices.IndexFunc(models, func(m *config.Model) bool { return m.Name == name })]
	m := built(t, spec)
	return m
}

// The average of the gradients of independent shards belongs to another objective. The tests above would detect it.
func TestAveragesOfGradientsAreAnotherObjective(t *testing.T) {
	const batch, processes = 12, 2
	m := shippedModel(t, "shallow-nonneg-kl")
	c := newCrew[float64](t, m, batch, processes)
	c.bind(t, 0)
	fatal.If(t, c.compare(t, 1e-12))
	averages := make([][]float64, len(c.program.Parameters))
	for rank := range processes {
		shard := newCrew[float64](t, m, batch/processes, 1)
		images := c.rows(c.alone.inputs[0].data, rank, 1)
		fatal.If(t, errors.Join(shard.alone.Bind(0, images), shard.alone.Run()))
		for i := range averages {
			if averages[i] == nil {
				averages[i] = make([]float64, len(shard.alone.Gradient(i)))
			}
			for j, g := range shard.alone.Gradient(i) {
				averages[i][j] += g / processes
			}
		}
	}
	worst := 0.0
	for i, average := range averages {
		worst = max(worst, distance(average, c.alone.Gradient(i))/norm(c.alone.Gradient(i)))
	}
	if worst < 1e-3 {
		t.Errorf("averaged gradients differ by %.2g only", worst)
	}
}

// Teams of several threads divide products and chains differently.
func TestProcessesOfSeveralThreadsAgree(t *testing.T) {
	for _, name := range []string{"shallow-nonneg-kl", "simclr"} {
		m := shippedModel(t, name)
		c := newCrew[float32](t, m, 64, 2)
		for rank, group := range collective.Local(2) {
			team := team.New(2)
			defer team.Close()
			whole, err := c.program.Module()
			fatal.If(t, err)
			if c.members[rank], err = CompileShared[float32](separate(whole), team, group); err != nil {
				t.Fatal(err)
			}
		}
		c.bind(t, 0)
		expect.NoError(t, c.compare(t, 1e-5), name)
	}
}

// If a batch has fewer images than there are processes, every process computes the whole batch.
func TestFewerImagesThanProcesses(t *testing.T) {
	c := newCrew[float64](t, shippedModel(t, "shallow-nonneg-kl"), 2, 3)
	c.bind(t, 0)
	expect.NoError(t, c.compare(t, 1e-12))
}

func TestStepsOfProcessesDoNotAllocate(t *testing.T) {
	c := newCrew[float32](t, shippedModel(t, "shallow-nonneg-kl"), 8, 1)
	whole, err := c.program.Module()
	fatal.If(t, err)
	var all sync.WaitGroup
	begin, plans := make(chan bool), []*Plan[float32]{nil, nil}
	for rank, group := range collective.Local(2) {
		if plans[rank], err = CompileShared[float32](separate(whole), nil, group); err != nil {
			t.Fatal(err)
		}
	}
	all.Go(func() {
		for range begin {
			_ = plans[1].Run()
			begin <- true
		}
	})
	got := testing.AllocsPerRun(20, func() {
		begin <- true
		_ = plans[0].Run()
		<-begin
	})
	close(begin)
	all.Wait()
	expect.Equal(t, got, 0, "a step allocates", got, "times")
}

// A process cannot run a part of a program without its group.
func TestAPartOfAProgramNeedsItsGroup(t *testing.T) {
	c := newCrew[float32](t, shippedModel(t, "shallow"), 4, 2)
	expect.Error(t, expect.Err(Compile[float32](c.parts[0].Module, nil)), "group")
	expect.AnyError(t, expect.Err(Partition(c.parts[0].Module, 0, 2)), "a part is partitioned again")
}

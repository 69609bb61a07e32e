package laws

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"sync"

	"gorgonia.org/gorgonia"
	"tessera/config/part/table"
	"tessera/graph"
	"tessera/graph/ops"
	"tessera/graph/tape"
	"tessera/internal/engine"
	"tessera/internal/engine/ir"
	"tessera/internal/engine/ir/shard"
	"tessera/internal/lists"
	"tessera/internal/parallel/collective"
	"tessera/internal/parallel/team"
	"tessera/internal/random"
	"tessera/laws/gradcheck"
)

// backend runs a graph: Gorgonia's tape machine or the engine.
type backend string

const (
	onTape   backend = "tape"
	onEngine backend = "engine"
)

// backends lists the back ends. The first one is the tape machine, with which the others are compared.
var backends = []backend{onTape, onEngine}

// workers is the number of threads of the engine. The engine's own tests cover the division of work.
var workers = sync.OnceValue(func() *team.Team { return team.New(1) })

// tensors contains values by name. The values of a program in float32 are converted to float64.
type tensors map[string][]float64

// names returns the names in alphabetical order.
func (t tensors) names() []string { return slices.Sorted(maps.Keys(t)) }

// near returns an error that names the first value of t whose difference from want exceeds tolerance, relative to 1 plus the
// largest finite absolute value of the tensor. All NaN are equal.
func (t tensors) near(want tensors, tolerance float64) error {
	if !slices.Equal(t.names(), want.names()) {
		return fmt.Errorf("gives %q, want %q", t.names(), want.names())
	}
	for _, name := range t.names() {
		if err := near(t[name], want[name], tolerance); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func near(got, want []float64, tolerance float64) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d values, want %d", len(got), len(want))
	}
	unit := 1.0
	for _, v := range want {
		if size := 1 + math.Abs(v); !notFinite(size) {
			unit = max(unit, size)
		}
	}
	for i, v := range got {
		switch d := math.Abs(v - want[i]); {
		case d <= tolerance*unit, v == want[i], v != v && want[i] != want[i]:
		case notFinite(d):
			return fmt.Errorf("element %d is %v, want %v", i, v, want[i])
		default:
			return fmt.Errorf("element %d is %v, want %v: off by %.1e", i, v, want[i], d)
		}
	}
	return nil
}

// finite returns an error that names the first value that is not finite.
func (t tensors) finite() error {
	for _, name := range t.names() {
		if i := slices.IndexFunc(t[name], notFinite); i >= 0 {
			return fmt.Errorf("%s: element %d is %v", name, i, t[name][i])
		}
	}
	return nil
}

func converted[T, U ir.Float](values []U) []T {
	return lists.Map(values, func(v U) T { return T(v) })
}

// rig is an expression with its derivatives on a back end, in one precision. A run gets all inputs, including parameters and
// state, and returns all results. Runs with equal inputs must give equal results.
type rig struct {
	shape   []int // shape of the output
	leaves  []leaf
	program *graph.Program
	epsilon float64                              // tolerance for a different order of operations in this precision
	run     func(given tensors) (tensors, error) // runs the program, and returns copies of the output, of the derivatives and of the state
	data    func(i int) tensors                  // returns the data of the i-th run
}

// leaf is an input of a rig.
type leaf struct {
	name             string
	values           []float32
	parameter, batch bool // as in [gradcheck.Leaf]
	sampler          ops.Sampler
}

// compile compiles an expression. data returns the data of each run. State is updated only in training.
func compile[T ir.Float](e gradcheck.Expression[T], on backend, training bool, data func(i int) tensors) (*rig, error) {
	var output *gorgonia.Node
	built, err := gradcheck.Build(func(b *gradcheck.Builder[T]) (*gorgonia.Node, error) {
		var err error
		if output, err = e(b); err != nil || output.IsScalar() {
			return output, err
		}
		return gradcheck.Scalar(func(*gradcheck.Builder[T]) (*gorgonia.Node, error) { return output, nil })(b)
	}, true)
	if err != nil {
		return nil, err
	}
	r := &rig{shape: slices.Clone(output.Shape()), program: &graph.Program{Graph: built.Graph, Dtype: built.Dtype}, epsilon: 1e-12, data: data}
	if _, single := any(T(0)).(float32); single {
		r.epsilon = 1e-6
	}
	r.tap("output", output)
	for _, l := range built.Leaves {
		values := converted[float32](l.Values)
		r.leaves = append(r.leaves, leaf{l.Name, values, l.Parameter, l.Batch, l.Sampler})
		switch {
		case !l.Parameter:
			r.program.Inputs = append(r.program.Inputs, graph.Input{Name: l.Name, Node: l.Node, Shape: l.Node.Shape(), Sampler: l.Sampler})
			if l.Derivative != nil {
				r.tap("gradient of "+l.Name, l.Derivative)
			}
		case l.Used: // a program lists the parameters that its graph reads
			r.program.Parameters = append(r.program.Parameters, graph.Binding{Node: l.Node, Gradient: l.Derivative,
				Parameter: &graph.Parameter{Path: l.Name, Shape: l.Node.Shape(), Data: values, Trainable: !l.Fixed}})
		}
	}
	for _, b := range r.program.Parameters {
		if n := built.Updates[b.Path]; n != nil && training {
			r.program.Updates = append(r.program.Updates, graph.Update{Parameter: b.Parameter, Node: n})
		}
	}
	var runner ir.Runner[T]
	switch on {
	case onTape:
		runner, err = tape.Compile[T](r.program)
	case onEngine:
		var m *ir.Module
		if m, err = r.program.Module(); err == nil {
			runner, err = engine.Compile[T](m, workers())
		}
	}
	r.run = runOn(r.program, runner)
	return r, err
}

func (r *rig) tap(name string, n *gorgonia.Node) {
	r.program.Taps = append(r.program.Taps, graph.Tap{Name: name, Node: n})
}

func runOn[T ir.Float](p *graph.Program, runner ir.Runner[T]) func(given tensors) (tensors, error) {
	return func(given tensors) (tensors, error) {
		for i, in := range p.Inputs {
			if err := runner.Bind(i, converted[T](given[in.Name])); err != nil {
				return nil, err
			}
		}
		for i, b := range p.Parameters {
			copy(runner.Parameter(i), converted[T](given[b.Path]))
		}
		if err := runner.Run(); err != nil {
			return nil, err
		}
		got := tensors{}
		for i, t := range p.Taps {
			got[t.Name] = converted[float64](runner.Tap(i))
		}
		for i, b := range p.Parameters {
			if b.Gradient != nil {
				got["gradient of "+b.Path] = converted[float64](runner.Gradient(i))
			}
			got[b.Path+" after the run"] = converted[float64](runner.Parameter(i))
		}
		return got, nil
	}
}

// given returns the inputs of the i-th run: new data and noise, perturbed parameters, and unchanged values of other leaves.
// They are the same in both precisions.
func (r *rig) given(i int) tensors {
	given := tensors{}
	for _, l := range r.leaves {
		values, stream := slices.Clone(l.values), random.Stream(gradcheck.Seed, l.name, uint64(i))
		switch {
		case l.sampler != nil:
			l.sampler.Sample(values, stream)
		case l.parameter && i > 0:
			for j := range values {
				values[j] += float32(stream.Float64() / 4)
			}
		}
		given[l.name] = converted[float64](values)
	}
	maps.Copy(given, r.data(i))
	return given
}

// runs is the number of runs of a compiled program per law, each with other inputs, noise and parameters.
const runs = 2

// eachRun checks the results of every run.
func (r *rig) eachRun(check func(given, got tensors) error) error {
	for i := range runs {
		given := r.given(i)
		got, err := r.run(given)
		if err == nil {
			err = check(given, got)
		}
		if err != nil {
			return fmt.Errorf("run %d: %w", i+1, err)
		}
	}
	return nil
}

// stand is a part under test on one back end.
type stand struct {
	on      backend
	compile func(on backend, single bool) (*rig, error) // compiles a new part with the same settings, in float32 if single
	double  func() (*rig, error)                        // compiled once, for all laws of a trial
	single  func() (*rig, error)                        // the same program in float32
	tape    func() (*rig, error)                        // the program double on the tape machine
}

// newStands returns the stands of a part on all back ends. first compiles the part of [stand.double].
func newStands(first func(on backend) (*rig, error), compile func(on backend, single bool) (*rig, error)) (all []stand) {
	for _, on := range backends {
		all = append(all, stand{on: on, compile: compile,
			double: sync.OnceValues(func() (*rig, error) { return first(on) }),
			single: sync.OnceValues(func() (*rig, error) { return compile(on, true) })})
		all[len(all)-1].tape = all[0].double
	}
	return all
}

// eachRun checks the results of every run in float64.
func (s stand) eachRun(check func(given, got tensors) error) error {
	r, err := s.double()
	if err != nil {
		return err
	}
	return r.eachRun(check)
}

// inBoth runs a check of a part in float64 and in float32.
func (s stand) inBoth(check func(r *rig) error) error {
	r, err := s.double()
	if err == nil {
		err = check(r)
	}
	if err != nil {
		return err
	}
	if r, err = s.single(); err == nil {
		err = check(r)
	}
	if err != nil {
		return fmt.Errorf("float32: %w", err)
	}
	return nil
}

// forgets checks that repeated runs of a compiled program give the same results as separate runs. Only the state of a layer
// persists between runs, and each run gets it as an input.
func (s stand) forgets() error {
	used, err := s.double()
	if err != nil {
		return err
	}
	alone, err := s.compile(s.on, false)
	if err != nil {
		return err
	}
	want, err := alone.run(alone.given(1))
	if err != nil {
		return err
	}
	first, err := used.run(used.given(0))
	if err != nil {
		return err
	}
	for run, expected := range []tensors{want, first} { // the second run, then the first one again
		got, err := used.run(used.given(1 - run))
		if err == nil {
			err = got.near(expected, 0)
		}
		if err != nil {
			return fmt.Errorf("run %d, and the same run as the first: %w", run+2, err)
		}
	}
	return nil
}

// likeTape returns an error unless the engine computes the same results as the tape machine.
func (s stand) likeTape() error {
	if s.on == onTape {
		return nil
	}
	tape, err := s.tape()
	if err != nil {
		return err
	}
	return s.likeRig(tape, 1e-12)
}

// rounds compares float64 with float32. The tolerance allows for divisions by differences of nearly equal values.
func (s stand) rounds() error {
	single, err := s.single()
	if err != nil {
		return err
	}
	return s.likeRig(single, 1e-4)
}

// likeRig compares the results in float64 with those of another rig.
func (s stand) likeRig(other *rig, tolerance float64) error {
	return s.eachRun(func(given, got tensors) error {
		want, err := other.run(given)
		if err != nil {
			return err
		}
		return got.near(want, tolerance)
	})
}

// batches lists the numbers of images or rows in the trials: one, and the least number that two processes divide unequally.
var batches = []int{1, 3}

// divided compares a batch on one process with the same batch on two processes, which have unequal numbers of its images. It
// tests the declared [ir.Division] of the part's ops.
func (s stand) divided(images int) error {
	if s.on == onTape || images < 3 {
		return nil
	}
	r, err := s.double()
	if err != nil {
		return err
	}
	c, err := s.newCrew(r, images, 2)
	if err != nil {
		return err
	}
	return r.eachRun(func(given, want tensors) error {
		got, err := c.run(given)
		if err != nil {
			return err
		}
		for rank := range got {
			if err := got[rank].near(c.of(want, rank), 1e-12); err != nil {
				return fmt.Errorf("process %d of %d with %d images: %w", rank+1, len(got), images, err)
			}
		}
		return nil
	})
}

// crew is a rig that several processes run together.
type crew struct {
	program *graph.Program
	members []func(given tensors) (tensors, error)
	parts   []*shard.Program
}

// newCrew compiles a rig for every process. A foreign op may have state: each process then gets a separate program with
// separate ops.
func (s stand) newCrew(r *rig, images, processes int) (*crew, error) {
	c := &crew{program: divisible(r, images)}
	m, err := c.program.Module()
	if err != nil {
		return nil, err
	}
	foreign := slices.ContainsFunc(m.Values(), func(v *ir.Value) bool { _, is := v.Op.(ir.Foreign); return is })
	for rank, group := range collective.Local(processes) {
		if rank > 0 && foreign {
			other, err := s.compile(onEngine, false)
			if err != nil {
				return nil, err
			}
			if m, err = divisible(other, images).Module(); err != nil {
				return nil, err
			}
		}
		part, err := engine.Partition(m, rank, processes)
		if err != nil {
			return nil, err
		}
		plan, err := engine.CompileShared[float64](m, nil, group)
		if err != nil {
			return nil, err
		}
		c.parts = append(c.parts, part)
		c.members = append(c.members, runOn(c.program, plan))
	}
	return c, nil
}

// divisible returns the program of a rig with the size of its batch set.
func divisible(r *rig, images int) *graph.Program {
	program := *r.program
	program.Batch = images
	return &program
}

// run runs every process on its images of the inputs, and returns the results of the processes.
func (c *crew) run(given tensors) ([]tensors, error) {
	got, errs := make([]tensors, len(c.members)), make([]error, len(c.members))
	var all sync.WaitGroup
	for rank, run := range c.members {
		own := maps.Clone(given)
		for _, in := range c.program.Inputs {
			own[in.Name] = c.images(given[in.Name], rank, shard.Views(in.Shape, c.program.Batch))
		}
		all.Go(func() { got[rank], errs[rank] = run(own) })
	}
	all.Wait()
	return got, errors.Join(errs...)
}

// of returns the results that a process should compute. A tap that contains only the images of the process is reduced to these
// images; other results are unchanged.
func (c *crew) of(want tensors, rank int) tensors {
	own := maps.Clone(want)
	for i, tap := range c.program.Taps {
		if c.parts[rank].Parts[i] {
			own[tap.Name] = c.images(want[tap.Name], rank, 1)
		}
	}
	return own
}

// images returns a process's images of values that contain one or two views of the batch; without a view, all values.
func (c *crew) images(values []float64, rank, views int) (own []float64) {
	if views == 0 {
		return values
	}
	from, to := shard.Rows(c.program.Batch, rank, len(c.members))
	for half := range slices.Chunk(values, len(values)/views) {
		image := len(half) / c.program.Batch
		own = append(own, half[from*image:to*image]...)
	}
	return own
}

// Set assigns value to the setting of part whose TOML key is key. part is a pointer to a struct, whose embedded structs are
// searched too.
func Set(part any, key string, value any) error {
	fields := table.Fields(part)
	i := slices.IndexFunc(fields, func(f table.Field) bool { return f.Key == key })
	if i < 0 {
		return fmt.Errorf("%T has no key %q", part, key)
	}
	field, v := fields[i].Value, reflect.ValueOf(value)
	if t, ok := field.Addr().Interface().(interface{ FromTOML(any) error }); ok && v.Type() != field.Type() {
		if v.CanInt() {
			value = v.Int() // as TOML is read
		}
		return t.FromTOML(value)
	}
	if v.Type().AssignableTo(field.Type()) {
		field.Set(v)
		return nil
	}
	if v.Kind() != field.Kind() && !(v.CanInt() && field.CanFloat()) {
		return fmt.Errorf("%T: %s: got %T, want %s", part, key, value, field.Type())
	}
	field.Set(v.Convert(field.Type()))
	return nil
}

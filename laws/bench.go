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
	"tessera/engine"
	"tessera/engine/ir"
	"tessera/engine/ir/shard"
	"tessera/graph"
	"tessera/graph/tape"
	"tessera/internal/random"
	"tessera/laws/gradcheck"
	"tessera/parallel/collective"
	"tessera/parallel/team"
)

// backend runs a graph: Gorgonia's tape machine or the engine.
type backend string

const (
	onTape   backend = "tape"
	onEngine backend = "engine"
)

var backends = []backend{onTape, onEngine}

// workers are the engine's threads. The engine's tests cover the division of work.
var workers = sync.OnceValue(func() *team.Team { return team.New(1) })

// tensors are values by name.
type tensors[T ir.Float] map[string][]T

// rig is an expression with its derivatives on a back end. A run gets all inputs, including parameters and state, and
// returns all results. Runs with equal inputs must give equal results.
type rig[T ir.Float] struct {
	shape   []int // of the output
	leaves  []*gradcheck.Leaf[T]
	program *graph.Program
	runner  ir.Runner[T]
}

// newRig compiles an expression. State is only updated in training.
func newRig[T ir.Float](e gradcheck.Expression[T], on backend, training bool) (*rig[T], error) {
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
	r := &rig[T]{shape: slices.Clone(output.Shape()), leaves: built.Leaves,
		program: &graph.Program{Graph: built.Graph, Dtype: built.Dtype}}
	r.tap("output", output)
	for _, l := range built.Leaves {
		r.add(l)
	}
	for _, b := range r.program.Parameters {
		if n := built.Updates[b.Path]; n != nil && training {
			r.program.Updates = append(r.program.Updates, graph.Update{Parameter: b.Parameter, Node: n})
		}
	}
	switch on {
	case onTape:
		r.runner, err = tape.Compile[T](r.program)
	case onEngine:
		var m *ir.Module
		if m, err = r.program.Module(); err == nil {
			r.runner, err = engine.Compile[T](m, workers())
		}
	}
	return r, err
}

func (r *rig[T]) tap(name string, n *gorgonia.Node) {
	r.program.Taps = append(r.program.Taps, graph.Tap{Name: name, Node: n, Shape: slices.Clone(n.Shape())})
}

// add makes a leaf an input or a parameter of the program.
func (r *rig[T]) add(l *gradcheck.Leaf[T]) {
	p := r.program
	switch {
	case !l.Parameter:
		p.Inputs = append(p.Inputs, graph.Input{Name: l.Name, Node: l.Node, Shape: l.Node.Shape(), Sampler: l.Sampler})
		if l.Derivative != nil {
			r.tap("gradient of "+l.Name, l.Derivative)
		}
	case l.Used: // a program lists what its graph reads
		p.Parameters = append(p.Parameters, graph.Binding{Node: l.Node, Gradient: l.Derivative,
			Parameter: &graph.Parameter{Path: l.Name, Shape: l.Node.Shape(), Data: converted[float32](l.Values), Trainable: !l.Fixed}})
	}
}

// given returns the inputs of the i-th run: new noise, perturbed parameters, and unchanged values of other leaves. They are
// the same in both precisions.
func (r *rig[T]) given(i int) tensors[T] {
	given := tensors[T]{}
	for _, l := range r.leaves {
		values, stream := converted[float32](l.Values), random.Stream(gradcheck.Seed, l.Name, uint64(i))
		switch {
		case l.Sampler != nil:
			l.Sampler.Sample(values, stream)
		case l.Parameter && i > 0:
			for j := range values {
				values[j] += float32(stream.Float64() / 4)
			}
		}
		given[l.Name] = converted[T](values)
	}
	return given
}

// run returns copies of the output, of the derivatives and of the state after the run.
func (r *rig[T]) run(given tensors[T]) (tensors[T], error) {
	for i, in := range r.program.Inputs {
		if err := r.runner.Bind(i, given[in.Name]); err != nil {
			return nil, err
		}
	}
	for i, b := range r.program.Parameters {
		copy(r.runner.Parameter(i), given[b.Path])
	}
	if err := r.runner.Run(); err != nil {
		return nil, err
	}
	got := tensors[T]{}
	for i, t := range r.program.Taps {
		got[t.Name] = slices.Clone(r.runner.Tap(i))
	}
	for i, b := range r.program.Parameters {
		if b.Gradient != nil {
			got["gradient of "+b.Path] = slices.Clone(r.runner.Gradient(i))
		}
		got[b.Path+" after the run"] = slices.Clone(r.runner.Parameter(i))
	}
	return got, nil
}

// names are in alphabetical order.
func (t tensors[T]) names() []string { return slices.Sorted(maps.Keys(t)) }

// near returns an error that names the first value of t whose difference from want exceeds tolerance, relative to 1 plus the
// largest absolute value of the tensor. All NaN are equal.
func (t tensors[T]) near(want tensors[T], tolerance float64) error {
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

func near[T ir.Float](got, want []T, tolerance float64) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d values, want %d", len(got), len(want))
	}
	unit := 1.0
	for _, v := range want {
		unit = max(unit, 1+math.Abs(float64(v)))
	}
	for i, v := range got {
		d := math.Abs(float64(v) - float64(want[i]))
		if !(d <= tolerance*unit) && (v == v || want[i] == want[i]) {
			return fmt.Errorf("element %d is %v, want %v: off by %.1e", i, v, want[i], d)
		}
	}
	return nil
}

// finite returns an error that names the first value that is not.
func (t tensors[T]) finite() error {
	for _, name := range t.names() {
		for i, v := range t[name] {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				return fmt.Errorf("%s: element %d is %v", name, i, v)
			}
		}
	}
	return nil
}

// of returns the values in another precision.
func of[T, U ir.Float](t tensors[U]) tensors[T] {
	other := tensors[T]{}
	for name, values := range t {
		other[name] = converted[T](values)
	}
	return other
}

func converted[T, U ir.Float](values []U) []T {
	list := make([]T, len(values))
	for i, v := range values {
		list[i] = T(v)
	}
	return list
}

// runs is the number of runs of a compiled program per law, each with other inputs, noise and parameters.
const runs = 2

// bench is a rig with its data.
type bench[T ir.Float] struct {
	*rig[T]
	data func(i int) tensors[T] // of the i-th run
}

// given draws the inputs of the i-th run.
func (b bench[T]) given(i int) tensors[T] {
	given := b.rig.given(i)
	maps.Copy(given, b.data(i))
	return given
}

// eachRun checks the results of every run.
func (b bench[T]) eachRun(check func(given, got tensors[T]) error) error {
	for i := range runs {
		given := b.given(i)
		got, err := b.run(given)
		if err == nil {
			err = check(given, got)
		}
		if err != nil {
			return fmt.Errorf("run %d: %w", i+1, err)
		}
	}
	return nil
}

// agree runs two benches and compares their results up to a tolerance.
func agree[T, U ir.Float](b bench[T], want bench[U], tolerance float64) error {
	return b.eachRun(func(given, got tensors[T]) error {
		other, err := want.run(of[U](given))
		if err != nil {
			return err
		}
		return got.near(of[T](other), tolerance)
	})
}

// stand is a part under test on one back end.
type stand struct {
	on     backend
	fresh  func(on backend) (bench[float64], error) // compiles a new part with the same settings
	double func() (bench[float64], error)           // compiled once, for all laws of a trial
	single func() (bench[float32], error)           // the same in float32
}

func newStand(on backend, double func(on backend) (bench[float64], error), single func(on backend) (bench[float32], error)) stand {
	return stand{on, double,
		sync.OnceValues(func() (bench[float64], error) { return double(on) }),
		sync.OnceValues(func() (bench[float32], error) { return single(on) })}
}

// eachRun checks the results of every run in float64.
func (s stand) eachRun(check func(given, got tensors[float64]) error) error {
	b, err := s.double()
	if err != nil {
		return err
	}
	return b.eachRun(check)
}

// forgets tests that repeated runs of a compiled program give the same results as separate runs. Only the state of a layer
// persists between runs, and each run gets it as an input.
func (s stand) forgets() error {
	used, err := s.double()
	if err != nil {
		return err
	}
	alone, err := s.fresh(s.on)
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
	for run, expected := range []tensors[float64]{want, first} { // the second run, then the first one again
		got, err := used.run(used.given(1 - run))
		if err != nil {
			return err
		}
		if err := got.near(expected, 0); err != nil {
			return fmt.Errorf("run %d, and the same run as the first: %w", run+2, err)
		}
	}
	return nil
}

// likeTape compares the engine with the tape machine.
func (s stand) likeTape() error {
	if s.on == onTape {
		return nil
	}
	b, err := s.double()
	if err != nil {
		return err
	}
	tape, err := s.fresh(onTape)
	if err != nil {
		return err
	}
	return agree(b, tape, 1e-12)
}

// rounds compares float32 with float64. The tolerance allows for divisions by differences of nearly equal values.
func (s stand) rounds() error {
	single, err := s.single()
	if err != nil {
		return err
	}
	double, err := s.double()
	if err != nil {
		return err
	}
	return agree(single, double, 1e-4)
}

// batches are the numbers of images or rows in the trials.
var batches = []int{1, 2, 5}

// trials is a kit of laws for parts that run as graphs. C is one trial of a part, with an input, a batch size, a mode and a
// back end. All laws of a trial share its compiled programs.
type trials[T any, C fmt.Stringer] struct {
	laws []trialLaw[C]
	each func(fresh func() T, try func(c C)) error
}

// trialLaw is one law for a part in a trial.
type trialLaw[C any] struct {
	name   string
	broken func(c C) error // returns nil if the part obeys the law
}

// Names implements [Kit].
func (k trials[T, C]) Names() []string {
	names := make([]string, len(k.laws))
	for i, law := range k.laws {
		names[i] = law.name
	}
	return names
}

// Test implements [Kit]. For every law it returns the error of the first failing trial. A part that cannot run breaks all
// laws.
func (k trials[T, C]) Test(fresh func() T) map[string]error {
	broken := map[string]error{}
	err := k.each(fresh, func(c C) {
		for _, law := range k.laws {
			if broken[law.name] != nil {
				continue
			}
			if err := law.broken(c); err != nil {
				broken[law.name] = fmt.Errorf("%v: %w", c, err)
			}
		}
	})
	for _, law := range k.laws {
		if err != nil {
			broken[law.name] = err
		}
	}
	return broken
}

// Set assigns value to the setting of part whose TOML key is key. part is a pointer to a struct, whose embedded structs are
// searched too.
func Set(part any, key string, value any) error {
	field, ok := setting(reflect.ValueOf(part).Elem(), key)
	if !ok {
		return fmt.Errorf("%T has no key %q", part, key)
	}
	v := reflect.ValueOf(value)
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

func setting(part reflect.Value, key string) (reflect.Value, bool) {
	for i := range part.NumField() {
		f := part.Type().Field(i)
		if f.Tag.Get("toml") == key {
			return part.Field(i), true
		}
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			if v, ok := setting(part.Field(i), key); ok {
				return v, true
			}
		}
	}
	return reflect.Value{}, false
}

// divided compares a batch on one process with the same batch on two processes, which have unequal numbers of its images. It
// tests the declared [ir.Division] of the part's ops.
func (s stand) divided(images int) error {
	if s.on == onTape || images < 3 {
		return nil
	}
	b, err := s.double()
	if err != nil {
		return err
	}
	c, err := s.newCrew(b.rig, images, 2)
	if err != nil {
		return err
	}
	return b.eachRun(func(given, want tensors[float64]) error {
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

// crew is a rig on several processes.
type crew struct {
	program *graph.Program
	members []*rig[float64]
	parts   []*shard.Program
}

// newCrew compiles a rig for every process. A foreign op may have state: each process then gets a separate program with
// separate ops.
func (s stand) newCrew(r *rig[float64], images, processes int) (*crew, error) {
	c := &crew{program: divisible(r, images)}
	m, err := c.program.Module()
	if err != nil {
		return nil, err
	}
	foreign := slices.ContainsFunc(m.Values(), func(v *ir.Value) bool { _, is := v.Op.(ir.Foreign); return is })
	for rank, group := range collective.Local(processes) {
		if rank > 0 && foreign {
			b, err := s.fresh(onEngine)
			if err != nil {
				return nil, err
			}
			if m, err = divisible(b.rig, images).Module(); err != nil {
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
		c.members = append(c.members, &rig[float64]{leaves: r.leaves, program: c.program, runner: plan})
	}
	return c, nil
}

// divisible is the program of a rig with the size of its batch.
func divisible(r *rig[float64], images int) *graph.Program {
	program := *r.program
	program.Batch = images
	return &program
}

// run gives every member its images of the inputs and returns the members' results.
func (c *crew) run(given tensors[float64]) ([]tensors[float64], error) {
	got, errs := make([]tensors[float64], len(c.members)), make([]error, len(c.members))
	var all sync.WaitGroup
	for rank, member := range c.members {
		own := maps.Clone(given)
		for _, in := range c.program.Inputs {
			own[in.Name] = c.images(given[in.Name], rank, shard.Views(in.Shape, c.program.Batch))
		}
		all.Go(func() { got[rank], errs[rank] = member.run(own) })
	}
	all.Wait()
	return got, errors.Join(errs...)
}

// of returns the results that a process should compute: its images of the taps that contain only these, and all other results
// unchanged.
func (c *crew) of(want tensors[float64], rank int) tensors[float64] {
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

func (t layerTrial) divided() error { return t.stand.divided(t.batch) }
func (t lossTrial) divided() error  { return t.stand.divided(t.rows) }

package engine

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"tessera/engine/ir"
	"tessera/engine/ir/shard"
	"tessera/graph"
	"tessera/parallel/collective"
)

// crew is a program on one process, and on the processes of a local group.
type crew[T ir.Float] struct {
	program *graph.Program
	alone   *Plan[T]
	parts   []*shard.Program
	members []*Plan[T]
}

// newCrew compiles the training program of m for batch images on that many processes of one thread each.
func newCrew[T ir.Float](t testing.TB, m *graph.Model, batch, processes int) *crew[T] {
	t.Helper()
	p, err := m.Program(graph.Request{Batch: batch, Training: true, Dtype: dtypeOf[T]()})
	if err != nil {
		t.Fatal(err)
	}
	return crewOf[T](t, p, processes, nil)
}

// crewOf compiles a program. again builds it once more, for programs with ops of Gorgonia that keep a state between calls, as its
// max pooling does: two goroutines must not run the same op. With nil the processes share the ops.
func crewOf[T ir.Float](t testing.TB, p *graph.Program, processes int, again func() *graph.Program) *crew[T] {
	t.Helper()
	c := &crew[T]{program: p}
	whole, err := p.Module()
	if err != nil {
		t.Fatal(err)
	}
	if c.alone, err = Compile[T](whole, nil); err != nil {
		t.Fatal(err)
	}
	for rank, group := range collective.Local(processes) {
		part, err := Partition(whole, rank, processes)
		if err != nil {
			t.Fatal(err)
		}
		own := separate(whole)
		if again != nil {
			if own, err = again().Module(); err != nil {
				t.Fatal(err)
			}
		}
		plan, err := CompileShared[T](own, nil, group)
		if err != nil {
			t.Fatal(err)
		}
		c.parts, c.members = append(c.parts, part), append(c.members, plan)
	}
	return c
}

// separate returns the program with its own parameters, as every process has them.
func separate(m *ir.Module) *ir.Module {
	m = m.Clone()
	m.Parameters = slices.Clone(m.Parameters)
	for i := range m.Parameters {
		m.Parameters[i].Data = slices.Clone(m.Parameters[i].Data)
	}
	return m
}

// rows are the images of a process in values of the whole batch, in both halves of the values if they have two views.
func (c *crew[T]) rows(values []T, rank, outer int) (part []T) {
	from, to := shard.Rows(c.program.Batch, rank, len(c.members))
	rest := len(values) / (outer * c.program.Batch)
	for i := range outer {
		first := i * c.program.Batch
		part = append(part, values[(first+from)*rest:(first+to)*rest]...)
	}
	return part
}

// bind gives all programs the images and the noise of one batch.
func (c *crew[T]) bind(t testing.TB, batch uint64) {
	t.Helper()
	for i, in := range c.program.Inputs {
		values := parameterValues[T](sampled(in, batch))
		errs := []error{c.alone.Bind(i, values)}
		for rank, member := range c.members {
			part := values
			if n := shard.Views(in.Shape, c.program.Batch); n > 0 {
				part = c.rows(values, rank, n)
			}
			errs = append(errs, member.Bind(i, part))
		}
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
}

// run runs the members at the same time.
func (c *crew[T]) run(t testing.TB) {
	t.Helper()
	errs := make([]error, len(c.members))
	var all sync.WaitGroup
	for rank, member := range c.members {
		all.Go(func() { errs[rank] = member.Run() })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// compare runs the program on one process and on several, and returns what differs.
func (c *crew[T]) compare(t testing.TB, tolerance float64) error {
	t.Helper()
	if err := c.alone.Run(); err != nil {
		t.Fatal(err)
	}
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

// descend moves the parameters of all programs against their gradients.
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

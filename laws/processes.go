package laws

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"tessera/engine"
	"tessera/engine/ir"
	"tessera/engine/ir/shard"
	"tessera/graph"
	"tessera/parallel/collective"
)

// divided compares a batch on one process with the same batch on two processes, which have unequal numbers of its images. It
// tests what the part's ops declare about their division among processes.
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

// newCrew compiles a rig for every process. An op that only Gorgonia knows may keep a state between calls: each process then
// has another program, with other ops.
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

// run gives every member its images of a run's inputs and returns what each computes.
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

// of is what a process should compute: its images of the taps that hold only those, everything else as it is.
func (c *crew) of(want tensors[float64], rank int) tensors[float64] {
	own := maps.Clone(want)
	for i, tap := range c.program.Taps {
		if c.parts[rank].Parts[i] {
			own[tap.Name] = c.images(want[tap.Name], rank, 1)
		}
	}
	return own
}

// images are a process's images of values that hold one view of them, or two; all values without a view.
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

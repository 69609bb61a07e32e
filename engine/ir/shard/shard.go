// Package shard partitions a program over the processes that train one model together. Every process runs its own program
// on its images of the batch, and together they compute what the whole program computes: the same objective, not an average
// of objectives.
//
// Constants stay those of the whole batch (1/B in a mean). A value is in one of three forms:
//
//	whole    every process has it
//	images   every process has the part that belongs to its images of the batch
//	terms    the value is the sum of what the processes have
//
// The forms follow from the inputs. A sum over the batch, and a matrix product that contracts it, turn images into terms.
// Terms become whole by an all-reduce, as late as possible: after linear ops of one reader. Images become whole by an
// all-gather, where a product multiplies images by images (contrastive losses), and before every op that the pass does not
// understand: such an op runs on the whole batch, on every process. That is always correct; [Program].Gathers lists it.
package shard

import (
	"errors"
	"fmt"

	"tessera/engine/ir"
	"tessera/internal/volume"
	"tessera/parallel/team"
)

// Rows is the range [from, to) of the images of a batch that a process holds: [team.EvenShare]. In a batch of fewer images
// than processes every process holds all images, and the program is not partitioned.
func Rows(batch, rank, size int) (from, to int) {
	if batch < size {
		return 0, batch
	}
	return team.EvenShare(batch, rank, size)
}

// Program is the program of one process.
type Program struct {
	*ir.Module // Batch, and the shapes of the inputs, are those of the process's images
	// Parts is set, by tap, for taps that hold only the process's images, as their first axis or as its first factor. The other taps are those of the whole program, and
	// so are the gradients and the updates.
	Parts []bool
	// Gathers lists the values that are gathered.
	Gathers []Gather
}

// Gather is a value that every process computes for its images, and that a reader needs for the whole batch.
type Gather struct {
	Value    string // its op and shape
	Reader   string // the op that needs it
	Elements int    // of the whole value
	Fallback bool   // the reader is an op that the pass does not understand; otherwise a product of images by images
}

// Partition returns the program that process rank of size runs of a program for the batch m.Batch. An input of
// images holds those of the process ([Rows]), of all its [Views]; other inputs are whole.
func Partition(m *ir.Module, rank, size int) (*Program, error) {
	if err := m.Check(); err != nil {
		return nil, err
	}
	switch {
	case size < 1 || rank < 0 || rank >= size:
		return nil, fmt.Errorf("ir/shard: rank: got %d of %d processes", rank, size)
	case m.Collective():
		return nil, errors.New("ir/shard: the program is partitioned already")
	case m.Batch < 1:
		return nil, errors.New("ir/shard: the program does not tell its batch: set Module.Batch")
	}
	if size == 1 || m.Batch < size {
		return &Program{Module: m, Parts: make([]bool, len(m.Taps))}, nil
	}
	return newSharder(m.Clone(), rank, size).program()
}

// sharder makes the program of one process.
type sharder struct {
	module     *ir.Module
	batch      int
	rank, size int
	from, to   int // images of the process
	readers    map[*ir.Value]int
	late       map[*ir.Value]bool // values that only the caller reads, directly or through late values
	talks      map[*ir.Value]bool // values that need a message, before the last one
	decisions  map[*ir.Value]*decision
	made       map[request]*ir.Value
	gathers    []Gather
	reader     *ir.Value // whose args are being made
	fallback   bool      // that reader runs on whole args because it is not understood
}

// request is a value in a form.
type request struct {
	value *ir.Value
	form  form
}

func newSharder(m *ir.Module, rank, size int) *sharder {
	s := &sharder{module: m, batch: m.Batch, rank: rank, size: size, readers: map[*ir.Value]int{}, late: map[*ir.Value]bool{},
		talks: map[*ir.Value]bool{}, decisions: map[*ir.Value]*decision{}, made: map[request]*ir.Value{}}
	s.from, s.to = Rows(s.batch, rank, size)
	values := m.Values()
	for _, w := range m.Wanted() {
		s.readers[w]++
	}
	for _, v := range values {
		s.late[v] = true
		for _, a := range v.Args {
			s.readers[a]++
		}
	}
	for i := len(values) - 1; i >= 0; i-- {
		for _, a := range values[i].Args {
			s.late[a] = s.late[a] && s.late[values[i]] && passes(values[i])
		}
	}
	for _, v := range values {
		s.decide(v)
	}
	return s
}

// passes reports whether an op can work on terms, so that its args need no message.
func passes(v *ir.Value) bool {
	p, ok := v.Op.(ir.Pointwise)
	return ok && (p.F == ir.Add || p.F == ir.Sub || p.F == ir.Neg || p.F == ir.Mul || p.F == ir.Div)
}

// program makes the wanted values.
func (s *sharder) program() (*Program, error) {
	p := &Program{Module: &ir.Module{Dtype: s.module.Dtype, Batch: s.to - s.from, Parameters: s.module.Parameters}}
	for _, in := range s.module.Inputs {
		if f := s.ofInput(in.Shape); f.kind == images {
			in.Shape, _ = s.local(in.Shape, f)
		}
		p.Inputs = append(p.Inputs, in)
	}
	s.reader, s.fallback = &ir.Value{Op: ir.Leaf{}}, true // the caller
	for _, t := range s.module.Taps {
		f := form{}
		if first := (form{images, 1}); s.formOf(t.Value) == first {
			f = first
		}
		p.Taps = append(p.Taps, ir.Tap{Name: t.Name, Value: s.as(t.Value, f)})
		p.Parts = append(p.Parts, f.kind == images)
	}
	for _, g := range s.module.Gradients {
		p.Gradients = append(p.Gradients, ir.Gradient{Parameter: g.Parameter, Value: s.as(g.Value, form{})})
	}
	for _, u := range s.module.Updates {
		p.Updates = append(p.Updates, ir.Update{Parameter: u.Parameter, Value: s.as(u.Value, form{})})
	}
	p.Gathers = s.gathers
	number(p.Module)
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("ir/shard: %w", err)
	}
	return p, nil
}

// Traffic is what a process sends and receives per run, in elements: the lengths of all-reduced values, and of gathered
// ones as a whole; messages is the number of collective operations.
func (p *Program) Traffic() (reduced, gathered, messages int) {
	last := -1
	for _, v := range p.Values() {
		n, ok := ir.MessageOf(v.Op)
		if !ok {
			continue
		}
		last = max(last, n)
		if _, gathers := v.Op.(ir.AllGather); gathers {
			gathered += volume.Of(v.Shape)
		} else {
			reduced += volume.Of(v.Shape)
		}
	}
	return reduced, gathered, last + 1
}

// Package shard partitions a program over the processes that train one model together. Every process runs its own
// program on its images of the batch. Together they compute the same objective as the original program, not an average
// of objectives.
//
// Constants keep their values for the complete batch (1/B in a mean). A value has one of three forms:
//
//	whole    every process has the complete value
//	images   every process has the part for its images of the batch
//	terms    the value is the sum of the processes' values
//
// The forms follow from the inputs. A sum over the batch, or a matrix product that sums over it, turns images into
// terms. An all-reduce turns terms into whole values, as late as possible: after linear ops with one reader. An
// all-gather turns images into whole values before a product of images by images (contrastive losses), and before every
// op that the pass does not support. Every process then computes such an op on the complete batch, which is always
// correct. [Program].Gathers lists the gathered values.
package shard

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"tessera/internal/engine/ir"
	"tessera/internal/parallel/team"
	"tessera/internal/volume"
)

// Rows returns the range [from, to) of the images of a batch that process rank of size processes; see [team.EvenShare].
// If a batch has fewer images than there are processes, every process has all images, and the program is not
// partitioned.
func Rows(batch, rank, size int) (from, to int) {
	if batch < size {
		return 0, batch
	}
	return team.EvenShare(batch, rank, size)
}

// Program is the program of one process.
type Program struct {
	*ir.Module // Batch and the shapes of the inputs count only the images of the process
	// Parts reports for each tap whether it contains only the images of the process, along its first axis or as the
	// first factor of that axis. The other taps, the gradients and the updates are those of the original program.
	Parts []bool
	// Gathers lists the values that are gathered.
	Gathers []Gather
}

// Gather describes a value that every process computes for its images and that a reader needs for the complete batch.
type Gather struct {
	Value    string // op and shape of the value
	Reader   string // op that needs the value
	Elements int    // number of elements of the complete value
	Fallback bool   // true if the pass does not support the reader, false if the reader is a product of images by images
}

// Partition returns the program that process rank of size runs. m is the program for the complete batch. An input of
// images contains the images of the process ([Rows]), for all its [Views]; other inputs are complete.
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
		return nil, errors.New("ir/shard: the batch size is unknown: set Module.Batch")
	}
	if size == 1 || m.Batch < size {
		return &Program{Module: m, Parts: make([]bool, len(m.Taps))}, nil
	}
	return newSharder(m.Clone(), rank, size).program()
}

// sharder builds the program of one process.
type sharder struct {
	module     *ir.Module
	batch      int
	rank, size int
	from, to   int // images of the process
	readers    map[*ir.Value]int
	late       map[*ir.Value]bool // values that only the caller reads, directly or through late values
	talks      map[*ir.Value]bool // values that need a message before the last message
	decisions  map[*ir.Value]*decision
	made       map[request]*ir.Value
	gathers    []Gather
	reader     *ir.Value // value whose args are being computed
	fallback   bool      // the reader needs complete args because the pass does not support its op
}

// request identifies a value and the form in which it is needed.
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

// passes reports whether an op can compute terms from terms, so that its args need no message.
func passes(v *ir.Value) bool {
	p, ok := v.Op.(ir.Pointwise)
	return ok && (p.F == ir.Add || p.F == ir.Sub || p.F == ir.Neg || p.F == ir.Mul || p.F == ir.Div)
}

// program builds the wanted values.
func (s *sharder) program() (*Program, error) {
	p := &Program{Module: &ir.Module{Dtype: s.module.Dtype, Batch: s.to - s.from, Parameters: s.module.Parameters}}
	for _, in := range s.module.Inputs {
		if f := s.ofInput(in.Shape); f.kind == images {
			in.Shape, _ = s.local(in.Shape, f)
		}
		p.Inputs = append(p.Inputs, in)
	}
	s.reader, s.fallback = &ir.Value{Op: ir.Leaf{}}, true // the caller is the reader
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

// Traffic returns the number of elements that a process sends and receives per run, separately for all-reduced and
// gathered values, and the number of messages. A gathered value counts with the elements of the complete batch.
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

// as returns v in the form f, as a value of the process's program.
func (s *sharder) as(v *ir.Value, f form) *ir.Value {
	key := request{v, f}
	if made := s.made[key]; made != nil {
		return made
	}
	made := s.converted(v, f)
	s.made[key] = made
	return made
}

// converted computes v in its own form and converts the result to the form f.
func (s *sharder) converted(v *ir.Value, f form) *ir.Value {
	have := s.formOf(v)
	switch {
	case have == f:
		return s.compute(v)
	case f.kind == images:
		return s.take(v, f)
	case f.kind == terms:
		return s.once(v)
	case have.kind == terms:
		return &ir.Value{Op: ir.AllReduce{F: ir.Sum}, Args: []*ir.Value{s.as(v, have)}, Shape: v.Shape}
	}
	return s.gather(v, have)
}

// compute computes v in its own form.
func (s *sharder) compute(v *ir.Value) *ir.Value {
	d := s.decisions[v]
	made := &ir.Value{Op: d.op, Shape: v.Shape, Name: v.Name, Layer: v.Layer}
	if d.form.kind == images {
		made.Shape, _ = s.local(v.Shape, d.form)
	}
	scales := d.form.kind == terms && scaling(v)
	for i, a := range v.Args {
		s.reader, s.fallback = v, d.fallback
		if f := d.args[i]; d.form.kind == terms && f.kind == whole && !scales {
			made.Args = append(made.Args, s.as(a, form{kind: terms})) // only one process contributes the addend
		} else {
			made.Args = append(made.Args, s.as(a, f))
		}
	}
	if d.maximum {
		return &ir.Value{Op: ir.AllReduce{F: ir.Max}, Args: []*ir.Value{made}, Shape: v.Shape}
	}
	return made
}

// scaling reports whether an op multiplies terms by whole values, rather than adding whole values to them.
func scaling(v *ir.Value) bool {
	p, ok := v.Op.(ir.Pointwise)
	return ok && p.F != ir.Add && p.F != ir.Sub
}

// once returns a whole value as terms: process 0 contributes the value, the other processes contribute 0.
func (s *sharder) once(v *ir.Value) *ir.Value {
	factor := 0.0
	if s.rank == 0 {
		factor = 1
	}
	return &ir.Value{Op: ir.Pointwise{F: ir.Mul}, Args: []*ir.Value{s.as(v, form{}), ir.Uniform(factor, v.Shape)}, Shape: v.Shape}
}

// gather returns a value in the form images as a whole value. Values that differ only in layout share a message.
func (s *sharder) gather(v *ir.Value, f form) *ir.Value {
	switch v.Op.(type) {
	case ir.Reshape, ir.Transpose:
		return &ir.Value{Op: v.Op, Args: []*ir.Value{s.as(v.Args[0], form{})}, Shape: v.Shape}
	}
	s.gathers = append(s.gathers, Gather{fmt.Sprintf("%v%v", v.Op, v.Shape), fmt.Sprintf("%v%v", s.reader.Op, s.reader.Shape), size(v), s.fallback})
	return &ir.Value{Op: ir.AllGather{Outer: f.outer, Batch: s.batch, Processes: s.size}, Args: []*ir.Value{s.as(v, f)}, Shape: v.Shape}
}

// take returns the process's images of a value in any form. Broadcasts and elementwise values are computed for these
// images only, never for the complete batch.
func (s *sharder) take(v *ir.Value, f form) *ir.Value {
	part, ok := s.local(v.Shape, f)
	if ok && s.formOf(v).kind == whole {
		switch v.Op.(type) {
		case ir.Reshape:
			if _, fits := s.local(v.Args[0].Shape, f); fits {
				return &ir.Value{Op: v.Op, Args: []*ir.Value{s.as(v.Args[0], f)}, Shape: part}
			}
		case ir.Broadcast:
			return &ir.Value{Op: v.Op, Args: []*ir.Value{s.takeNarrow(v.Args[0], v.Shape, f)}, Shape: part}
		case ir.Pointwise:
			made := &ir.Value{Op: v.Op, Shape: part}
			for _, a := range v.Args {
				made.Args = append(made.Args, s.as(a, f))
			}
			return made
		}
	}
	s.reader, s.fallback = v, true
	return s.cut(s.as(v, form{}), v.Shape, part, f)
}

// takeNarrow returns the arg of a broadcast to the process's images. It is the complete arg if its batch axis has
// length 1.
func (s *sharder) takeNarrow(arg *ir.Value, shape []int, f form) *ir.Value {
	a, _ := s.locate(shape, f)
	if arg.Shape[a.index] == 1 {
		return s.as(arg, form{})
	}
	return s.as(arg, at(arg.Shape, a.index, a.outer))
}

// collectives lists the values of collective ops, with args before the values that read them.
func collectives(m *ir.Module) []*ir.Value {
	return slices.DeleteFunc(m.Values(), func(v *ir.Value) bool {
		_, ok := ir.MessageOf(v.Op)
		return !ok
	})
}

// message is a collective operation.
type message struct {
	values []*ir.Value
	late   bool
	level  int // number of messages that must complete before this one, one after the other
	depth  int // length of the longest computation before the message; it estimates when the values are ready
}

// Sizes of messages in elements of 4 bytes. Values of at most together elements share a message, because copying them
// takes less time than a second message. A message of late values is full at bucket elements.
const (
	together = 16 << 10
	bucket   = 64 << 10
)

// number assigns the collective values of a program to messages and fixes the order of the messages. The result depends
// only on the structure of the program, which is the same in all processes.
//
// Small values that can be sent at the same time share a message. Late values are sent as soon as they are ready, while
// the computation continues. Small late values are collected in buckets.
func number(m *ir.Module) {
	l := leveller{read: map[*ir.Value]bool{}, level: map[*ir.Value]int{}, depth: map[*ir.Value]int{}}
	var early, late []*message
	for _, v := range l.measure(m) {
		o, sum := v.Op.(ir.AllReduce)
		single := &message{[]*ir.Value{v}, sum && !l.read[v], l.level[v], l.depth[v]}
		switch {
		case single.late:
			late = append(late, single)
		case sum && size(v) <= together:
			early = joined(early, single, o.F)
		default:
			early = append(early, single)
		}
	}
	for i, sent := range ordered(early, buckets(late)) {
		for j, v := range sent.values {
			switch o := v.Op.(type) {
			case ir.AllReduce:
				v.Op = ir.AllReduce{F: o.F, Message: i, Member: j, Late: sent.late}
			case ir.AllGather:
				o.Message = i
				v.Op = o
			}
		}
	}
}

// leveller computes the levels and depths of the values of a program.
type leveller struct {
	read         map[*ir.Value]bool
	level, depth map[*ir.Value]int
}

// measure computes the levels and depths, and returns the collective values.
func (l *leveller) measure(m *ir.Module) []*ir.Value {
	for _, v := range m.Values() {
		for _, a := range v.Args {
			l.read[a] = true
			l.level[v] = max(l.level[v], l.level[a])
			l.depth[v] = max(l.depth[v], l.depth[a]+1)
		}
		if _, ok := ir.MessageOf(v.Op); ok {
			l.level[v]++
		}
	}
	return collectives(m)
}

// joined adds a small all-reduce to the message in list with the same level and reducer, or appends it to list.
func joined(list []*message, single *message, f ir.Reducer) []*message {
	for _, m := range list {
		o, ok := m.values[0].Op.(ir.AllReduce)
		if ok && o.F == f && m.level == single.level && size(m.values[0]) <= together {
			m.values = append(m.values, single.values...)
			m.depth = max(m.depth, single.depth)
			return list
		}
	}
	return append(list, single)
}

// buckets groups late values in the order in which they become ready. A large value is sent in a separate message,
// without a copy.
func buckets(late []*message) (full []*message) {
	slices.SortStableFunc(late, func(a, b *message) int { return cmp.Compare(a.depth, b.depth) })
	open := map[ir.Reducer]*message{}
	length := map[ir.Reducer]int{}
	for _, m := range late {
		f := m.values[0].Op.(ir.AllReduce).F
		switch n := size(m.values[0]); {
		case n > together:
			full = append(full, m)
			continue
		case open[f] == nil:
			open[f], length[f] = m, n
		default:
			open[f].values = append(open[f].values, m.values...)
			open[f].level, open[f].depth = max(open[f].level, m.level), max(open[f].depth, m.depth)
			length[f] += n
		}
		if length[f] >= bucket {
			full = append(full, open[f])
			delete(open, f)
		}
	}
	for _, f := range []ir.Reducer{ir.Sum, ir.Max} {
		if open[f] != nil {
			full = append(full, open[f])
		}
	}
	return full
}

// ordered merges early and late messages into one order. A message comes after all messages that its values may depend
// on, which have a lower level. Of the messages that can be sent, the one that is ready first comes first.
func ordered(early, late []*message) (all []*message) {
	byReadiness := func(a, b *message) int {
		return cmp.Or(cmp.Compare(a.level, b.level), cmp.Compare(a.depth, b.depth))
	}
	slices.SortStableFunc(early, byReadiness)
	slices.SortStableFunc(late, func(a, b *message) int { return cmp.Compare(a.depth, b.depth) })
	for _, next := range early {
		late = slices.DeleteFunc(late, func(m *message) bool {
			before := m.level <= next.level && m.depth <= next.depth
			if before {
				all = append(all, m)
			}
			return before
		})
		all = append(all, next)
	}
	return append(all, late...)
}

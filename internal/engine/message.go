package engine

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"tessera/internal/engine/ir"
	"tessera/internal/engine/ir/shard"
	"tessera/internal/numeral"
	"tessera/internal/parallel/collective"
	"tessera/internal/parallel/team"
	"tessera/internal/volume"
)

// message is one collective operation: an all-reduce of one or several values, or an all-gather. Values without other
// readers are reduced in place; other values are copied.
type message[T ir.Float] struct {
	values   []*ir.Value
	args, to []*cell[T]
	group    collective.Group
	failure  *failure
	op       collective.Op
	late     bool // started by the step, completed at the end of the run
	pending  collective.Pending
	memory   []T // the values of the message, concatenated, or the gathered parts; nil if the only value is reduced in place
	counts   []int
	part     []T // a copy of a gathered input; the memory of an input changes with every Bind
	mine     any // data that this process sends, stored as an interface value: memory, part or the data of a cell
	all      any // gathered data, stored as an interface value
}

func (w *message[T]) run(int, int, int) {
	if w.failure.first != nil {
		return // after an error the processes may not agree on the next message
	}
	if err := w.send(); err != nil {
		w.failure.set(fmt.Errorf("engine: %v: %w", w.values[0].Op, err))
	}
}

func (w *message[T]) finish(int) {}

func (w *message[T]) send() (err error) {
	if w.counts != nil {
		copy(w.part, w.args[0].data)
		if err = w.group.AllGather(w.mine, w.counts, w.all); err == nil {
			w.arrange()
		}
		return err
	}
	if w.memory != nil {
		at := 0
		for _, a := range w.args {
			at += copy(w.memory[at:], a.data)
		}
	}
	if w.late {
		w.pending, err = w.group.Start(w.op, w.mine)
		return err
	}
	if err = w.group.AllReduce(w.op, w.mine); err == nil {
		w.deliver()
	}
	return err
}

// complete waits for a late message.
func (w *message[T]) complete() {
	if w.failure.first != nil {
		return
	}
	if err := w.pending.Wait(); err != nil {
		w.failure.set(fmt.Errorf("engine: %v: %w", w.values[0].Op, err))
		return
	}
	w.deliver()
}

// deliver copies the reduced or gathered values to their cells.
func (w *message[T]) deliver() {
	if w.memory == nil {
		return
	}
	from := w.memory
	for _, c := range w.to {
		from = from[copy(c.data, from):]
	}
}

// arrange copies gathered parts from the order of the processes to the order of the images.
func (w *message[T]) arrange() {
	if w.memory == nil {
		return
	}
	o := w.values[0].Op.(ir.AllGather)
	per := len(w.memory) / o.Outer // number of elements of one outer part of the batch
	from, before := w.memory, 0
	for _, count := range w.counts {
		rows := count / o.Outer
		for outer := range o.Outer {
			from = from[copy(w.to[0].data[outer*per+before:][:rows], from):]
		}
		before += rows
	}
}

// messageStep returns the step for a message. The steps of messages are run in their order.
func (c *compiler[T]) messageStep(values []*ir.Value) *step {
	w := &message[T]{values: values, group: c.plan.group, failure: &c.plan.failure}
	st := &step{name: values[0].Op.String(), work: w, units: 1, serial: true}
	for _, v := range values {
		arg := skipReshapes(v.Args[0])
		w.args, w.to = append(w.args, c.cells[arg]), append(w.to, c.cells[v])
		st.reads, st.writes = append(st.reads, operand{arg, whole}), append(st.writes, operand{v, whole})
		if len(values) == 1 && c.combinedInPlace(v, arg) {
			c.overwrites[v] = arg
		}
	}
	if o, ok := values[0].Op.(ir.AllReduce); ok {
		w.late = o.Late
		if o.F == ir.Max {
			w.op = collective.Max
		}
	}
	return st
}

// combinedInPlace reports whether an all-reduce may overwrite its arg: a step computes the arg, and nothing else reads
// the arg.
func (c *compiler[T]) combinedInPlace(v, arg *ir.Value) bool {
	if _, gathers := v.Op.(ir.AllGather); gathers {
		return false
	}
	switch arg.Op.(type) {
	case ir.Product, partialProduct, selectedProduct, ir.Transpose, ir.Blockwise, ir.Unitwise, ir.Pointwise, ir.Reduction:
		return len(c.fusion.readers[arg]) == 1 && !slices.ContainsFunc(c.plan.module.wanted, func(w *ir.Value) bool { return skipReshapes(w) == arg })
	}
	return false
}

// keepOrder adds dependencies that keep the steps of messages in the order of the messages.
func (c *compiler[T]) keepOrder() {
	byMessage := map[int]*step{}
	for _, st := range c.steps {
		if w, ok := st.work.(*message[T]); ok {
			n, _ := ir.MessageOf(w.values[0].Op)
			byMessage[n] = st
		}
	}
	var last *step
	for _, n := range slices.Sorted(maps.Keys(byMessage)) {
		byMessage[n].after, last = last, byMessage[n]
		c.sent = append(c.sent, last.work.(*message[T]))
	}
}

// bindMessages allocates the memory of the messages. It runs after the values have their memory.
func (c *compiler[T]) bindMessages() {
	for _, w := range c.sent {
		total := 0
		for _, to := range w.to {
			total += len(to.data)
		}
		switch o := w.values[0].Op.(type) {
		case ir.AllGather:
			for r := range o.Processes {
				from, to := shard.Rows(o.Batch, r, o.Processes)
				w.counts = append(w.counts, volume.Of(w.values[0].Shape)/o.Batch*(to-from))
			}
			w.mine, w.all = w.args[0].data, w.to[0].data
			if _, leaf := skipReshapes(w.values[0].Args[0]).Op.(ir.Leaf); leaf {
				w.part = make([]T, len(w.args[0].data))
				w.mine = w.part
			}
			if o.Outer > 1 {
				w.memory = make([]T, total)
				w.all = w.memory
			}
		default:
			if len(w.values) > 1 || c.overwrites[w.values[0]] == nil {
				w.memory = make([]T, total)
				w.mine = w.memory
			} else {
				w.mine = w.to[0].data
			}
		}
		if w.late {
			c.plan.sent = append(c.plan.sent, w)
		}
	}
}

// CompileShared compiles the part of a program that this process of a group runs. Its inputs and some of its taps
// contain only the process's images of the batch (see [Partition]). For a nil group or a group of one process it is
// equivalent to [Compile]. If goroutines act as processes, they need separate programs if an op of Gorgonia has state,
// such as its max pooling. No layer of this module uses such an op.
func CompileShared[T ir.Float](program *ir.Module, members *team.Team, group collective.Group) (*Plan[T], error) {
	if group == nil || group.Size() == 1 {
		return Compile[T](program, members)
	}
	part, err := Partition(program, group.Rank(), group.Size())
	if err != nil {
		return nil, err
	}
	return compile[T](part.Module, members, group)
}

// Partition simplifies a program and returns the part that process rank of size runs (see [shard.Partition]).
func Partition(program *ir.Module, rank, size int) (*shard.Program, error) {
	if program == nil {
		return nil, errors.New("engine: no program to partition")
	}
	if err := program.Check(); err != nil {
		return nil, err
	}
	m := newModule(program)
	if program.Dtype == ir.Float64 {
		simplify[float64](m)
	} else {
		simplify[float32](m)
	}
	return shard.Partition(m.program(program), rank, size)
}

// Traffic returns a description of how much each process sends and receives if several processes run a program
// together.
func Traffic(program *ir.Module, processes int) (string, error) {
	part, err := Partition(program, 0, processes)
	if err != nil {
		return "", err
	}
	width := 4
	if program.Dtype == ir.Float64 {
		width = 8
	}
	reduced, gathered, messages := part.Traffic()
	text := fmt.Sprintf("on %d processes: %s all-reduced, %s gathered, in %d messages\n", processes, numeral.Bytes(int64(width*reduced)), numeral.Bytes(int64(width*gathered)), messages)
	for _, g := range part.Gathers {
		if g.Fallback {
			text += fmt.Sprintf("  gathered because every process computes it for the whole batch: %s, read by %s\n", g.Value, g.Reader)
		}
	}
	return text, nil
}

// program returns a module with the simplified values of m and the inputs and parameters of from.
func (m *module) program(from *ir.Module) *ir.Module {
	to, wanted := *from.Clone(), m.wanted
	next := func() *ir.Value {
		w := wanted[0]
		wanted = wanted[1:]
		return w
	}
	for i := range to.Taps {
		to.Taps[i].Value = next()
	}
	for i := range to.Gradients {
		to.Gradients[i].Value = next()
	}
	for i := range to.Updates {
		to.Updates[i].Value = next()
	}
	return &to
}

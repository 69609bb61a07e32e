package engine

import (
	"errors"
	"fmt"

	"tessera/engine/ir"
	"tessera/engine/ir/shard"
	"tessera/parallel/collective"
	"tessera/parallel/team"
)

// CompileShared compiles the part of a program that this process of a group runs: its inputs, and some of its taps, hold the
// process's images of the batch (see [Partition]). A nil group, and a group of one, is [Compile].
// Processes that are goroutines of one process each need its own program if an op of Gorgonia keeps a state between calls, as
// its max pooling does; no layer of this module has one.
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

// Partition simplifies a program and returns the part of process rank of size: [shard.Partition] of less.
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

// Traffic describes what each of several processes sends and receives when they run a program together.
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
	text := fmt.Sprintf("on %d processes: %s all-reduced, %s gathered, in %d messages\n", processes, bytesText(width*reduced), bytesText(width*gathered), messages)
	for _, g := range part.Gathers {
		if g.Fallback {
			text += fmt.Sprintf("  gathered because every process computes it for the whole batch: %s, read by %s\n", g.Value, g.Reader)
		}
	}
	return text, nil
}

// program returns a program with the values of m.
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

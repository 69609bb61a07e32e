package coder

import (
	"fmt"
	"slices"

	"tessera/config/part/table"
	"tessera/graph/tape"
	"tessera/internal/engine"
	"tessera/internal/engine/ir"
	"tessera/internal/engine/kernel"
	"tessera/internal/parallel/team"
	"tessera/internal/train"
)

// The back ends.
const (
	Engine = "engine" // runs an optimised plan compiled from the graph
	Tape   = "tape"   // runs Gorgonia's TapeMachine, the reference
)

// Backends lists the back ends, the default first.
func Backends() []string { return []string{Engine, Tape} }

// MostThreads is the maximum number of threads of a run. Each thread has its own buffers, so that a mistyped number could
// exhaust the memory. A resumed run may need more threads than there are CPUs.
const MostThreads = 1024

// Backend returns the back end of this name, "" for the default, and the team of goroutines that it and the optimizer share. 0 threads
// means one per CPU.
func Backend(name string, threads int) (ir.Backend, *team.Team, error) {
	if name != "" && !slices.Contains(Backends(), name) {
		return nil, nil, fmt.Errorf("tessera: unknown back end %q, want one of %s", name, table.Quoted(Backends()))
	}
	if threads < 0 || threads > MostThreads {
		return nil, nil, fmt.Errorf("tessera: Threads: got %d, want from 1 to %d, or 0 for one per CPU", threads, MostThreads)
	}
	if err := kernel.Err(); err != nil {
		return nil, nil, fmt.Errorf("tessera: %w", err)
	}
	team := team.New(threads)
	return backendOn(name, team), team, nil
}

// backendOn returns the back end of this name on a team.
func backendOn(name string, team *team.Team) ir.Backend {
	if name == Tape {
		return tape.Backend{}
	}
	return engine.Backend{Team: team}
}

// Open returns the coder of a trained model that read returns. Its path is the folder of the run or the name of a file.
func Open(path, backend string, threads int, raw bool, read func() (*train.Trained, error)) (*Coder, *train.Trained, error) {
	on, team, err := Backend(backend, threads)
	if err != nil {
		return nil, nil, err
	}
	t, err := read()
	if err == nil && !raw {
		err = t.ReadPostHoc()
	}
	if err != nil {
		team.Close()
		return nil, nil, err
	}
	return New(t, Options{Path: path, Backend: on, BackendName: backend, Team: team, Raw: raw}), t, nil
}

package train

import (
	"fmt"
	"path/filepath"
	"strings"

	"tessera/config"
	"tessera/kernel"
	"tessera/train/folder"
)

// Arithmetic identifies the order of floating-point additions. Together with the declaration and the images it determines
// the last bits of a result.
type Arithmetic struct {
	Threads int    `json:"threads,omitempty"` // 0 for a baseline
	Backend string `json:"backend,omitempty"` // tape, engine; empty for a baseline
	Kernel  string `json:"kernel"`            // implementation of products and functions: [kernel.Float32]
}

// arithmetic is the arithmetic of this process. Baselines give the same bits on any number of threads and have no back end.
func (o Options) arithmetic(spec *config.Model) Arithmetic {
	a := Arithmetic{Kernel: kernel.Float32().Name}
	if spec.Baseline != nil {
		return a
	}
	a.Threads = o.Team.Threads()
	if named, ok := o.Backend.(interface{ Name() string }); ok {
		a.Backend = named.Name()
	}
	return a
}

// differs describes the difference to the current arithmetic, "" if there is none.
func (a Arithmetic) differs(now Arithmetic) string {
	var lines []string
	add := func(what string, was, is any) {
		if was != is {
			lines = append(lines, fmt.Sprintf("%s (got %v, want %v)", what, is, was))
		}
	}
	add("threads", a.Threads, now.Threads)
	add("back end", a.Backend, now.Backend)
	add("kernels", a.Kernel, now.Kernel)
	return strings.Join(lines, ", ")
}

// ArithmeticOf returns the arithmetic with which a run was started; zero if the run has no record of it.
func ArithmeticOf(run string) (a Arithmetic, err error) {
	from, err := readState(filepath.Join(run, folder.State))
	if err != nil {
		return a, err
	}
	if from.arithmetic != (Arithmetic{}) {
		return from.arithmetic, nil
	}
	e, err := ReadEnvironment(run) // a state of an earlier version
	return Arithmetic{Threads: e.Threads, Backend: e.Backend, Kernel: e.BLAS}, err
}

package train

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"tessera/config"
	"tessera/kernel"
	"tessera/train/checkpoint"
	"tessera/train/folder"
)

// Arithmetic identifies the order of floating-point additions. Together with the declaration and the images it determines
// the last bits of a result.
type Arithmetic struct {
	Ranks   int    `json:"ranks,omitempty"`   // processes that train together; 0 for one alone
	Threads int    `json:"threads,omitempty"` // of each process; 0 for a baseline
	Backend string `json:"backend,omitempty"` // tape, engine; empty for a baseline
	Kernel  string `json:"kernel"`            // implementation of products and functions: [kernel.Float32]
}

// arithmetic is the arithmetic of this process. Baselines give the same bits on any number of threads and have no back end.
func (o Options) arithmetic(spec *config.Model) Arithmetic {
	a := Arithmetic{Kernel: kernel.Float32().Name}
	if spec.Baseline != nil {
		return a
	}
	if n := o.processes().size(); n > 1 {
		a.Ranks = n
	}
	a.Threads = o.Team.Threads()
	if o.Backend != nil { // a finished run is opened without one
		a.Backend = o.Backend.Name()
	}
	return a
}

// differs describes the difference to the current arithmetic, as in "2 processes, not 1"; "" if there is none.
func (a Arithmetic) differs(now Arithmetic) string {
	var lines []string
	add := func(form string, was, is any) {
		if was != is {
			lines = append(lines, fmt.Sprintf(form, was)+fmt.Sprintf(", not %v", is))
		}
	}
	add("%v process"+plural(max(1, a.Ranks), "es"), max(1, a.Ranks), max(1, now.Ranks))
	add("%v thread"+plural(a.Threads, "s"), a.Threads, now.Threads)
	add("back end %v", a.Backend, now.Backend)
	add("kernels %v", a.Kernel, now.Kernel)
	return strings.Join(lines, "; ")
}

// plural is the ending of a noun after a number.
func plural(n int, ending string) string {
	if n == 1 {
		return ""
	}
	return ending
}

// ArithmeticOf returns the arithmetic with which a run was started. The state of the run records it; states of earlier versions
// do not, and a run of theirs without a sound env.json is a [*checkpoint.Error].
func ArithmeticOf(run string) (a Arithmetic, err error) {
	from, err := readState(filepath.Join(run, folder.State))
	if err != nil {
		return a, err
	}
	if from.arithmetic != (Arithmetic{}) {
		return from.arithmetic, nil
	}
	e, err := ReadEnvironment(run)
	if err == nil && (e.Threads < 1 || e.Backend == "") {
		err = errors.New("it records neither")
	}
	if err != nil {
		return a, checkpoint.Errorf(filepath.Join(run, folder.Environment), "is missing or damaged (%v), and the run is of a version whose state does not record threads and back end; restore the file, or give --threads and --backend", err)
	}
	return Arithmetic{Threads: e.Threads, Backend: e.Backend, Kernel: e.BLAS}, nil
}

package cli

import (
	"fmt"
	"runtime"
	"strings"

	"tessera/data"
	"tessera/internal/engine/kernel"
	"tessera/internal/machine"
)

func init() {
	Commands.Register("doctor", "Show CPU, kernels, versions and data folders", func() Command { return &doctorCommand{} })
}

// doctorCommand is the command doctor.
type doctorCommand struct{ dataFlag }

// Help implements [Command].
func (f *doctorCommand) Help() Help { return Help{Examples: []string{"tessera doctor"}} }

// Do implements [Command].
func (f *doctorCommand) Do(cmd *Call) error {
	out := cmd.OutOrStdout()
	t := newTable(out)
	t.row("tessera", machine.Version())
	t.row("go", fmt.Sprintf("%s %s/%s", runtime.Version(), runtime.GOOS, runtime.GOARCH))
	for _, m := range dependencies("gorgonia.org/gorgonia", "gorgonia.org/tensor", "gonum.org/v1/gonum") {
		t.row(m.Path, m.Version)
	}
	t.row("cpu", machine.CPU())
	t.row("features", strings.Join(machine.Features(), " "))
	t.row("threads", fmt.Sprintf("%d (%d CPUs, GOMAXPROCS %d)", runtime.GOMAXPROCS(0), runtime.NumCPU(), runtime.GOMAXPROCS(0)))
	printKernels(t)
	t.row("data in", strings.Join(data.SearchDirs(f.Data), ", "))
	if err := t.flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	if err := printData(out, data.SearchDirs(f.Data)); err != nil {
		return err
	}
	if err := kernel.Err(); err != nil {
		return usageError{err}
	}
	return nil
}

// printKernels prints the selected kernels, and why faster ones are not used.
func printKernels(t *columns) {
	k := kernel.Info()
	t.row("kernels", k.Name)
	t.row("simd", strings.TrimSuffix(k.SIMD+" ("+k.SIMDNote+")", " ()"))
	if k.BLAS == "" {
		t.row("blas", "none: "+k.BLASNote)
		return
	}
	t.row("blas", strings.Join(strings.Fields(k.BLAS+" "+k.BLASCore+" "+k.BLASThreads), " "))
}

package cli

import (
	"fmt"
	"runtime"
	"strings"

	"tessera/apps/show/doc"
	"tessera/data"
	"tessera/internal/engine/kernel"
	"tessera/internal/machine"
)

func init() {
	Commands.Register("doctor", "Show CPU, kernels, versions and data folders", func() Command { return &doctorCommand{} })
}

type doctorCommand struct {
	dataFlag
	jsonFlag
	Bench bool `flag:"bench" doc:"also measure the peak of the processor, what products and steps of shipped models reach of it, and the bandwidth of memory (half a minute)"`
}

func (f *doctorCommand) Help() Help {
	return Help{Examples: []string{"tessera doctor", "tessera doctor --bench"}}
}

func (f *doctorCommand) Do(cmd *Call) error {
	t := &doc.Facts{}
	add := func(name, value string) { t.Add(name, name, doc.Shown{Value: value, Text: value}) } // also empty ones
	add("tessera", machine.Version())
	add("go", fmt.Sprintf("%s %s/%s", runtime.Version(), runtime.GOOS, runtime.GOARCH))
	for _, m := range dependencies("gorgonia.org/gorgonia", "gorgonia.org/tensor", "gonum.org/v1/gonum") {
		add(m.Path, m.Version)
	}
	add("cpu", machine.CPU())
	add("features", strings.Join(machine.Features(), " "))
	add("threads", threadsText())
	if caches := machine.Processor().Caches; len(caches) > 0 {
		var levels []string
		for i, size := range caches {
			levels = append(levels, fmt.Sprintf("level %d: %s", i+1, binary(size)))
		}
		add("data caches", strings.Join(levels, ", "))
	}
	addKernels(add)
	add("data in", strings.Join(data.SearchDirs(f.Data), ", "))
	blocks := []doc.Block{t, dataTable(data.SearchDirs(f.Data))}
	if f.Bench && kernel.Err() == nil {
		bench, err := measureLimits(cmd.Context())
		if err != nil {
			return err
		}
		blocks = append(blocks, bench)
	}
	if err := cmd.Show(&doc.Document{Blocks: blocks}, f.JSON); err != nil {
		return err
	}
	if err := kernel.Err(); err != nil {
		return usageError{err}
	}
	return nil
}

// binary writes the size of a cache in the units of its makers.
func binary(size int) string {
	if size%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", size>>20)
	}
	return fmt.Sprintf("%d KiB", size>>10)
}

// threadsText says how many threads work by default, and why not more.
func threadsText() string {
	text := fmt.Sprintf("%d (%d CPUs, GOMAXPROCS %d", machine.Threads(), runtime.NumCPU(), runtime.GOMAXPROCS(0))
	if fast := machine.Processor().Fast; fast > 0 {
		text += fmt.Sprintf(", %d fast cores", fast)
	}
	return text + ")"
}

// addKernels adds the selected kernels, and why faster ones are not used.
func addKernels(add func(name, value string)) {
	k := kernel.Info()
	add("kernels", k.Name)
	add("simd", strings.TrimSuffix(k.SIMD+" ("+k.SIMDNote+")", " ()"))
	if k.BLAS == "" {
		add("blas", "none: "+k.BLASNote)
		return
	}
	add("blas", strings.Join(strings.Fields(k.BLAS+" "+k.BLASCore+" "+k.BLASThreads), " "))
}

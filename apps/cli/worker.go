package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"
	"tessera/data"
	"tessera/internal/engine/kernel"
	"tessera/internal/sweep/fleet"
)

// workerFlags contains the flags of the command worker.
type workerFlags struct {
	accessFlags
	data, cache string
	jobs        int
	wait        time.Duration
	quiet       bool
}

func workerCommand() *cobra.Command {
	var f workerFlags
	cmd := &cobra.Command{
		Use:   "worker nats://HOST[:PORT]",
		Short: "Take trials of a sweep on another machine",
		Long: "Take trials of the sweep that `tessera sweep NAME --listen ADDR` runs on another machine, as many at once as this machine has\n" +
			"CPUs. A worker needs no shared disk and no models.toml. Ctrl-C gives the trials back, with their checkpoints.",
		Example: "  tessera worker nats://192.168.1.10 --token-file token",
		Args:    one("address"),
		RunE:    work(func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) }),
	}
	addDataFlag(cmd, &f.data)
	cmd.Flags().StringVar(&f.cache, "cache", "", "folder of fetched data sets and of trials in progress (default tessera/worker in the user's cache)")
	f.jobs = runtime.GOMAXPROCS(0)
	cmd.Flags().Var((*positive)(&f.jobs), "jobs", "number of trials that run at the same time, each on one CPU")
	cmd.Flags().DurationVar(&f.wait, "wait", 10*time.Minute, "how long to wait without a coordinator, before a sweep and after one")
	cmd.Flags().BoolVar(&f.quiet, "quiet", false, "print errors only")
	f.accessFlags.add(cmd)
	return cmd
}

func (f *workerFlags) run(cmd *cobra.Command, address string) error {
	if err := kernel.Err(); err != nil {
		return usageError{err}
	}
	if f.wait <= 0 {
		return usagef("--wait: got %v, want more than 0", f.wait)
	}
	url, err := fleet.Address(address)
	if err != nil {
		return usageError{err}
	}
	access, err := f.access()
	if err != nil {
		return err
	}
	if f.cache == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return usagef("no cache folder: %w; give --cache", err)
		}
		f.cache = filepath.Join(dir, "tessera", "worker")
	}
	log := func(text string) {
		if !f.quiet {
			fmt.Fprintln(cmd.ErrOrStderr(), "worker:", spelled(text))
		}
	}
	err = fleet.Work(cmd.Context(), fleet.WorkerOptions{URL: url, Access: access, Jobs: f.jobs, Dirs: data.SearchDirs(f.data), Cache: f.cache, Wait: f.wait, Log: log})
	if errors.Is(err, fleet.ErrIdle) {
		log(err.Error())
		return nil
	}
	return err
}

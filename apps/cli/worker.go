package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"tessera/data"
	"tessera/internal/engine/kernel"
	"tessera/internal/sweep/fleet"
)

func init() {
	Commands.Register("worker", "Take trials of a sweep on another machine", func() Command {
		return &workerCommand{Jobs: runtime.GOMAXPROCS(0), Wait: 10 * time.Minute}
	})
}

type workerCommand struct {
	Address string `arg:"ADDRESS" usage:"nats://HOST[:PORT]" doc:"nats://HOST[:PORT]"`
	dataFlag
	accessFlags
	Cache string        `flag:"cache" is:"place" doc:"folder of fetched data sets and of trials in progress" default:"tessera/worker in the user's cache"`
	Jobs  int           `flag:"jobs" want:"> 0" doc:"number of trials that run at the same time, each on one CPU" default:"one for each CPU"`
	Wait  time.Duration `flag:"wait" want:"> 0" doc:"how long to wait without a coordinator, before a sweep and after one"`
	Quiet bool          `flag:"quiet" doc:"print errors only"`
}

func (f *workerCommand) Help() Help {
	return Help{
		Long: "Take trials of the sweep that `tessera sweep NAME --listen ADDR` runs on another machine, as many at once as this machine has\n" +
			"CPUs. A worker needs no shared disk and no models.toml. Ctrl-C gives the trials back, with their checkpoints.",
		Examples: []string{"tessera worker nats://192.168.1.10 --token-file token"},
	}
}

func (f *workerCommand) Do(cmd *Call) error {
	if err := kernel.Err(); err != nil {
		return usageError{err}
	}
	url, err := fleet.Address(f.Address)
	if err != nil {
		return usageError{err}
	}
	access, err := f.access()
	if err != nil {
		return err
	}
	if f.Cache == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return usagef("no cache folder: %w; give --cache", err)
		}
		f.Cache = filepath.Join(dir, "tessera", "worker")
	}
	log := func(text string) {
		if !f.Quiet {
			fmt.Fprintln(cmd.ErrOrStderr(), "worker:", spelled(text))
		}
	}
	err = fleet.Work(cmd.Context(), fleet.WorkerOptions{URL: url, Access: access, Jobs: f.Jobs, Dirs: data.SearchDirs(f.Data), Cache: f.Cache, Wait: f.Wait, Log: log})
	if errors.Is(err, fleet.ErrIdle) {
		log(err.Error())
		return nil
	}
	return err
}

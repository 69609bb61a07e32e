package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tessera"
	"tessera/config/part"
	"tessera/internal/train/folder"
)

func init() {
	Commands.Register("resume", "Continue a run where it stopped", func() Command {
		return &resumeCommand{previewFlag: previewFlag{automatic}, distributedFlags: oneProcess()}
	})
}

type resumeCommand struct {
	Folder string `arg:"RUN" is:"folder" doc:"the folder of a run"`
	dataFlag
	Threads int         `flag:"threads" want:"in [1,1024]" doc:"number of CPUs to use" default:"as in the run"`
	Backend backendName `flag:"backend" doc:"back end that runs the model" default:"as in the run"`
	progressFlags
	distributedFlags
	previewFlag
	Epochs int `flag:"epochs" want:"> 0" doc:"train the run up to this many epochs (edits its config.toml)"`
}

func (f *resumeCommand) Help() Help {
	return Help{
		Long: "Continue an interrupted or killed run from its last checkpoint. The result is byte-identical to that of an\n" +
			"uninterrupted run. A finished run is not changed; --epochs trains it for longer.\n\n" +
			"Before resuming, you may edit these keys of the run's config.toml: epochs (iterations of a baseline),\n" +
			"checkpoint_seconds, and patience and min_delta of early stopping. Any other change is an error.",
		Examples: []string{"tessera resume runs/shallow", "tessera resume runs/shallow --epochs 1000"},
	}
}

func (f *resumeCommand) Do(cmd *Call) error {
	run, own := f.Folder, runFlags{f.dataFlag, allThreads()}
	if f.Threads > 0 {
		own.Threads = f.Threads
	}
	options, err := f.distributedFlags.options(cmd, &own)
	if err != nil {
		return err
	}
	if f.Threads == 0 {
		options.Threads = 0
	}
	options.Backend = string(f.Backend)
	options.Epochs = f.Epochs
	memberOf(cmd).run = run
	if memberOf(cmd).follows() {
		return following(cmd, options, func(ctx context.Context, o tessera.Options) (*tessera.Run, error) { return tessera.Resume(ctx, run, o) })
	}
	before := derived(run)
	return training(cmd, options, f.progressFlags, f.previewFlag, func(ctx context.Context, o tessera.Options) (*tessera.Run, error) {
		r, err := tessera.Resume(ctx, run, o)
		if err == nil && r.Result.AlreadyFinished {
			finished(cmd, r, before)
		}
		if of, ok := errors.AsType[part.KeyError](err); ok && of.Key == "epochs" { // what config.toml says is wrong with a table.Diagnostics
			err = usagef("--epochs: %s: %s", run, of.Problem)
		}
		return r, err
	})
}

// derived returns the file information of a run's derived files, which changes if a file is rewritten.
func derived(run string) map[string]os.FileInfo {
	files := map[string]os.FileInfo{}
	for _, name := range []string{folder.Model, folder.Best} {
		files[name], _ = os.Stat(filepath.Join(run, name)) // nil if missing
	}
	return files
}

// finished reports the resume of a finished run: a no-op unless derived files were damaged or missing.
func finished(cmd *Call, r *tessera.Run, before map[string]os.FileInfo) {
	var written []string
	for name, is := range derived(r.Path) {
		if was := before[name]; is != nil && (was == nil || !os.SameFile(was, is)) {
			written = append(written, name)
		}
	}
	slices.Sort(written)
	done := "nothing was done"
	if len(written) > 0 {
		done = strings.Join(written, " and ") + " written again"
	}
	cmd.say("%s is finished: %s", r.Path, done)
}

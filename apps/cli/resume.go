package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"tessera"
	"tessera/config/part"
	"tessera/internal/train/folder"
)

func resumeCommand() *cobra.Command {
	var f resumeFlags
	cmd := &cobra.Command{
		Use:   "resume RUN",
		Short: "Continue a run where it stopped",
		Long: "Continue an interrupted or killed run from its last checkpoint. The result is byte-identical to that of an\n" +
			"uninterrupted run. A finished run is not changed; --epochs trains it for longer.\n\n" +
			"Before resuming, you may edit these keys of the run's config.toml: epochs (iterations of a baseline),\n" +
			"checkpoint_seconds, and patience and min_delta of early stopping. Any other change is an error.",
		Example: "  tessera resume runs/shallow\n  tessera resume runs/shallow --epochs 1000",
		RunE:    work(func(cmd *cobra.Command, args []string) error { return f.resume(cmd, args[0]) }),
	}
	aRun(cmd)
	f.runFlags.add(cmd)
	f.progressFlags.add(cmd, "epochs")
	f.distributedFlags.add(cmd)
	f.preview.add(cmd)
	cmd.Flags().Var((*positive)(&f.epochs), "epochs", "train the run up to this many epochs (edits its config.toml)")
	for name, none := range map[string]string{"threads": "0", "backend": ""} {
		flag := cmd.Flags().Lookup(name)
		flag.Usage, flag.DefValue = flag.Usage+" (default as in the run)", none
	}
	return cmd
}

// resumeFlags contains the flags of the command resume.
type resumeFlags struct {
	runFlags
	progressFlags
	distributedFlags
	preview previewFlag
	epochs  int
}

func (f *resumeFlags) resume(cmd *cobra.Command, run string) error {
	options, err := f.distributedFlags.options(cmd, &f.runFlags)
	if err != nil {
		return err
	}
	if !cmd.Flags().Changed("threads") {
		options.Threads = 0
	}
	if !cmd.Flags().Changed("backend") {
		options.Backend = ""
	}
	options.Epochs = f.epochs
	memberOf(cmd).run = run
	if memberOf(cmd).follows() {
		return following(cmd, options, func(ctx context.Context, o tessera.Options) (*tessera.Run, error) { return tessera.Resume(ctx, run, o) })
	}
	before := derived(run)
	return training(cmd, options, f.progressFlags, f.preview, func(ctx context.Context, o tessera.Options) (*tessera.Run, error) {
		r, err := tessera.Resume(ctx, run, o)
		if err == nil && r.Result.AlreadyFinished {
			finished(cmd, r, before)
		}
		var of part.KeyError
		if errors.As(err, &of) && of.Key == "epochs" { // what config.toml says is wrong with a table.Diagnostics
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
func finished(cmd *cobra.Command, r *tessera.Run, before map[string]os.FileInfo) {
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
	fmt.Fprintf(cmd.ErrOrStderr(), "tessera: %s is finished: %s\n", r.Path, done)
}

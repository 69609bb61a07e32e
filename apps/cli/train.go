package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"tessera"
	"tessera/part"
	"tessera/train"
	"tessera/train/folder"
)

// trainFlags are the flags of train only.
type trainFlags struct {
	modelFlags
	runFlags
	progressFlags
	distributedFlags
	preview previewFlag
	out     string
	force   bool
	epochs  int
	seed    uint64
}

func trainCommand() *cobra.Command {
	var f trainFlags
	cmd := &cobra.Command{
		Use:   "train MODEL",
		Short: "Train a model and keep the run",
		Long: "Train a model of models.toml and keep the run in a folder. A run that is interrupted (Ctrl-C) or killed at any moment\n" +
			"can be resumed and gives the same result to the byte.",
		Example: "  tessera train swimmer-parts\n  tessera train shallow-nonneg-kl --data ~/data --epochs 5 --set optimizer.kind=adam",
		Args:    one("model"),
		RunE:    work(func(cmd *cobra.Command, args []string) error { return f.train(cmd, args[0]) }),
	}
	f.modelFlags.add(cmd)
	f.runFlags.add(cmd)
	f.progressFlags.add(cmd, "epochs")
	f.distributedFlags.add(cmd)
	f.preview.add(cmd)
	cmd.Flags().StringVarP(&f.out, "out", "o", "", "folder of the run (default runs/MODEL, then runs/MODEL-2, ...)")
	cmd.Flags().BoolVar(&f.force, "force", false, "replace the run in the folder --out")
	cmd.Flags().IntVar(&f.epochs, "epochs", 0, "number of epochs; short for --set train.epochs=N")
	cmd.Flags().Uint64Var(&f.seed, "seed", 0, "seed; short for --set train.seed=N")
	return cmd
}

func (f *trainFlags) train(cmd *cobra.Command, name string) error {
	if err := errors.Join(f.progressFlags.check(cmd), f.preview.check()); err != nil {
		return err
	}
	options, err := f.distributedFlags.options(cmd, &f.runFlags)
	if err != nil {
		return err
	}
	var sets []string
	if cmd.Flags().Changed("epochs") {
		if f.epochs < 1 {
			return usagef("--epochs: got %d, want > 0", f.epochs)
		}
		sets = append(sets, "train.epochs="+strconv.Itoa(f.epochs))
	}
	if cmd.Flags().Changed("seed") {
		sets = append(sets, "train.seed="+strconv.FormatUint(f.seed, 10))
	}
	options.Out, options.Force = f.out, f.force
	memberOf(cmd).run = f.out
	if memberOf(cmd).follows() { // rank 0 reads the model
		return following(cmd, options, func(ctx context.Context, o tessera.Options) (*tessera.Run, error) { return tessera.Train(ctx, nil, o) })
	}
	f.modelFlags.data = f.runFlags.data
	model, err := f.model(name, sets...)
	if err != nil {
		return f.noEpochs(cmd, name, err)
	}
	warn(cmd, model.Warnings()...)
	if f.out == "" {
		noteUnfinished(cmd, model.Name)
	}
	return training(cmd, options, f.progressFlags, f.preview, func(ctx context.Context, o tessera.Options) (*tessera.Run, error) {
		r, err := tessera.Train(ctx, model, o)
		if err != nil && f.out != "" && slices.ContainsFunc(placing, func(p error) bool { return errors.Is(err, p) }) {
			err = outError{f.out, err}
		}
		return r, err
	})
}

// outError is an error of the path --out; the message begins with the path.
type outError struct {
	path string
	err  error
}

func (e outError) Error() string { return "--out " + e.err.Error() }

// Unwrap gives the cause.
func (e outError) Unwrap() error { return e.err }

// placing are the errors of a path where no run can be created.
var placing = []error{folder.ErrExists, folder.ErrForeign, folder.ErrNotRun, folder.ErrLocked, folder.ErrWorkingFolder}

// noEpochs is the error of --epochs for a baseline, which has iterations instead.
func (f *trainFlags) noEpochs(cmd *cobra.Command, name string, err error) error {
	if !cmd.Flags().Changed("epochs") {
		return err
	}
	if m, other := f.model(name); other == nil && m.Baseline != nil {
		return usagef("--epochs: %s is a baseline (%s) and has no epochs; set its keys, as in --set iterations=50", name, m.Kind)
	}
	return err
}

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
	cmd.Flags().IntVar(&f.epochs, "epochs", 0, "train the run up to this many epochs (edits its config.toml)")
	for name, none := range map[string]string{"threads": "0", "backend": ""} {
		flag := cmd.Flags().Lookup(name)
		flag.Usage, flag.DefValue = flag.Usage+" (default as in the run)", none
	}
	return cmd
}

// resumeFlags are those of resume.
type resumeFlags struct {
	runFlags
	progressFlags
	distributedFlags
	preview previewFlag
	epochs  int
}

func (f *resumeFlags) resume(cmd *cobra.Command, run string) error {
	if err := errors.Join(f.progressFlags.check(cmd), f.preview.check()); err != nil {
		return err
	}
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
	if options.Epochs = f.epochs; cmd.Flags().Changed("epochs") && f.epochs < 1 {
		return usagef("--epochs: got %d, want > 0", f.epochs)
	}
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

// warn prints warnings: valid settings that are probably not intended.
func warn(cmd *cobra.Command, texts ...string) {
	for _, text := range texts {
		fmt.Fprintln(cmd.ErrOrStderr(), "tessera: warning:", text)
	}
}

// derived returns the file information of a run's derived files; rewriting a file changes it.
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

// following trains as a process that neither reads models nor prints.
func following(cmd *cobra.Command, o tessera.Options, begin func(context.Context, tessera.Options) (*tessera.Run, error)) error {
	r, err := begin(cmd.Context(), o)
	if err != nil {
		return err
	}
	return errors.Join(r.Close(), memberOf(cmd).done())
}

// training shows the progress of a training and its result.
func training(cmd *cobra.Command, o tessera.Options, f progressFlags, p previewFlag, begin func(context.Context, tessera.Options) (*tessera.Run, error)) error {
	show := newProgress(cmd.ErrOrStderr(), f)
	o.Report = func(p train.Progress) {
		memberOf(cmd).run = p.Run
		show.Show(p)
	}
	o.Warn = func(text string) { warn(cmd, text) }
	memberOf(cmd).began(cmd.ErrOrStderr(), o.Threads)
	r, err := begin(cmd.Context(), o)
	show.End()
	if err != nil {
		return err
	}
	defer r.Close()
	if err := memberOf(cmd).done(); err != nil {
		return err
	}
	debug.FreeOSMemory() // frees the memory of the training before the results are computed
	if !r.Result.AlreadyFinished {
		if err := results(cmd, r); err != nil {
			return err
		}
		return p.show(cmd, r)
	}
	if _, err := os.Stat(filepath.Join(r.Path, folder.Picture)); errors.Is(err, fs.ErrNotExist) { // killed before it was drawn
		return atoms(cmd, r)
	}
	return nil
}

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

	"github.com/spf13/cobra"
	"tessera"
	"tessera/apps/show/doc"
	"tessera/internal/train"
	"tessera/internal/train/folder"
)

// trainFlags contains the flags that only the command train has.
type trainFlags struct {
	modelFlags
	runFlags
	progressFlags
	distributedFlags
	preview previewFlag
	out     string
	force   bool
	chained bool
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
	cmd.Flags().BoolVar(&f.chained, "chain", false, "first train the models from whose runs (runs/MODEL) this one starts, unless these runs are finished; again after an interruption, it continues")
	cmd.Flags().Var((*positive)(&f.epochs), "epochs", "number of epochs; short for --set train.epochs=N")
	cmd.Flags().Uint64Var(&f.seed, "seed", 0, "seed; short for --set train.seed=N")
	return cmd
}

func (f *trainFlags) train(cmd *cobra.Command, name string) error {
	options, err := f.distributedFlags.options(cmd, &f.runFlags)
	if err != nil {
		return err
	}
	var sets []string
	if f.epochs > 0 {
		sets = append(sets, "train.epochs="+strconv.Itoa(f.epochs))
	}
	if cmd.Flags().Changed("seed") {
		sets = append(sets, "train.seed="+strconv.FormatUint(f.seed, 10))
	}
	if f.chained && (f.force || options.Group != nil) {
		return usagef("--chain: cannot be combined with --force or with several processes; remove the runs that are to be trained again, or train one model after the other")
	}
	options.Out, options.Force = f.out, f.force
	memberOf(cmd).run = f.out
	if memberOf(cmd).follows() { // rank 0 reads the model
		return following(cmd, options, func(ctx context.Context, o tessera.Options) (*tessera.Run, error) { return tessera.Train(ctx, nil, o) })
	}
	f.modelFlags.data = f.runFlags.data
	if f.chained {
		links, err := f.chain(name, sets)
		if err != nil {
			return err
		}
		return f.trainChain(cmd, options, links)
	}
	model, err := f.model(name, sets...)
	if err != nil {
		return f.noEpochs(name, f.epochs, err)
	}
	warn(cmd, model.Warnings()...)
	if text := usedColumns(cmd.Context(), model); text != "" && !f.quiet {
		fmt.Fprintln(cmd.ErrOrStderr(), "samples", text)
	}
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

// outError is an error about the path --out. Its message begins with the path.
type outError struct {
	path string
	err  error
}

func (e outError) Error() string { return "--out " + e.err.Error() }

// Unwrap returns the cause.
func (e outError) Unwrap() error { return e.err }

// placing lists the errors for a path at which no run can be created.
var placing = []error{folder.ErrExists, folder.ErrForeign, folder.ErrNotRun, folder.ErrLocked, folder.ErrWorkingFolder}

// noEpochs returns the error for --epochs for a baseline, which has iterations instead.
func (f *modelFlags) noEpochs(name string, epochs int, err error) error {
	if epochs == 0 {
		return err
	}
	if m, other := f.model(name); other == nil && m.Baseline != nil {
		return usagef("--epochs: %s is a baseline (%s) and has no epochs; set its keys, as in --set iterations=50", name, m.Kind)
	}
	return err
}

// warn prints warnings: valid settings that are probably not intended.
func warn(cmd *cobra.Command, texts ...string) {
	for _, text := range texts {
		complain(cmd.ErrOrStderr(), doc.Warn, "tessera: warning: "+text)
	}
}

// following trains in a process other than rank 0, which neither reads models nor prints.
func following(cmd *cobra.Command, o tessera.Options, begin func(context.Context, tessera.Options) (*tessera.Run, error)) error {
	r, err := begin(cmd.Context(), o)
	if err != nil {
		return err
	}
	return errors.Join(r.Close(), memberOf(cmd).done())
}

// training trains, and shows the progress and the result.
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
		return atoms(cmd.Context(), cmd, r)
	}
	return nil
}

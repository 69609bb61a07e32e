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

	"tessera"
	"tessera/apps/show/doc"
	"tessera/internal/train"
	"tessera/internal/train/folder"
)

func init() {
	Commands.Register("train", "Train a model and keep the run", func() Command {
		return &trainCommand{threadFlags: allThreads(), previewFlag: previewFlag{automatic}, distributedFlags: oneProcess()}
	})
}

type trainCommand struct {
	Model string `arg:"MODEL" is:"model" doc:"the name of a model"`
	modelFlags
	threadFlags
	progressFlags
	distributedFlags
	previewFlag
	Out      string `flag:"out,o" is:"place" doc:"folder of the run" default:"runs/MODEL, then runs/MODEL-2, ..."`
	Force    bool   `flag:"force" doc:"replace the run in the folder --out, by default runs/MODEL"`
	Chain    bool   `flag:"chain" without:"force distributed" doc:"first train the models from whose runs (runs/MODEL) this one starts, unless these runs are finished; again after an interruption, it continues"`
	Restarts int    `flag:"restarts" want:"> 1" without:"force chain distributed" doc:"train from N seeds, the model's seed and those that follow, and keep the run whose objective is the least on the samples that all seeds have: each holds out others; again after an interruption, it continues"`
	Epochs   int    `flag:"epochs" want:">= 0" doc:"number of epochs; short for --set train.epochs=N"`
	Seed     uint64 `flag:"seed" doc:"seed; short for --set train.seed=N"`
}

func (f *trainCommand) Help() Help {
	return Help{
		Long: "Train a model of models.toml and keep the run in a folder. A run that is interrupted (Ctrl-C) or killed at any moment\n" +
			"can be resumed and gives the same result to the byte.",
		Examples: []string{"tessera train swimmer-parts", "tessera train shallow-nonneg-kl --data ~/data --epochs 5 --set optimizer.kind=adam"},
	}
}

func (f *trainCommand) Do(cmd *Call) error {
	name, runs := f.Model, runFlags{f.dataFlag, f.threadFlags}
	options, err := f.distributedFlags.options(cmd, &runs)
	if err != nil {
		return err
	}
	var sets []string
	if cmd.Given("epochs") {
		sets = append(sets, "train.epochs="+strconv.Itoa(f.Epochs))
	}
	if cmd.Given("seed") {
		sets = append(sets, "train.seed="+strconv.FormatUint(f.Seed, 10))
	}
	options.Out, options.Force = f.Out, f.Force
	memberOf(cmd).run = f.Out
	if memberOf(cmd).follows() { // rank 0 reads the model
		return following(cmd, options, func(ctx context.Context, o tessera.Options) (*tessera.Run, error) { return tessera.Train(ctx, nil, o) })
	}
	if f.Chain {
		links, err := f.chain(name, sets)
		if err != nil {
			return err
		}
		return f.trainChain(cmd, options, links)
	}
	model, err := f.model(name, sets...)
	if err != nil {
		return f.noEpochs(name, f.Epochs, err)
	}
	if f.Restarts > 0 {
		return f.trainRestarts(cmd, options, model, sets)
	}
	warn(cmd, model.Warnings()...)
	if text := usedColumns(cmd.Context(), model); text != "" && !f.Quiet {
		fmt.Fprintln(cmd.ErrOrStderr(), "data:", text)
	}
	if f.Out == "" && !f.Force {
		noteUnfinished(cmd, model.Name)
	}
	return training(cmd, options, f.progressFlags, f.previewFlag, func(ctx context.Context, o tessera.Options) (*tessera.Run, error) {
		r, err := tessera.Train(ctx, model, o)
		if err != nil && f.Out != "" && slices.ContainsFunc(placing, func(p error) bool { return errors.Is(err, p) }) {
			err = outError{f.Out, err}
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

func (e outError) Unwrap() error { return e.err }

// placing lists the errors for a path at which no run can be created.
var placing = []error{folder.ErrExists, folder.ErrForeign, folder.ErrNotRun, folder.ErrLocked, folder.ErrWorkingFolder}

// noEpochs returns the error for --epochs for a baseline, which has iterations instead.
func (f *modelFlags) noEpochs(name string, epochs int, err error) error {
	if epochs == 0 {
		return err
	}
	if m, other := f.model(name); other == nil && m.Training().Method != "" {
		return usagef("--epochs: %s is a baseline (%s) and has no epochs; set its keys, as in --set iterations=50", name, m.Kind)
	}
	return err
}

// warn prints warnings: valid settings that are probably not intended.
func warn(cmd *Call, texts ...string) {
	for _, text := range texts {
		complain(cmd.ErrOrStderr(), doc.Warn, "tessera: warning: "+text)
	}
}

// following trains in a process other than rank 0, which neither reads models nor prints.
func following(cmd *Call, o tessera.Options, begin func(context.Context, tessera.Options) (*tessera.Run, error)) error {
	r, err := begin(cmd.Context(), o)
	if err != nil {
		return err
	}
	return errors.Join(r.Close(), memberOf(cmd).done())
}

// training trains, and shows the progress and the result.
func training(cmd *Call, o tessera.Options, f progressFlags, p previewFlag, begin func(context.Context, tessera.Options) (*tessera.Run, error)) error {
	memberOf(cmd).began(cmd.ErrOrStderr(), o.Threads)
	if os.Getenv("GOGC") == "" {
		defer debug.SetGCPercent(debug.SetGCPercent(50)) // most of the memory are samples, which a collection does not read
	}
	r, err := progressing(cmd, o, f, begin)
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

// progressing trains and shows the progress.
func progressing(cmd *Call, o tessera.Options, f progressFlags, begin func(context.Context, tessera.Options) (*tessera.Run, error)) (*tessera.Run, error) {
	show := newProgress(cmd.ErrOrStderr(), f)
	defer show.End()
	o.Report = func(p train.Progress) {
		memberOf(cmd).run = p.Run
		show.Show(p)
	}
	o.Warn = func(text string) { warn(cmd, text) }
	r, err := begin(cmd.Context(), o)
	if err == nil {
		show.Measures()
	}
	return r, err
}

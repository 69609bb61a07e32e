package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"tessera/config"
	"tessera/data"
	"tessera/kernel"
	"tessera/sweep"
)

// sweepFlags are the flags of sweep.
type sweepFlags struct {
	modelFlags
	metricFlags
	progressFlags
	fleetFlags
	out    string
	epochs int
	seeds  []uint
	jobs   int
	dry    bool
	clean  bool
	array  arrayFlags
	cost   planFlags
}

func sweepCommand() *cobra.Command {
	var f sweepFlags
	cmd := &cobra.Command{
		Use:   "sweep NAME",
		Short: "Train and measure every combination of settings",
		Long: "Train and measure every trial of a sweep of models.toml, one trial per CPU at a time. To resume a sweep that was\n" +
			"interrupted or killed, run the same command again: no trial is repeated, and the results are the same to the byte.",
		Example: "  tessera sweep figure8 --dry-run\n  tessera sweep figure8 --epochs 50\n  tessera sweep figure8 --emit slurm -o /shared/figure8\n  tessera sweep figure8 --collect /shared/figure8",
		Args:    one("sweep"),
		RunE:    work(func(cmd *cobra.Command, args []string) error { return f.sweep(cmd, args[0]) }),
	}
	f.add(cmd, "sweeps/NAME")
	f.array.add(cmd)
	f.cost.add(cmd)
	for _, remote := range []string{"listen", "nats"} {
		cmd.MarkFlagsMutuallyExclusive("emit", "collect", "plan", "dry-run", remote)
	}
	return cmd
}

// add adds the flags of commands that train a sweep in that folder.
func (f *sweepFlags) add(cmd *cobra.Command, folder string) {
	f.modelFlags.add(cmd)
	cmd.ValidArgsFunction = f.complete
	addDataFlag(cmd, &f.data)
	cmd.Flags().StringVarP(&f.out, "out", "o", "", "folder of the sweep (default "+folder+")")
	cmd.Flags().IntVar(&f.epochs, "epochs", 0, "number of epochs, or of iterations of iterative baselines")
	cmd.Flags().UintSliceVar(&f.seeds, "seeds", nil, "seeds of the trials, such as 1,2,3, in place of those of the sweep")
	cmd.Flags().Lookup("seeds").DefValue = "" // else help shows an empty list
	cmd.Flags().IntVar(&f.jobs, "jobs", runtime.GOMAXPROCS(0), "number of trials that run at the same time, each on one CPU")
	f.metricFlags.add(cmd)
	f.progressFlags.add(cmd, "trials")
	f.fleetFlags.add(cmd)
	cmd.Flags().BoolVar(&f.dry, "dry-run", false, "show the trials and their progress without training")
	cmd.Flags().BoolVar(&f.clean, "clean", false, "remove trials of earlier declarations from the folder, and results that are only theirs")
}

// complete lists the sweeps for the shell.
func (f *sweepFlags) complete(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	models, err := f.load()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return models.SweepNames(), cobra.ShellCompDirectiveNoFileComp
}

func (f *sweepFlags) sweep(cmd *cobra.Command, name string) error {
	if err := errors.Join(f.array.check(cmd), f.fleetFlags.check(cmd)); err != nil {
		return err
	}
	if f.array.collect != "" {
		return f.gather(cmd, name)
	}
	spec, err := f.declared(cmd, name)
	if err != nil {
		return err
	}
	cores, err := f.cost.machines(f.jobs)
	switch {
	case err != nil:
		return err
	case f.array.emit != "":
		return f.writeJob(cmd, spec)
	case f.cost.plan:
		return f.estimate(cmd, spec, cores)
	}
	return f.run(cmd, spec, func(s *sweep.Sweep, results *sweep.Results) error {
		return printResults(cmd.OutOrStdout(), s, results)
	})
}

// run runs a sweep and prints the results, also if trials failed. With --dry-run it only shows the trials.
func (f *sweepFlags) run(cmd *cobra.Command, spec *config.Sweep, say func(*sweep.Sweep, *sweep.Results) error) error {
	if err := kernel.Err(); err != nil {
		return usageError{err}
	}
	show := newSweepProgress(cmd.ErrOrStderr(), f.progressFlags)
	chosen, err := f.chosen()
	if err != nil {
		return err
	}
	o := sweep.Options{Dirs: data.SearchDirs(f.data), Out: f.out, Jobs: f.jobs, Metrics: chosen, Clean: f.clean, Report: show.Show}
	if err := f.onMachines(&o, show); err != nil {
		return err
	}
	s, err := sweep.New(cmd.Context(), spec, o)
	if err != nil {
		return err
	}
	if f.dry {
		if err := s.Replaces(); err != nil && !f.clean {
			warn(cmd, err.Error())
		}
		return printTrials(cmd.OutOrStdout(), s)
	}
	results, err := show.During(cmd.Context(), s)
	var failed *sweep.Failed
	if err != nil && !errors.As(err, &failed) {
		return err
	}
	err = errors.Join(say(s, results), err)
	if n := len(s.Orphans()); n > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "tessera: %s in %s: not of this declaration; --dry-run lists, --clean removes\n", counted(n, "other trial"), filepath.Join(s.Path, "trials"))
	}
	return err
}

// declared returns the sweep of that name with the changes of the flags.
func (f *sweepFlags) declared(cmd *cobra.Command, name string) (*config.Sweep, error) {
	if err := f.checkJobs(f.jobs); err != nil {
		return nil, err
	}
	if cmd.Flags().Changed("epochs") && f.epochs < 1 {
		return nil, usagef("--epochs: got %d, want > 0", f.epochs)
	}
	if err := f.progressFlags.check(cmd); err != nil {
		return nil, err
	}
	models, err := f.load()
	if err != nil {
		return nil, err
	}
	changes, err := parseSets(f.sets)
	if err != nil {
		return nil, err
	}
	if f.epochs > 0 {
		changes = append(changes, config.Passes(f.epochs))
	}
	if cmd.Flags().Changed("seeds") {
		seeds, err := f.chosenSeeds(changes)
		if err != nil {
			return nil, err
		}
		changes = append(changes, seeds)
	}
	return models.Sweep(name, changes...)
}

// chosenSeeds is the change that --seeds asks for.
func (f *sweepFlags) chosenSeeds(changes []config.Set) (config.Set, error) {
	var list []uint64
	for _, seed := range f.seeds {
		list = append(list, uint64(seed))
	}
	if slices.ContainsFunc(changes, func(s config.Set) bool { return s.Root.Child("train").Child("seed") != nil }) {
		return config.Set{}, usagef("--seeds: --set train.seed sets the seed too; give one of the two")
	}
	seeds, err := config.Seeds(list)
	if err != nil {
		return seeds, usagef("--%s", strings.TrimPrefix(err.Error(), "config: "))
	}
	return seeds, nil
}

// printTrials shows the trials of a sweep.
func printTrials(out io.Writer, s *sweep.Sweep) error {
	t := newTable(out)
	t.row(cells([]string{"trial", "model"}, s.Keys, []string{"seed", "state"})...)
	for _, trial := range s.Trials {
		t.row(cells([]string{trial.ID, trial.Model.Name}, trial.Texts(), []string{fmt.Sprint(trial.Model.Train.Seed), string(s.State(trial))})...)
	}
	for _, id := range s.Orphans() {
		t.row(cells([]string{id, "-"}, slices.Repeat([]string{"-"}, len(s.Keys)), []string{"-", "not of this declaration"})...)
	}
	return t.flush()
}

// shownMetrics are the columns of the table at the end of a sweep; the files contain all metrics.
var shownMetrics = []string{"mse", "hoyer", "hoyer_contribution", "max_approx", "dead_units", "accuracy", "svm_accuracy"}

// printResults prints one row per setting, the selected settings with their metrics on the test images, and the paths of
// the complete results.
func printResults(out io.Writer, s *sweep.Sweep, r *sweep.Results) error {
	fmt.Fprintf(out, "measured on %s\n\n", splitText(r.Split))
	if err := printSettings(out, r.Keys, r.Settings); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nsweep  %s\n", filepath.Join(s.Path, sweep.TableFile))
	if len(r.Selected) == 0 {
		return nil
	}
	var criteria []string
	for _, c := range r.Select {
		criteria = append(criteria, c.String())
	}
	fmt.Fprintf(out, "\nselected by %s, measured on %s\n\n", strings.Join(criteria, ", "), splitText(string(s.SelectedOn())))
	if err := printSettings(out, r.Keys, r.Selected); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\nselected  %s\n", filepath.Join(s.Path, sweep.SelectedFile))
	return err
}

// splitText names a split in a sentence.
func splitText(split string) string {
	if split == string(data.AllSplit) {
		return "the whole data set"
	}
	return fmt.Sprintf("the %s split", split)
}

// printSettings prints one row per setting.
func printSettings(out io.Writer, keys []string, settings []sweep.Setting) error {
	shown := slices.DeleteFunc(slices.Clone(shownMetrics), func(name string) bool {
		return !slices.ContainsFunc(settings, func(s sweep.Setting) bool { _, ok := s.Mean.Number(name); return ok })
	})
	t := newTable(out)
	t.row(cells([]string{"model"}, keys, []string{"seeds"}, shown)...)
	for _, s := range settings {
		row := cells([]string{s.Model}, s.Texts(keys), []string{fmt.Sprintf("%d of %d", len(s.Seeds), len(s.Trials))})
		for _, name := range shown {
			row = append(row, meanText(s, name))
		}
		t.row(row...)
	}
	return t.flush()
}

// meanText prints a metric's mean, with its deviation if there are several seeds.
func meanText(s sweep.Setting, name string) string {
	mean, known := s.Mean.Number(name)
	deviation, several := s.Deviation.Number(name)
	switch {
	case !known:
		return "-"
	case several:
		return fmt.Sprintf("%s ± %.2g", number(mean), deviation)
	}
	return number(mean)
}

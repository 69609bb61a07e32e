package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"tessera/config"
	"tessera/data"
	"tessera/internal/engine/kernel"
	"tessera/internal/sweep"
	"tessera/internal/sweep/fleet"
	"tessera/metrics"
)

// sweepFlags contains the flags of the command sweep.
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

// add adds the flags of commands that train a sweep in the given folder.
func (f *sweepFlags) add(cmd *cobra.Command, folder string) {
	f.modelFlags.add(cmd)
	cmd.ValidArgsFunction = f.complete
	addDataFlag(cmd, &f.data)
	cmd.Flags().StringVarP(&f.out, "out", "o", "", "folder of the sweep (default "+folder+")")
	cmd.Flags().Var((*positive)(&f.epochs), "epochs", "number of epochs, or of iterations of iterative baselines")
	cmd.Flags().UintSliceVar(&f.seeds, "seeds", nil, "seeds of the trials, such as 1,2,3, in place of those of the sweep")
	cmd.Flags().Lookup("seeds").DefValue = "" // else help shows an empty list
	cmd.Flags().IntVar(&f.jobs, "jobs", runtime.GOMAXPROCS(0), "number of trials that run at the same time, each on one CPU")
	f.metricFlags.add(cmd)
	f.progressFlags.add(cmd, "trials")
	f.fleetFlags.add(cmd)
	cmd.Flags().BoolVar(&f.dry, "dry-run", false, "show the trials and their progress without training")
	cmd.Flags().BoolVar(&f.clean, "clean", false, "remove trials of earlier declarations from the folder, and results that are only theirs")
}

// complete lists the sweeps for shell completion.
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
	models, err := f.load()
	if err != nil {
		return err
	}
	spec, err := f.declared(cmd, models, name)
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
		return printResults(cmd.OutOrStdout(), s, results, f.asked())
	})
}

// run runs a sweep and prints the results, even if trials failed. With --dry-run it only shows the trials.
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
	for _, name := range f.names {
		if cmd.Flags().Changed("metrics") && measured(results) && len(valuesOf(results, []string{name})) == 0 {
			warn(cmd, fmt.Sprintf("--metrics: %s applies to no trial of this sweep, or has no value", name))
		}
	}
	err = errors.Join(say(s, results), err)
	if n := len(s.Orphans()); n > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "tessera: %s in %s: not of this declaration; --dry-run lists, --clean removes\n", counted(n, "other trial"), filepath.Join(s.Path, "trials"))
	}
	return err
}

// declared returns the named sweep of some models with the changes of the flags.
func (f *sweepFlags) declared(cmd *cobra.Command, models *config.File, name string) (*config.Sweep, error) {
	if err := f.checkJobs(f.jobs); err != nil {
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
	spec, err := models.Sweep(name, changes...)
	if err != nil {
		return nil, err
	}
	for _, u := range spec.Unfit {
		with := fmt.Sprintf("--epochs %d", f.epochs)
		if u.Values != "" {
			with += " and " + u.Values
		}
		warn(cmd, fmt.Sprintf("model %q has no trial with %s: %s", u.Model, with, u.Reason))
	}
	return spec, nil
}

// chosenSeeds returns the change of a model for the seeds of --seeds.
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

// asked returns the names of the metrics that the flags select; nil selects the default metrics.
func (f *metricFlags) asked() []string {
	if f.svm && len(f.names) > 0 {
		return append(slices.Clone(f.names), "svm", "svm_holdout")
	}
	return f.names
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

// briefMetrics lists the default columns of the table of a sweep; the files contain all metrics.
var briefMetrics = []string{"mse", "hoyer", "hoyer_contribution", "max_approx", "dead_units", "accuracy", "svm_accuracy"}

// measured reports whether a trial has metrics.
func measured(r *sweep.Results) bool {
	return slices.ContainsFunc(r.Trials, func(row sweep.Row) bool { return row.Metrics != nil })
}

// columnsOf returns the metrics in the table of a sweep, including those of heads: the requested metrics, by name or glob, and
// the metrics that select settings.
func columnsOf(r *sweep.Results, asked []string) (columns []string) {
	if len(asked) == 0 {
		asked = briefMetrics
	}
	for _, c := range r.Select {
		asked = append(slices.Clone(asked), c.Metric[strings.LastIndex(c.Metric, ".")+1:])
	}
	return valuesOf(r, asked)
}

// valuesOf returns the names of the values that some trial has of the metrics asked for, by name or glob, including those of heads.
func valuesOf(r *sweep.Results, asked []string) (columns []string) {
	for _, name := range asked {
		chosen, err := metrics.Select(name)
		if err != nil { // of a command with other parts
			continue
		}
		for _, one := range chosen {
			for _, row := range r.Trials {
				if row.Metrics == nil {
					continue
				}
				measured, ok := metrics.Selection{one}.Of(row.Metrics)
				for i := 0; ok && i < len(measured.Values); i++ {
					if v := measured.Values[i]; v.Missing == "" && !slices.Contains(columns, v.Name) {
						columns = append(columns, v.Name)
					}
				}
			}
		}
	}
	return columns
}

// printResults prints one row per setting, then the selected settings with their metrics on the test images, then the paths of
// the complete results.
func printResults(out io.Writer, s *sweep.Sweep, r *sweep.Results, asked []string) error {
	shown := columnsOf(r, asked)
	fmt.Fprintf(out, "measured on %s\n\n", splitText(r.Split))
	if err := printSettings(out, r.Keys, r.Settings, shown); err != nil {
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
	if err := printSettings(out, r.Keys, r.Selected, shown); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\nselected  %s\n", filepath.Join(s.Path, sweep.SelectedFile))
	return err
}

// splitText returns the name of a split for use in a sentence.
func splitText(split string) string {
	if split == string(data.AllSplit) {
		return "the whole data set"
	}
	return fmt.Sprintf("the %s split", split)
}

// printSettings prints one row per setting.
func printSettings(out io.Writer, keys []string, settings []sweep.Setting, shown []string) error {
	shown = slices.DeleteFunc(slices.Clone(shown), func(name string) bool {
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

// planFlags contains the flags of sweep --plan.
type planFlags struct {
	plan, json bool
	cores      []string
}

func (f *planFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.plan, "plan", false, "estimate the time and the memory of the sweep by a few steps of each shape, without training it")
	cmd.Flags().StringSliceVar(&f.cores, "cores", nil, "with --plan: the cores of the sweep, one number per machine as in 16 or 8,8,4 (default --jobs)")
	cmd.Flags().BoolVar(&f.json, "json", false, "with --plan: print JSON")
}

// machines returns the number of cores of each machine.
func (f *planFlags) machines(jobs int) ([]int, error) {
	if len(f.cores) > 0 && !f.plan || f.json && !f.plan {
		return nil, usagef("--cores, --json: need --plan")
	}
	if len(f.cores) == 0 {
		return []int{jobs}, nil
	}
	var all []int
	for _, text := range f.cores {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 || n > mostCores {
			return nil, usagef("--cores: got %q, want numbers from 1 to %d", text, mostCores)
		}
		all = append(all, n)
	}
	return all, nil
}

// mostCores is the maximum number of cores of one machine. A larger number is probably a typo.
const mostCores = 1 << 16

// estimate prints the plan of a sweep.
func (f *sweepFlags) estimate(cmd *cobra.Command, spec *config.Sweep, cores []int) error {
	chosen, err := f.chosen()
	if err != nil {
		return err
	}
	jobs := min(f.jobs, runtime.GOMAXPROCS(0))
	s, err := sweep.New(cmd.Context(), spec, sweep.Options{Dirs: data.SearchDirs(f.data), Out: f.out, Jobs: jobs, Metrics: chosen})
	if err != nil {
		return err
	}
	p, err := s.Plan(cmd.Context(), sweep.PlanOptions{Cores: cores, Report: func(shape, of int) {
		if !f.quiet {
			fmt.Fprintf(cmd.ErrOrStderr(), "timing shape %d of %d\n", shape, of)
		}
	}})
	if err != nil {
		return err
	}
	if f.cost.json {
		return printJSON(cmd.OutOrStdout(), p)
	}
	return printPlan(cmd.OutOrStdout(), s, p)
}

// printPlan prints a plan: the shapes, the models, the totals and the assumptions.
func printPlan(out io.Writer, s *sweep.Sweep, p *sweep.Plan) error {
	fmt.Fprintf(out, "sweep %s: %s", p.Sweep, counted(p.Trials, "trial"))
	if p.Done > 0 {
		fmt.Fprintf(out, ", %d of them done", p.Done)
	}
	fmt.Fprintf(out, "\ntimed on %s: %s, %d at once\n\n", p.Machine, counted(len(p.PerShape), "shape"), p.AtOnce)
	t := newTable(out)
	t.row(cells([]string{"model"}, s.Keys, []string{"trials", "step", "epoch", "evaluation", "trial", "memory"})...)
	for _, one := range p.PerShape {
		name := one.Models[0]
		if others := len(one.Models) - 1; others > 0 {
			name += fmt.Sprintf(" and %d more", others)
		}
		costs := []string{brief(one.Step), brief(one.Epoch), brief(one.Evaluation), brief(one.Trial), mebibytes(one.Memory)}
		t.row(cells([]string{name}, one.Values, []string{fmt.Sprint(one.Trials)}, costs)...)
	}
	if err := t.flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	t = newTable(out)
	t.row("model", "trials", "on one core")
	for _, m := range p.PerModel {
		t.row(m.Model, m.Trials, lasting(m.Work))
	}
	if len(p.PerModel) > 1 {
		t.row("all", p.Trials-p.Done, lasting(p.Work))
	}
	if err := t.flush(); err != nil {
		return err
	}
	return printTotals(out, p)
}

// printTotals prints the time on the given cores and the memory of each machine.
func printTotals(out io.Writer, p *sweep.Plan) error {
	total := 0
	for _, n := range p.Cores {
		total += n
	}
	fmt.Fprintf(out, "\n%s on %s; the longest trial takes %s\n", lasting(p.Seconds), counted(total, "core"), lasting(p.Longest))
	seen := map[int]bool{}
	for i, n := range p.Cores {
		if !seen[n] {
			seen[n] = true
			fmt.Fprintf(out, "%s of memory on a machine with %s, %s of it before the first trial\n",
				mebibytes(p.Memory[i]), counted(n, "core"), mebibytes(p.Images))
		}
	}
	fmt.Fprintln(out, "\nassumed:")
	for _, line := range slices.Sorted(slices.Values(p.Assumes)) {
		fmt.Fprintln(out, "- "+line)
	}
	return nil
}

// brief prints the seconds of a step or an epoch with three digits.
func brief(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	digits := time.Duration(1)
	for d/digits >= 1000 {
		digits *= 10
	}
	return d.Round(digits).String()
}

// lasting formats the duration of a sweep, in seconds, as hours, minutes or seconds.
func lasting(seconds float64) string {
	switch {
	case seconds >= 2*3600:
		return fmt.Sprintf("%.3g hours", seconds/3600)
	case seconds >= 120:
		return fmt.Sprintf("%.3g minutes", seconds/60)
	}
	return fmt.Sprintf("%.3g seconds", seconds)
}

// mebibytes formats a size.
func mebibytes(n int64) string {
	if n >= 10<<30 {
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// accessFlags contains the flags that secure the connection to a queue.
type accessFlags struct {
	token, certificate, key, authority string
}

func (f *accessFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.token, "token-file", "", "file whose first line is the secret that coordinator and workers share")
	cmd.Flags().StringVar(&f.certificate, "tls-cert", "", "certificate of this machine, PEM")
	cmd.Flags().StringVar(&f.key, "tls-key", "", "private key of --tls-cert, PEM")
	cmd.Flags().StringVar(&f.authority, "tls-ca", "", "certificates that verify those of the other side, PEM")
	cmd.MarkFlagsRequiredTogether("tls-cert", "tls-key")
}

// access returns the access to the queue, with the token that it reads.
func (f *accessFlags) access() (a fleet.Access, err error) {
	a = fleet.Access{Certificate: f.certificate, Key: f.key, Authority: f.authority}
	if f.token != "" {
		if a.Token, err = fleet.ReadToken(f.token); err != nil {
			var unread *fs.PathError
			if errors.As(err, &unread) {
				return a, usagef("--token-file: %v", err)
			}
			return a, usagef("--token-file: %w", err)
		}
	}
	return a, nil
}

// fleetFlags contains the flags of a sweep on several machines.
type fleetFlags struct {
	accessFlags
	listen, url string
	lease       time.Duration
	same        bool
}

func (f *fleetFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.listen, "listen", "", "address of a queue for workers on other machines, HOST:PORT; --jobs 0 trains on them alone")
	cmd.Flags().StringVar(&f.url, "nats", "", "URL of an existing NATS server with JetStream, instead of --listen")
	cmd.Flags().DurationVar(&f.lease, "lease", 30*time.Second, "with workers: how long a worker may be silent before its trials are given to others")
	cmd.Flags().BoolVar(&f.same, "same-kernels", false, "with workers: refuse a worker whose CPU selects other kernels than that of the first one")
	f.accessFlags.add(cmd)
	cmd.MarkFlagsMutuallyExclusive("listen", "nats")
}

// check returns an error if flags for workers are given for a sweep without workers.
func (f *fleetFlags) check(cmd *cobra.Command) error {
	for _, name := range []string{"lease", "same-kernels", "token-file", "tls-cert", "tls-key", "tls-ca"} {
		if cmd.Flags().Changed(name) && !f.used() {
			return usagef("--%s: needs --listen or --nats", name)
		}
	}
	return nil
}

// used reports whether the sweep has workers.
func (f *fleetFlags) used() bool { return f.listen != "" || f.url != "" }

// checkJobs checks --jobs: a sweep without workers needs trials in this process.
func (f *fleetFlags) checkJobs(jobs int) error {
	switch {
	case jobs < 0 && f.used():
		return usagef("--jobs: got %d, want >= 0", jobs)
	case jobs < 1 && !f.used():
		return usagef("--jobs: got %d, want > 0", jobs)
	}
	return nil
}

// onMachines configures a sweep for several machines if the flags ask for workers.
func (f *fleetFlags) onMachines(o *sweep.Options, show *sweepProgress) error {
	if !f.used() {
		return nil
	}
	if f.lease < time.Second || f.lease > 24*time.Hour {
		return usagef("--lease: got %v, want from 1s to 24h", f.lease)
	}
	access, err := f.access()
	if err != nil {
		return err
	}
	c := fleet.Options{Listen: f.listen, Access: access, Jobs: o.Jobs, Lease: f.lease, SameKernels: f.same, Dirs: o.Dirs, Log: show.Note}
	c.Listening = func(address, url string) { show.Note(fmt.Sprintf("listening on %s: tessera worker %s", address, url)) }
	c.Mixed = func(kernels, others string) {
		show.Note(fmt.Sprintf("warning: the workers have different kernels (%s and %s): the last bits of results depend on which machine takes a trial; --same-kernels keeps to one kind", kernels, others))
	}
	if f.url != "" {
		if c.URL, err = fleet.Address(f.url); err != nil {
			return usagef("--nats: %w", err)
		}
	}
	if err := c.Check(); err != nil {
		return usageError{fmt.Errorf("--%w", err)}
	}
	coordinator := fleet.NewCoordinator(c)
	o.Executor, o.Jobs, show.fleet = coordinator, max(1, o.Jobs), coordinator.Fleet
	return nil
}

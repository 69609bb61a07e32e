package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"tessera/apps/show/comparison"
	"tessera/apps/show/doc"
	"tessera/config"
	"tessera/data"
	"tessera/internal/engine/kernel"
	"tessera/internal/lists"
	"tessera/internal/numeral"
	"tessera/internal/sweep"
	"tessera/internal/sweep/fleet"
	"tessera/metrics"
)

func init() {
	Commands.Register("sweep", "Train and measure every combination of settings", func() Command {
		return &sweepCommand{sweepFlags: forSweeps(), arrayFlags: arrayFlags{PerTask: 1, MostJob: 1001}}
	})
}

type sweepFlags struct {
	modelFlags
	metricFlags
	progressFlags
	fleetFlags
	Out    string   `flag:"out,o" is:"place" doc:"folder of the sweep" default:"sweeps/NAME"`
	Epochs int      `flag:"epochs" want:"> 0" doc:"number of epochs, or of iterations of iterative baselines"`
	Seeds  []uint64 `flag:"seeds" doc:"seeds of the trials, such as 1,2,3, in place of those of the sweep"`
	Jobs   int      `flag:"jobs" want:">= 0" doc:"number of trials that run at the same time, each on one CPU" default:"one for each CPU"`
	Dry    bool     `flag:"dry-run" without:"listen nats" doc:"show the trials and their progress without training"`
	Clean  bool     `flag:"clean" doc:"remove trials of earlier declarations from the folder, and results that are only theirs"`
}

func forSweeps() sweepFlags {
	return sweepFlags{fleetFlags: fleetFlags{Lease: 30 * time.Second}, Jobs: runtime.GOMAXPROCS(0)}
}

type sweepCommand struct {
	Name string `arg:"NAME" is:"sweep" doc:"the name of a sweep"`
	sweepFlags
	arrayFlags
	planFlags
}

func (f *sweepCommand) Help() Help {
	return Help{
		Long: "Train and measure every trial of a sweep of models.toml, one trial per CPU at a time. To resume a sweep that was\n" +
			"interrupted or killed, run the same command again: no trial is repeated, and the results are the same to the byte.",
		Examples: []string{"tessera sweep figure8 --dry-run", "tessera sweep figure8 --epochs 50", "tessera sweep figure8 --emit slurm -o /shared/figure8", "tessera sweep figure8 --collect /shared/figure8"},
	}
}

func (f *sweepCommand) Do(cmd *Call) error {
	name := f.Name
	if f.Collect != "" {
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
	switch {
	case f.Emit != "":
		return f.writeJob(cmd, spec)
	case f.Plan:
		return f.estimate(cmd, spec, f.machines(f.Jobs))
	}
	return f.run(cmd, spec, func(s *sweep.Sweep, results *sweep.Results) error {
		return cmd.Show(resultsDocument(s, results, f.asked()), false)
	})
}

// run runs a sweep and prints the results, even if trials failed. With --dry-run it only shows the trials.
func (f *sweepFlags) run(cmd *Call, spec *config.Sweep, say func(*sweep.Sweep, *sweep.Results) error) error {
	if err := kernel.Err(); err != nil {
		return usageError{err}
	}
	show := newSweepProgress(cmd.ErrOrStderr(), f.progressFlags)
	chosen, err := f.chosen()
	if err != nil {
		return err
	}
	o := sweep.Options{Dirs: data.SearchDirs(f.Data), Out: f.Out, Jobs: f.Jobs, Metrics: chosen, Clean: f.Clean, Report: show.Show}
	if err := f.onMachines(&o, show); err != nil {
		return err
	}
	s, err := sweep.New(cmd.Context(), spec, o)
	if err != nil {
		return err
	}
	if f.Dry {
		if err := s.Replaces(); err != nil && !f.Clean {
			warn(cmd, err.Error())
		}
		return cmd.Show(&doc.Document{Blocks: []doc.Block{trialsTable(s)}}, false)
	}
	results, err := show.During(cmd.Context(), s)
	if _, ok := errors.AsType[*sweep.Failed](err); err != nil && !ok {
		return err
	}
	for _, name := range f.Metrics {
		if cmd.Given("metrics") && measured(results) && len(valuesOf(results, []string{name})) == 0 {
			warn(cmd, fmt.Sprintf("--metrics: %s applies to no trial of this sweep, or has no value", name))
		}
	}
	err = errors.Join(say(s, results), err)
	if n := len(s.Orphans()); n > 0 {
		cmd.say("%s in %s: not of this declaration; --dry-run lists, --clean removes", numeral.Of(n, "other trial"), filepath.Join(s.Path, "trials"))
	}
	return err
}

// declared returns the named sweep of some models with the changes of the flags.
func (f *sweepFlags) declared(cmd *Call, models *config.File, name string) (*config.Sweep, error) {
	if f.Jobs < 1 && !f.used() { // nothing would train
		return nil, usagef("--jobs: got 0, want > 0 without --listen or --nats")
	}
	changes, err := parseSets(f.Sets)
	if err != nil {
		return nil, err
	}
	if f.Epochs > 0 {
		changes = append(changes, config.Passes(f.Epochs))
	}
	if cmd.Given("seeds") {
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
		with := fmt.Sprintf("--epochs %d", f.Epochs)
		if u.Values != "" {
			with += " and " + u.Values
		}
		warn(cmd, fmt.Sprintf("model %q has no trial with %s: %s", u.Model, with, u.Reason))
	}
	return spec, nil
}

// chosenSeeds returns the change of a model for the seeds of --seeds.
func (f *sweepFlags) chosenSeeds(changes []config.Set) (config.Set, error) {
	if slices.ContainsFunc(changes, func(s config.Set) bool { return s.Root.Child("train").Child("seed") != nil }) {
		return config.Set{}, usagef("--seeds: --set train.seed sets the seed too; give one of the two")
	}
	seeds, err := config.Seeds(f.Seeds)
	if err != nil {
		return seeds, usagef("--%s", strings.TrimPrefix(err.Error(), "config: "))
	}
	return seeds, nil
}

// asked returns the names of the metrics that the flags select; nil selects the default metrics.
func (f *metricFlags) asked() []string {
	if f.SVM && len(f.Metrics) > 0 {
		return append(slices.Clone(f.Metrics), "svm", "svm_holdout")
	}
	return f.Metrics
}

func trialsTable(s *sweep.Sweep) *doc.Table {
	t := &doc.Table{Heads: 2 + len(s.Keys), Columns: doc.Columns(slices.Concat([]string{"trial", "model"}, s.Keys, []string{"seed", "state"})...)}
	row := func(id, model string, values []string, seed, state string) {
		t.Row(cells(slices.Concat([]string{id, model}, values, []string{seed, state}))...)
	}
	for _, trial := range s.Trials {
		row(trial.ID, trial.Model.Name, trial.Texts(), fmt.Sprint(trial.Model.Train.Seed), string(s.State(trial)))
	}
	for _, id := range s.Orphans() {
		row(id, numeral.None, slices.Repeat([]string{numeral.None}, len(s.Keys)), numeral.None, "not of this declaration")
	}
	return t
}

func cells(texts []string) []any { return lists.Map(texts, func(text string) any { return text }) }

func measured(r *sweep.Results) bool {
	return slices.ContainsFunc(r.Trials, func(row sweep.Row) bool { return row.Metrics != nil })
}

// columnsOf returns the metrics in the table of a sweep, including those of heads: the requested metrics, by name or glob, and
// the metrics that select settings.
func columnsOf(r *sweep.Results, asked []string) (columns []string) {
	if len(asked) == 0 {
		asked = r.First()
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

// resultsDocument has one row per setting, then the selected settings with their metrics on the test images, and the paths of the
// complete results.
func resultsDocument(s *sweep.Sweep, r *sweep.Results, asked []string) *doc.Document {
	shown := columnsOf(r, asked)
	file := func(name, file string) *doc.Facts {
		return &doc.Facts{Facts: []doc.Fact{{Key: name, Title: name, Value: filepath.Join(s.Path, file)}}}
	}
	d := &doc.Document{Title: "measured on " + splitText(r.Split)}
	d.Add(settingsTable(r.Keys, r.Settings, shown), file("sweep", sweep.TableFile))
	if len(r.Selected) == 0 {
		return d
	}
	criteria := lists.Map(r.Select, config.Criterion.String)
	t := settingsTable(r.Keys, r.Selected, shown)
	t.Title = "selected by " + strings.Join(criteria, ", ") + ", measured on " + splitText(string(s.SelectedOn()))
	d.Add(t, file("selected", sweep.SelectedFile))
	if acrossData(s, data.Split(r.Split)) {
		d.Add(doc.Warning("the settings differ in the data on which they are selected, or in their scale: a better %s may come from easier samples or another unit", strings.Join(criteria, ", ")))
	}
	return d
}

// acrossData reports whether trials with the same seed are measured on different samples, or on samples with different values.
func acrossData(s *sweep.Sweep, split data.Split) bool {
	first := map[uint64]*config.Dataset{}
	for _, t := range s.Trials {
		set := &t.Model.Dataset
		if one := first[t.Model.Train.Seed]; one != nil && !comparison.SameImages(one, set, split) {
			return true
		}
		first[t.Model.Train.Seed] = set
	}
	return false
}

// splitText returns the name of a split for use in a sentence.
func splitText(split string) string {
	if split == string(data.AllSplit) {
		return "the whole data set, the fitted samples among them"
	}
	return fmt.Sprintf("the %s split", split)
}

// settingsTable has one row per setting: the mean of each metric, with its deviation if there are several seeds.
func settingsTable(keys []string, settings []sweep.Setting, shown []string) *doc.Table {
	shown = slices.DeleteFunc(slices.Clone(shown), func(name string) bool {
		return !slices.ContainsFunc(settings, func(s sweep.Setting) bool { _, ok := s.Mean.Number(name); return ok })
	})
	t := &doc.Table{Heads: 1 + len(keys), Columns: doc.Columns(slices.Concat([]string{"model"}, keys, []string{"seeds"}, shown)...)}
	for _, s := range settings {
		row := cells(slices.Concat([]string{s.Model}, s.Texts(keys), []string{fmt.Sprintf("%d of %d", len(s.Seeds), len(s.Trials))}))
		for _, name := range shown {
			mean, known := s.Mean.Number(name)
			deviation, _ := s.Deviation.Number(name) // 0 of one seed
			if known {
				row = append(row, doc.Spread{Mean: mean, Deviation: deviation})
			} else {
				row = append(row, nil)
			}
		}
		t.Row(row...)
	}
	if slices.ContainsFunc(settings, func(s sweep.Setting) bool { return len(s.Seeds) > 1 }) {
		t.Notes = []string{comparison.Spread}
	}
	return t
}

type planFlags struct {
	Plan  bool  `flag:"plan" without:"dry-run listen nats" doc:"estimate the time and the memory of the sweep by a few steps of each shape, without training it"`
	Cores []int `flag:"cores" want:"in [1,65536]" needs:"plan" doc:"with --plan: the cores of the sweep, one number per machine as in 16 or 8,8,4" default:"--jobs"`
	JSON  bool  `flag:"json" needs:"plan" doc:"with --plan: print JSON"`
}

// machines returns the number of cores of each machine.
func (f *planFlags) machines(jobs int) []int {
	if len(f.Cores) == 0 {
		return []int{jobs}
	}
	return f.Cores
}

// estimate prints the plan of a sweep.
func (f *sweepCommand) estimate(cmd *Call, spec *config.Sweep, cores []int) error {
	chosen, err := f.chosen()
	if err != nil {
		return err
	}
	jobs := min(f.Jobs, runtime.GOMAXPROCS(0))
	s, err := sweep.New(cmd.Context(), spec, sweep.Options{Dirs: data.SearchDirs(f.Data), Out: f.Out, Jobs: jobs, Metrics: chosen})
	if err != nil {
		return err
	}
	p, err := s.Plan(cmd.Context(), sweep.PlanOptions{Cores: cores, Report: func(shape, of int) {
		if !f.Quiet {
			fmt.Fprintf(cmd.ErrOrStderr(), "timing shape %d of %d\n", shape, of)
		}
	}})
	if err != nil {
		return err
	}
	return cmd.Show(planDocument(s, p), f.JSON)
}

// planDocument shows a plan: the shapes, the models, the totals and the assumptions.
func planDocument(s *sweep.Sweep, p *sweep.Plan) *doc.Document {
	done := ""
	if p.Done > 0 {
		done = fmt.Sprintf(", %s of them done", numeral.Count(p.Done))
	}
	d := &doc.Document{Title: fmt.Sprintf("sweep %s: %s%s", p.Sweep, numeral.Of(p.Trials, "trial"), done), Data: p}
	shapes := &doc.Table{Title: fmt.Sprintf("timed on %s: %s, %d at once", p.Machine, numeral.Of(len(p.PerShape), "shape"), p.AtOnce),
		Heads: 1 + len(s.Keys), Columns: doc.Columns(slices.Concat([]string{"model"}, s.Keys, []string{"trials", "step", "epoch", "epochs", "evaluation", "trial", "memory"})...)}
	for _, one := range p.PerShape {
		name := one.Models[0]
		if others := len(one.Models) - 1; others > 0 {
			name += fmt.Sprintf(" and %d more", others)
		}
		epochs := numeral.Count(one.Epochs)
		if one.AtMost {
			epochs = "at most " + epochs
		}
		shapes.Row(append(cells(slices.Concat([]string{name}, one.Values)), one.Trials, doc.Seconds(one.Step), doc.Seconds(one.Epoch), epochs,
			doc.Seconds(one.Evaluation), doc.Seconds(one.Trial), doc.Bytes(one.Memory))...)
	}
	models := &doc.Table{Columns: doc.Columns("model", "trials", "on one core")}
	for _, m := range p.PerModel {
		models.Row(m.Model, m.Trials, doc.Seconds(m.Work))
	}
	if len(p.PerModel) > 1 {
		models.Row("all", p.Trials-p.Done, doc.Seconds(p.Work))
	}
	total := 0
	totals := &doc.Facts{}
	for i, n := range p.Cores {
		total += n
		if slices.Index(p.Cores, n) == i {
			totals.Add("", "memory with "+numeral.Of(n, "core"), fmt.Sprintf("%s, %s of it before the first trial", numeral.Bytes(p.Memory[i]), numeral.Bytes(p.Images)))
		}
	}
	time := doc.Fact{Title: "time on " + numeral.Of(total, "core"), Value: fmt.Sprintf("%s; the longest trial takes %s", numeral.Seconds(p.Seconds), numeral.Seconds(p.Longest))}
	totals.Facts = slices.Insert(totals.Facts, 0, time)
	assumed := &doc.Table{Title: "assumed", Columns: []doc.Column{{Wrap: true}}}
	for _, line := range slices.Sorted(slices.Values(p.Assumes)) {
		assumed.Row("- " + line)
	}
	d.Add(shapes, models, totals, assumed)
	return d
}

type accessFlags struct {
	Token       string `flag:"token-file" is:"file" doc:"file whose first line is the secret that coordinator and workers share"`
	Certificate string `flag:"tls-cert" is:"file" together:"tls" doc:"certificate of this machine, PEM"`
	Key         string `flag:"tls-key" is:"file" together:"tls" doc:"private key of --tls-cert, PEM"`
	Authority   string `flag:"tls-ca" is:"file" doc:"certificates that verify those of the other side, PEM"`
}

// access returns the access to the queue, with the token that it reads.
func (f *accessFlags) access() (a fleet.Access, err error) {
	a = fleet.Access{Certificate: f.Certificate, Key: f.Key, Authority: f.Authority}
	if f.Token != "" {
		if a.Token, err = fleet.ReadToken(f.Token); err != nil {
			if _, ok := errors.AsType[*fs.PathError](err); ok {
				return a, usagef("--token-file: %v", err)
			}
			return a, usagef("--token-file: %w", err)
		}
	}
	return a, nil
}

type fleetFlags struct {
	accessFlags
	Listen string        `flag:"listen" without:"nats" is:"address" doc:"address of a queue for workers on other machines, HOST:PORT; --jobs 0 trains on them alone"`
	URL    string        `flag:"nats" doc:"URL of an existing NATS server with JetStream, instead of --listen"`
	Lease  time.Duration `flag:"lease" want:"in [1s,24h]" needs:"listen nats" doc:"with workers: how long a worker may be silent before its trials are given to others"`
	Same   bool          `flag:"same-kernels" needs:"listen nats" doc:"with workers: refuse a worker whose CPU selects other kernels than that of the first one"`
}

// Check returns an error for access to a queue that the sweep has not.
func (f *fleetFlags) Check() error {
	if f.accessFlags != (accessFlags{}) && !f.used() {
		return usagef("--token-file, --tls-cert, --tls-key, --tls-ca: need --listen or --nats")
	}
	return nil
}

func (f *fleetFlags) used() bool { return f.Listen != "" || f.URL != "" }

// onMachines configures a sweep for several machines if the flags ask for workers.
func (f *fleetFlags) onMachines(o *sweep.Options, show *sweepProgress) error {
	if !f.used() {
		return nil
	}
	access, err := f.access()
	if err != nil {
		return err
	}
	c := fleet.Options{Listen: f.Listen, Access: access, Jobs: o.Jobs, Lease: f.Lease, SameKernels: f.Same, Dirs: o.Dirs, Log: show.Note}
	c.Listening = func(address, url string) { show.Note(fmt.Sprintf("listening on %s: tessera worker %s", address, url)) }
	c.Mixed = func(kernels, others string) {
		show.Note(fmt.Sprintf("warning: the workers have different kernels (%s and %s): the last bits of results depend on which machine takes a trial; --same-kernels keeps to one kind", kernels, others))
	}
	if f.URL != "" {
		if c.URL, err = fleet.Address(f.URL); err != nil {
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

package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tessera/apps/show/doc"
	"tessera/config"
	"tessera/data"
	"tessera/internal/lists"
	"tessera/internal/numeral"
	"tessera/internal/regular"
	"tessera/internal/shell"
	"tessera/internal/sweep"
	"tessera/internal/sweep/scheduler"
	"tessera/internal/train/folder"
)

const emitSlurm = "slurm"

type arrayFlags struct {
	Emit     string `flag:"emit" oneof:"slurm kubernetes" without:"collect plan dry-run listen nats clean" doc:"write an array job into the folder of the sweep instead of training"`
	Collect  string `flag:"collect" is:"place" without:"plan dry-run listen nats file set epochs seeds out metrics svm with" doc:"gather the trials of an array job from this folder and write the results"`
	Parallel int    `flag:"parallel" want:"> 0" needs:"emit" doc:"with --emit: tasks at the same time" default:"as many as the scheduler runs"`
	PerTask  int    `flag:"per-task" want:"> 0" needs:"emit" doc:"with --emit: trials of one task, one after the other"`
	MostJob  int    `flag:"max-array" want:"> 0" needs:"emit" doc:"with --emit slurm: MaxArraySize of the cluster (scontrol show config); more tasks take several scripts"`
}

func (f *sweepCommand) writeJob(cmd *Call, spec *config.Sweep) error {
	chosen, err := f.chosen()
	if err != nil {
		return err
	}
	s, err := sweep.New(cmd.Context(), spec, sweep.Options{Dirs: data.SearchDirs(f.Data), Out: f.Out, Jobs: f.Jobs, Metrics: chosen})
	if err != nil {
		return err
	}
	m := sweep.Manifest{PerTask: f.PerTask, PerJob: f.MostJob, Metrics: f.Metrics, SVM: f.SVM, With: f.With}
	job, err := f.job(s, (len(s.Trials)+m.PerTask-1)/m.PerTask)
	if err != nil {
		return err
	}
	scripts, err := f.scripts(job)
	if err != nil {
		return usageError{err}
	}
	files := lists.Map(scripts, func(script scheduler.File) folder.File {
		return folder.File{Name: script.Name, Data: []byte(script.Text)}
	})
	if err := s.Emit(m, files...); err != nil {
		return err
	}
	if f.Emit == emitSlurm { // Slurm refuses to start a task whose log it cannot open
		logs := filepath.Join(s.Path, scheduler.LogsDir)
		if err := os.MkdirAll(logs, 0o777); err != nil {
			return &folder.WriteError{Path: logs, Err: err}
		}
	}
	return f.printJob(cmd, s, job, scripts)
}

func (f *arrayFlags) scripts(job scheduler.Job) ([]scheduler.File, error) {
	if f.Emit == emitSlurm {
		return job.Slurm()
	}
	one, err := job.Kubernetes()
	return []scheduler.File{one}, err
}

func (f *sweepCommand) job(s *sweep.Sweep, tasks int) (scheduler.Job, error) {
	program, err := os.Executable()
	if err != nil {
		program = "tessera"
	}
	work, err := os.Getwd()
	if err != nil {
		return scheduler.Job{}, fmt.Errorf("the current directory: %w", err)
	}
	dir := f.Data
	if dir == "" {
		dir = os.Getenv(data.EnvDir)
	}
	job := scheduler.Job{Sweep: s.Name, Folder: s.Path, Work: work, Program: program, Data: dir, Tasks: tasks,
		Parallel: f.Parallel, PerJob: f.MostJob, Generated: !slices.ContainsFunc(s.Trials, s.ReadsFiles)}
	for _, path := range []*string{&job.Folder, &job.Data} {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(work, *path)
		}
	}
	return job, nil
}

// printJob prints the written files and the next commands.
func (f *sweepCommand) printJob(cmd *Call, s *sweep.Sweep, job scheduler.Job, scripts []scheduler.File) error {
	done := 0
	for _, t := range s.Trials {
		if s.State(t) == sweep.Done {
			done++
		}
	}
	t := &doc.Facts{}
	add := func(name, value string) { t.Add("", name, value) }
	add("manifest", filepath.Join(s.Path, sweep.ManifestFile))
	for _, script := range scripts {
		add("job", filepath.Join(s.Path, script.Name))
	}
	for _, script := range scripts {
		path := filepath.Join(s.Path, script.Name)
		if f.Emit == emitSlurm {
			add("submit", "sbatch "+shell.Word(path))
		} else {
			add("submit", "edit image and volumes, then kubectl apply -f "+shell.Word(path))
		}
	}
	add("collect", fmt.Sprintf("tessera sweep %s --collect %s", shell.Word(s.Name), shell.Word(s.Path)))
	title := fmt.Sprintf("%s, %d already done, as %s", numeral.Of(len(s.Trials), "trial"), done, numeral.Of(job.Tasks, "task"))
	return cmd.Show(&doc.Document{Title: title, Blocks: []doc.Block{t}}, false)
}

// gather collects the trials of an array job and prints the results.
func (f *sweepCommand) gather(cmd *Call, name string) error {
	dir := f.Collect
	m, err := manifest(dir)
	if err != nil {
		return err
	}
	if m.Sweep != name {
		return usagef("--collect: %s has the trials of sweep %q, not of %q", dir, m.Sweep, name)
	}
	s, err := declaredAgain(cmd, dir, f.Data, m, sweep.Options{Jobs: f.Jobs, Clean: f.Clean})
	if err != nil {
		return err
	}
	results, all, err := s.Collect(cmd.Context())
	if _, ok := errors.AsType[*sweep.Failed](err); err != nil && !ok {
		return err
	}
	if err := f.census(cmd, s, m, all); err != nil {
		return err
	}
	if ended := func(g sweep.Gathered) bool { return g.State == sweep.Done || g.State == sweep.Broken }; slices.ContainsFunc(all, ended) {
		if err := cmd.Show(resultsDocument(s, results, (&metricFlags{Metrics: m.Metrics, SVM: m.SVM}).asked()), false); err != nil {
			return err
		}
	}
	left := slices.DeleteFunc(slices.Clone(all), func(g sweep.Gathered) bool { return g.State == sweep.Done })
	if len(left) > 0 {
		return incomplete{fmt.Errorf("%s: %d of %d trials are not done", dir, len(left), len(all))}
	}
	return nil
}

// census prints the number of trials in each state, the unfinished trials, and the commands that run them.
func (f *sweepCommand) census(cmd *Call, s *sweep.Sweep, m *sweep.Manifest, all []sweep.Gathered) error {
	count := map[sweep.State]int{}
	for _, g := range all {
		count[g.State]++
	}
	var counts []string
	for _, state := range []sweep.State{sweep.Done, sweep.Running, sweep.Begun, sweep.Waiting, sweep.Broken, sweep.Refused} {
		if n := count[state]; n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, state))
		}
	}
	d := &doc.Document{Title: fmt.Sprintf("sweep %s: %s: %s", s.Path, numeral.Of(len(all), "trial"), strings.Join(counts, ", "))}
	warnOfKernels(cmd, all)
	if count[sweep.Done] == len(all) {
		return d.Text(cmd.ErrOrStderr(), screenOf(cmd.ErrOrStderr()))
	}
	t := &doc.Table{Columns: append(doc.Columns("task", "trial", "state", "epochs"), doc.Column{Wrap: true})}
	var again []int
	for _, g := range all {
		index := g.Index / m.PerTask
		if g.State != sweep.Done && (g.State != sweep.Waiting || count[sweep.Waiting] <= mostListed) {
			t.Row(index, g.Trial.ID, string(g.State), g.Epoch, g.Problem)
		}
		if g.State != sweep.Done && g.State != sweep.Running && (len(again) == 0 || again[len(again)-1] != index) {
			again = append(again, index)
		}
	}
	d.Add(t)
	for _, line := range repeat(s.Path, m, again) {
		d.Add(doc.Remark("run again: %s", line))
	}
	return d.Text(cmd.ErrOrStderr(), screenOf(cmd.ErrOrStderr()))
}

// mostListed is the maximum number of waiting trials that are listed individually.
const mostListed = 20

// warnOfKernels warns if different kernels trained the trials, because the last bits of results depend on the kernel.
func warnOfKernels(cmd *Call, all []sweep.Gathered) {
	counts := map[string]int{}
	var names []string
	for _, g := range all {
		if g.Kernel == "" {
			continue
		}
		if counts[g.Kernel]++; counts[g.Kernel] == 1 {
			names = append(names, g.Kernel)
		}
	}
	if len(names) < 2 {
		return
	}
	for i, name := range names {
		names[i] = fmt.Sprintf("%s (%s)", name, numeral.Of(counts[name], "trial"))
	}
	warn(cmd, "the trials were trained with different kernels: "+strings.Join(names, ", ")+"; their last bits differ from those of one machine")
}

// repeat returns the commands that run the given indices again.
func repeat(dir string, m *sweep.Manifest, indices []int) (lines []string) {
	job := scheduler.Job{Tasks: m.Tasks(), PerJob: m.PerJob}
	arrays, limits, scripts := map[string][]int{}, map[string]string{}, []string{}
	for _, index := range indices {
		name := job.Script(index)
		text, err := regular.ReadFile(filepath.Join(dir, name))
		if err != nil {
			lines = append(lines, fmt.Sprintf("tessera trial %s %d", shell.Word(dir), index))
			continue
		}
		if arrays[name] == nil {
			scripts, limits[name] = append(scripts, name), scheduler.Limit(string(text))
		}
		arrays[name] = append(arrays[name], index%m.PerJob)
	}
	for _, name := range scripts {
		lines = append(lines, fmt.Sprintf("sbatch --array=%s%s %s", ranges(arrays[name]), limits[name], shell.Word(filepath.Join(dir, name))))
	}
	return lines
}

// ranges prints ascending numbers as 0-3,5.
func ranges(numbers []int) string {
	var parts []string
	for i := 0; i < len(numbers); {
		end := i
		for end+1 < len(numbers) && numbers[end+1] == numbers[end]+1 {
			end++
		}
		part := strconv.Itoa(numbers[i])
		if end > i {
			part += "-" + strconv.Itoa(numbers[end])
		}
		parts = append(parts, part)
		i = end + 1
	}
	return strings.Join(parts, ",")
}

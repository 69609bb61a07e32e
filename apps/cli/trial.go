package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"tessera/data"
	"tessera/internal/engine/kernel"
	"tessera/internal/sweep"
	"tessera/internal/train"
	"tessera/internal/train/folder"
)

// indexVariables lists the environment variables in which schedulers pass the index of a task.
var indexVariables = []string{"SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX"}

func init() {
	Commands.Register("trial", "Train and measure one task of a sweep's array job", func() Command { return &trialCommand{} })
}

type trialCommand struct {
	Dir   string `arg:"DIR" is:"place" doc:"the folder of a sweep"`
	Index string `arg:"INDEX" optional:"true" doc:"the index of a task"`
	dataFlag
	progressFlags
}

func (f *trialCommand) Help() Help {
	return Help{
		Long: "Train and measure the trial, or trials, that the manifest.json of a sweep's folder has at an index, as the sweep itself would: on\n" +
			"one thread, to the same bytes. `tessera sweep NAME --emit` writes the manifest, and jobs of schedulers that call this command.\n" +
			"Run again, it resumes; finished trials are not repeated. Without INDEX the index is that of SLURM_ARRAY_TASK_ID or\n" +
			"JOB_COMPLETION_INDEX. On SIGUSR1 it writes a checkpoint and exits with code 75: run it again.",
		Examples: []string{"tessera trial sweeps/figure8 0"},
	}
}

func (f *trialCommand) Do(cmd *Call) error {
	if err := kernel.Err(); err != nil {
		return usageError{err}
	}
	index, err := indexOf(f.Index)
	if err != nil {
		return err
	}
	m, err := manifest(f.Dir)
	if err != nil {
		return err
	}
	places, err := m.Task(index)
	if err != nil {
		return usageError{err}
	}
	show := newProgress(cmd.ErrOrStderr(), f.progressFlags)
	o := sweep.Options{Report: func(e sweep.Event) {
		if e.Progress != nil {
			show.Show(*e.Progress)
		}
	}}
	s, err := declaredAgain(cmd, f.Dir, f.Data, m, o, places...)
	if err != nil {
		return err
	}
	return f.run(cmd, s, index, show)
}

// run runs the trials of an index one after another. A failed trial does not stop the next one.
func (f *trialCommand) run(cmd *Call, s *sweep.Sweep, index int, show *progress) error {
	failed := 0
	for _, t := range s.Trials {
		measured, err := s.Task(cmd.Context(), t)
		show.End()
		switch {
		case err == nil:
			if err := cmd.tell(t.Path + "  measured on " + splitText(measured.Split)); err != nil {
				return err
			}
		case errors.Is(err, folder.ErrLocked):
			return lockedTrial{err}
		case errors.Is(err, train.ErrInterrupted), len(s.Trials) == 1:
			return err
		default:
			failed++
			cmd.say("%v", err)
		}
	}
	if failed > 0 {
		return incomplete{fmt.Errorf("%d of the %d trials of task %d failed", failed, len(s.Trials), index)}
	}
	return nil
}

// indexOf returns the index of a task: the argument, or the value of a scheduler's variable.
func indexOf(text string) (int, error) {
	from := "INDEX"
	if text == "" {
		for _, name := range indexVariables {
			if v := os.Getenv(name); v != "" {
				text, from = v, name
				break
			}
		}
		if text == "" {
			return 0, usagef("INDEX is missing, and so are %s and %s; give the index of manifest.json", indexVariables[0], indexVariables[1])
		}
	}
	index, err := strconv.Atoi(text)
	if err != nil || index < 0 {
		return 0, usagef("%s: got %q, want an index from 0", from, text)
	}
	return index, nil
}

func manifest(dir string) (*sweep.Manifest, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() || errors.Is(err, fs.ErrNotExist) {
		return nil, usagef("%s: no such folder; give the folder of a sweep, to which `tessera sweep NAME --emit slurm -o DIR` wrote an array job", dir)
	}
	m, err := sweep.ReadManifest(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usagef("%s: no %s; `tessera sweep NAME --emit slurm -o %s` writes it", dir, sweep.ManifestFile, dir)
	}
	return m, err
}

// declaredAgain returns the sweep of a manifest with the trials at the given places, or with all trials if there are none. A
// trial whose identity differs from the manifest is an error.
func declaredAgain(cmd *Call, dir, dataDir string, m *sweep.Manifest, o sweep.Options, places ...int) (*sweep.Sweep, error) {
	spec, err := m.Declare(places...)
	if err != nil {
		return nil, err
	}
	flags := metricFlags{m.Metrics, m.SVM, m.With}
	if o.Metrics, err = flags.chosen(); err != nil {
		return nil, err
	}
	o.Dirs, o.Out = data.SearchDirs(dataDir), dir
	s, err := sweep.New(cmd.Context(), spec, o)
	if err != nil {
		return nil, err
	}
	return s, m.Matches(s, places...)
}

// lockedTrial reports a trial that another process is running: an earlier task with the same index.
type lockedTrial struct{ error }

func (e lockedTrial) Unwrap() error { return e.error }

// incomplete reports trials that failed or are not done yet.
type incomplete struct{ error }

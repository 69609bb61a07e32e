package sweep

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"tessera/data"
	"tessera/internal/regular"
	"tessera/internal/sealed"
	"tessera/train"
	"tessera/train/checkpoint"
	"tessera/train/folder"
)

// The states of a trial that [Sweep.Collect] tells beside [Waiting], [Begun] and [Done].
const (
	Running State = "running" // a process works on it
	Broken  State = "failed"  // its task recorded an error, which another run would repeat
	Refused State = "refused" // its files are damaged, or not those of this trial
)

// Gathered says what became of one trial of an array job.
type Gathered struct {
	Trial   *Trial
	Index   int // of the trial in the sweep
	State   State
	Problem string // of a trial that failed or was refused, and what to do
	Epoch   int    // complete epochs or iterations of a trial that is neither done nor waiting
	Kernel  string // by which a trial that is done was trained
}

// Collect gathers the trials that the tasks of an array job did in the sweep's folder, or in a copy of it: it verifies the identities
// and checksums of their files and writes the results, byte for byte those of [Sweep.Run]. Nothing is trained, and no
// metrics of the sweep are measured again; selected settings are measured on the test images, once, when all trials have ended.
// Collect may be repeated at any time, also while tasks are running.
//
// Errors are those of [Sweep.Run]; with [*Failed] come the results and the states.
func (s *Sweep) Collect(ctx context.Context) (*Results, []Gathered, error) {
	held, err := folder.Hold(s.Path, s.options.Disk)
	if err != nil {
		return nil, nil, err
	}
	defer held.Close()
	if err := s.Replaces(); err != nil && !s.options.Clean {
		return nil, nil, err
	}
	w := &work{Sweep: s, folder: held, event: Event{Total: len(s.Trials)}, stop: func() {}}
	var all []Gathered
	for i, t := range s.Trials {
		if ctx.Err() != nil {
			return nil, nil, fmt.Errorf("%s: %w", s.Path, train.ErrInterrupted)
		}
		g := s.gather(t)
		g.Index = i
		all = append(all, g)
	}
	if err := errors.Join(w.write(), w.removeSelection()); err != nil {
		return nil, nil, err
	}
	if len(s.criteria) > 0 {
		w.test(ctx)
	}
	if w.fatal != nil {
		return nil, nil, w.fatal
	}
	return s.results(), all, s.failed()
}

// gather reads and verifies one trial.
func (s *Sweep) gather(t *Trial) Gathered {
	t.measured, t.onTest, t.err = nil, nil, nil
	g := Gathered{Trial: t, State: Waiting}
	if t.Begun() {
		g.State = Begun
		if t.err = s.sound(t, &g); t.err != nil {
			t.measured = nil // nobody can use metrics without their trial
			g.State, g.Problem = Refused, t.problem()
			return g
		}
	}
	switch problem := s.failure(t); {
	case g.State == Done:
	case folder.Held(t.Path):
		g.State = Running
	case problem != "":
		t.err = errors.New(problem)
		g.State, g.Problem = Broken, problem
	}
	return g
}

// sound verifies a trial that has a folder, and takes its metrics if they are there. While a process works on the trial, only
// complete metrics are looked for.
func (s *Sweep) sound(t *Trial, g *Gathered) error {
	if err := t.verify(); err != nil {
		return err
	}
	status := train.StatusOf(t.Path)
	g.Epoch = status.Epoch
	t.measured = s.kept(t)
	if t.measured == nil {
		if status.State == train.Training {
			return nil
		}
		return s.soundMetrics(t)
	}
	arithmetic, err := train.ArithmeticOf(t.Path) // verifies the checksum of the state
	if err != nil {
		return err
	}
	g.Kernel, g.State = arithmetic.Kernel, Done
	if len(s.criteria) > 0 {
		t.onTest = s.read(t, testFile, data.TestSplit)
	}
	return nil
}

// soundMetrics refuses metrics that are there but cannot be taken, as Run would measure them again.
func (s *Sweep) soundMetrics(t *Trial) error {
	path := filepath.Join(t.Path, keptFile)
	text, err := regular.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the training has not ended
	}
	if err == nil {
		err = sealed.Check(text)
	}
	if err == nil {
		if _, open := train.Open(t.Path); open != nil {
			return open
		}
		err = errors.New("is of other parameters, or lacks metrics")
	}
	return checkpoint.Errorf(path, "%s; copy the trial again, or remove this file and run its task again, which measures the trial",
		strings.TrimPrefix(err.Error(), path+": "))
}

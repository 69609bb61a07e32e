package sweep

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"tessera/config"
	"tessera/data"
	"tessera/internal/lists"
	"tessera/internal/numeral"
	"tessera/internal/parallel/team"
	"tessera/internal/regular"
	"tessera/internal/sealed"
	"tessera/internal/train"
	"tessera/internal/train/folder"
	"tessera/metrics"
)

// Event reports the progress of a sweep.
type Event struct {
	Trial    *Trial
	Progress *train.Progress // progress of the training
	Ended    bool            // the trial has finished or failed
	Kept     bool            // the metrics of the trial already existed
	Metrics  *metrics.Result // metrics of a finished trial
	Err      error           // error of a failed trial

	Done, Failed, Total int // numbers of trials
}

// Failed lists the failed trials of a sweep, and the models without a trial. All other trials have finished.
type Failed struct {
	Sweep  string
	Total  int
	Trials []*Trial
	Unfit  []config.Unfit
}

// Error lists the failed trials and the models without a trial.
func (e *Failed) Error() string {
	var b strings.Builder
	if len(e.Trials) > 0 {
		fmt.Fprintf(&b, "sweep %q: %d of %s failed", e.Sweep, len(e.Trials), numeral.Of(e.Total, "trial"))
	} else {
		fmt.Fprintf(&b, "sweep %q: no trial failed, but a model or setting has no trial", e.Sweep)
	}
	for _, t := range e.Trials {
		fmt.Fprintf(&b, "\n  %s: %s", t.Path, t.problem())
	}
	for _, u := range e.Unfit {
		with := ""
		if u.Values != "" {
			with = " with " + u.Values
		}
		fmt.Fprintf(&b, "\n  model %q has no trial%s: %s", u.Model, with, u.Reason)
	}
	return b.String()
}

// problem returns the error of a failed trial without the path of the trial, because results must not depend on the
// folder of the sweep.
func (t *Trial) problem() string { return strings.TrimPrefix(t.err.Error(), t.Path+": ") }

// work is the state of a running sweep.
type work struct {
	*Sweep
	folder *folder.Folder
	stop   context.CancelFunc

	mu    sync.Mutex // guards the fields below, the trials' outcomes and the results' files
	todo  []*Trial
	event Event // the last event, with the numbers of trials
	fatal error

	written time.Time     // time of the last write of the results
	writing time.Duration // duration of that write
	stale   bool          // a trial has ended that is not in the files yet
}

// Run runs the unfinished trials of a sweep and returns the results. It also writes the results to the sweep's folder
// after every trial; in a sweep of hundreds of trials, only after some of them and at the end.
//
// A failed trial, or a model without a trial, does not stop the others: Run then returns their results and a [*Failed]. Errors that concern all
// trials stop the sweep: [*folder.WriteError], and [*Interrupted] after ctx was cancelled and every running trial has
// written a checkpoint. [folder.ErrForeign] means that the results of another sweep would be replaced; see
// [Sweep.Replaces]. [folder.ErrLocked] means that another process is running the sweep. If a requested metric needs
// labels and the images have none, the error is an [*Unlabelled] and nothing is written.
func (s *Sweep) Run(ctx context.Context) (*Results, error) {
	if err := s.labelled(); err != nil {
		return nil, err
	}
	if err := s.ready(); err != nil {
		return nil, err
	}
	held, err := folder.Hold(s.Path, s.options.Disk)
	if err != nil {
		return nil, err
	}
	defer held.Close()
	if err := s.Replaces(); err != nil && !s.options.Clean {
		return nil, err
	}
	folder.Tidy(filepath.Join(s.Path, trialsDir), s.options.Disk)
	w := &work{Sweep: s, folder: held, event: Event{Total: len(s.Trials)}}
	if s.options.Clean {
		if err := w.clean(); err != nil {
			return nil, err
		}
	}
	for _, t := range s.Trials {
		w.resume(t)
	}
	if err := errors.Join(w.write(), w.removeSelection()); err != nil {
		return nil, err
	}
	ctx, w.stop = context.WithCancel(ctx)
	defer w.stop()
	if err := w.finish(ctx); err != nil {
		return nil, err
	}
	return s.results(), s.failed()
}

// finish runs the remaining trials, writes the results and measures the selected settings.
func (w *work) finish(ctx context.Context) error {
	if err := w.all(ctx); err != nil {
		return err
	}
	if w.stale {
		if err := w.write(); err != nil {
			w.fail(err)
		}
	}
	if w.fatal == nil && len(w.criteria) > 0 {
		w.test(ctx)
	}
	return w.fatal
}

// resume reads the results of a trial from earlier runs of the sweep.
func (w *work) resume(t *Trial) {
	t.measured, t.onTest, t.err = nil, nil, nil
	if t.Begun() {
		t.err = t.verify()
	}
	if t.err != nil {
		w.event.Failed++
		w.report(Event{Trial: t, Ended: true, Err: t.err})
		return
	}
	t.measured = w.kept(t)
	if len(w.criteria) > 0 {
		t.onTest = w.read(t, testFile, data.TestSplit)
	}
	if t.measured == nil {
		w.todo = append(w.todo, t)
		return
	}
	w.event.Done++
	w.report(Event{Trial: t, Ended: true, Kept: true, Metrics: t.measured})
}

// all runs all remaining trials.
func (w *work) all(ctx context.Context) error {
	jobs, executor := w.options.Jobs, w.options.Executor
	if executor != nil && len(w.todo) == 0 {
		executor = nil
	}
	if executor != nil {
		if err := executor.Begin(ctx, w.Sweep, slices.Clone(w.todo)); err != nil {
			return errors.Join(err, executor.End(err))
		}
		jobs = executor.Width()
	}
	var running team.Group
	for range min(jobs, len(w.todo)) {
		running.Go(func() { w.trials(ctx) })
	}
	running.Wait()
	if executor != nil {
		if err := executor.End(w.fatal); err != nil && w.fatal == nil {
			return err
		}
	}
	return nil
}

// Unlabelled is the error for a metric that needs labels on images without labels. It unwraps to a [*data.Error].
type Unlabelled struct{ Dataset, Metric string }

func (e *Unlabelled) Error() string { return e.Unwrap().Error() }

func (e *Unlabelled) Unwrap() error {
	return &data.Error{Dataset: e.Dataset, Problem: "its samples have no labels, but " + e.Metric + " needs them"}
}

// labelled returns an error if a metric needs labels and the images have none.
func (s *Sweep) labelled() error {
	needs := slices.IndexFunc(s.options.Metrics, func(c metrics.Choice) bool {
		return !c.Optional && c.Metric.Describe().Reads.Has(metrics.ReadsLabels)
	})
	if needs < 0 {
		return nil
	}
	name := s.options.Metrics[needs].Metric.Describe().Measures[0].Name
	for _, t := range s.Trials {
		images, err := t.tested.Evaluation()
		if err != nil {
			return err
		}
		if images.Labels() == nil {
			return &Unlabelled{t.Model.Dataset.Name, name}
		}
	}
	return nil
}

// failed returns a [*Failed] with the failed trials and the models without a trial, nil if there are none.
func (s *Sweep) failed() error {
	f := &Failed{Sweep: s.Name, Total: len(s.Trials), Unfit: s.Unfit}
	for _, t := range s.Trials {
		if t.err != nil {
			f.Trials = append(f.Trials, t)
		}
	}
	if len(f.Trials) == 0 && len(f.Unfit) == 0 {
		return nil
	}
	return f
}

// trials runs one trial after another until none is left. After a panic, which is an internal error, the other trials
// write a checkpoint and end.
func (w *work) trials(ctx context.Context) {
	whole := false
	defer func() {
		if !whole {
			w.stop()
		}
	}()
	team := team.New(1)
	defer team.Close()
	for {
		t := w.next(ctx)
		if t == nil {
			whole = true
			return
		}
		measured, err := w.do(ctx, t, team)
		w.end(t, measured, err, ctx.Err() != nil)
	}
}

// next removes and returns one of the remaining trials.
func (w *work) next(ctx context.Context) *Trial {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() != nil && w.fatal == nil && len(w.todo) > 0 {
		w.fatal = &Interrupted{w.Path}
	}
	if w.fatal != nil || len(w.todo) == 0 {
		return nil
	}
	t := w.todo[0]
	w.todo = w.todo[1:]
	return t
}

// end records the result of a trial. If interrupted is true, the error is that of an interruption.
func (w *work) end(t *Trial, measured *metrics.Result, err error, interrupted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var unwritten *folder.WriteError
	var stop *Stop
	switch {
	case errors.As(err, &unwritten), errors.As(err, &stop):
		w.fail(err)
		return
	case err != nil && interrupted:
		w.fail(&Interrupted{w.Path})
		return
	case err != nil:
		t.err = err
		w.event.Failed++
	default:
		t.measured = measured
		w.event.Done++
	}
	w.report(Event{Trial: t, Ended: true, Metrics: measured, Err: err})
	if err := w.record(); err != nil {
		w.fail(err)
	}
}

// fail ends the sweep with an error. A write error takes precedence over an interruption, which may be its consequence.
func (w *work) fail(err error) {
	if w.fatal == nil || errors.Is(w.fatal, train.ErrInterrupted) {
		w.fatal = err
	}
	w.stop()
}

// report reports an event. The caller must hold the lock.
func (w *work) report(e Event) {
	if w.options.Report == nil {
		return
	}
	e.Done, e.Failed, e.Total = w.event.Done, w.event.Failed, w.event.Total
	w.options.Report(e)
}

// do runs a trial in this process or by the executor, and reads its metrics.
func (w *work) do(ctx context.Context, t *Trial, team *team.Team) (*metrics.Result, error) {
	if w.options.Executor != nil {
		if err := w.options.Executor.Do(ctx, t, w.progress(t)); err != nil {
			return nil, err
		}
		if err := t.verify(); err != nil {
			return nil, err
		}
	} else {
		one := w.Standalone(t)
		one.Report = w.progress(t)
		if _, err := one.Do(ctx, team); err != nil {
			return nil, err
		}
	}
	return w.stored(t, keptFile, w.split)
}

// progress forwards the progress of a trial's training.
func (w *work) progress(t *Trial) func(train.Progress) {
	return func(p train.Progress) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.report(Event{Trial: t, Progress: &p})
	}
}

// Do trains or resumes one trial of the sweep on one thread and measures it, exactly like [Sweep.Run]. If metrics
// exist, it returns them. Do writes only to the folder of the trial, so several processes, also on different machines,
// may run different trials of a sweep at the same time. Report is called with the progress of the training.
//
// The errors are those of [train.Run], [train.Resume] and the evaluation. [folder.ErrLocked] means that another process
// is running this trial.
func (s *Sweep) Do(ctx context.Context, t *Trial) (*metrics.Result, error) {
	if t.Begun() {
		if err := t.verify(); err != nil {
			return nil, err
		}
	}
	if measured := s.kept(t); measured != nil {
		return measured, nil
	}
	if err := s.labelled(); err != nil {
		return nil, err
	}
	team := team.New(1)
	defer team.Close()
	one := s.Standalone(t)
	if report := s.options.Report; report != nil {
		one.Report = func(p train.Progress) { report(Event{Trial: t, Progress: &p, Total: len(s.Trials)}) }
	}
	if _, err := one.Do(ctx, team); err != nil {
		return nil, err
	}
	return s.stored(t, keptFile, s.split)
}

// Limits for writing results. Each write covers all trials. A sweep of more than manyTrials trials writes so rarely
// that writing takes at most 1/writingPart of the time.
const (
	manyTrials  = 200
	writingPart = 10
)

// record writes the results after a trial, or leaves this to a later trial.
func (w *work) record() error {
	w.stale = len(w.Trials) > manyTrials && time.Since(w.written) < writingPart*w.writing
	if w.stale {
		return nil
	}
	began := time.Now()
	err := w.write()
	w.written = time.Now()
	w.writing = w.written.Sub(began)
	return err
}

// write writes the known results if they differ from the files.
func (w *work) write() error {
	files, err := w.results().files()
	if err != nil {
		return err
	}
	files = append(files, folder.File{Name: TimingsFile, Data: w.timings()})
	differing := lists.Only(files, func(f folder.File) bool { return !w.folder.Holds(f) })
	if len(differing) == 0 {
		return nil
	}
	return w.folder.Write(differing...)
}

// timings returns the contents of timings.csv: the epochs and the seconds of every trial, without the evaluation.
func (w *work) timings() []byte {
	rows := [][]string{{"trial", "epochs", "seconds"}}
	for _, t := range w.Trials {
		epochs, seconds, err := t.Spent()
		if err != nil || t.measured == nil && t.err == nil {
			continue
		}
		rows = append(rows, []string{t.ID, fmt.Sprint(epochs), fmt.Sprintf("%.3f", seconds)})
	}
	return csvText(rows)
}

// Spent returns the number of epochs, or of iterations, that the trial has been trained for, and the wall time of their training
// without the evaluation. Both are 0 for a trial that has not begun. The error is that of reading its metrics.jsonl.
func (t *Trial) Spent() (epochs int, seconds float64, err error) {
	text, err := regular.ReadUnlinked(filepath.Join(t.Path, folder.Metrics))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, 0, err
	}
	epochs, seconds = spent(text)
	return epochs, seconds, nil
}

// spent returns the number of epochs and the sum of their seconds from the text of a metrics.jsonl.
func spent(text []byte) (epochs int, seconds float64) {
	for line := range bytes.Lines(text) {
		var epoch struct {
			Seconds float64 `json:"seconds"`
		}
		if json.Unmarshal(line, &epoch) == nil && sealed.CheckLine(bytes.TrimSpace(line)) == nil { // the last line of a killed run may be incomplete
			epochs++
			seconds += epoch.Seconds
		}
	}
	return epochs, seconds
}

// FleetDir is the folder within a sweep's folder that contains the queue of a sweep on several machines. It is removed
// when the sweep has finished.
const FleetDir = "fleet"

// Executor runs trials somewhere other than in this process.
type Executor interface {
	// Ready returns an error if Begin is known to fail. It is called before anything is written.
	Ready() error
	// Begin is called once, before the first trial, while the process holds the lock of the sweep's folder. todo lists
	// the unfinished trials.
	Begin(ctx context.Context, s *Sweep, todo []*Trial) error
	// Width returns the maximum number of concurrent calls of Do.
	Width() int
	// Do runs a trial. It returns nil when the folder of the trial contains a finished run with its eval.json, and
	// otherwise the error of the trial. A [*Stop] ends the sweep. progress may be called at any time until Do returns.
	Do(ctx context.Context, t *Trial, progress func(train.Progress)) error
	// End is called after the last Do has returned. err is the error that Run will return if End returns nil.
	End(err error) error
}

// Stop is an error of [Executor.Do] that ends the whole sweep.
type Stop struct{ Err error }

func (s *Stop) Error() string { return s.Err.Error() }

// Unwrap returns the cause.
func (s *Stop) Unwrap() error { return s.Err }

// ready returns the error of an [Executor] that cannot begin. It returns nil if no trials remain or another process is
// running the sweep.
func (s *Sweep) ready() error {
	left := func(t *Trial) bool { return s.kept(t) == nil }
	if s.options.Executor == nil || folder.Held(s.Path) || !slices.ContainsFunc(s.Trials, left) {
		return nil
	}
	return s.options.Executor.Ready()
}

// Standalone returns the trial without its sweep.
func (s *Sweep) Standalone(t *Trial) *StandaloneTrial {
	return &StandaloneTrial{Options: train.Options{Out: t.Path, Dirs: s.options.Dirs, Disk: s.options.Disk}, ID: t.ID, Model: t.Model, Fitted: t.fitted,
		Tested: t.tested, Split: s.split, Metrics: s.options.Metrics, Rows: s.rows}
}

// ReadsFiles reports whether the images of a trial come from files.
func (s *Sweep) ReadsFiles(t *Trial) bool { return len(t.fitted.Files)+len(t.tested.Files) > 0 }

// Check returns an error unless the folder of the trial contains its finished run, with the metrics that the sweep measures.
func (s *Sweep) Check(t *Trial) error {
	if err := t.verify(); err != nil {
		return err
	}
	_, err := s.stored(t, keptFile, s.split)
	return err
}

// Started returns the file that contains the initial parameters of the trial's model, nil if they are random.
func (t *Trial) Started() *data.File {
	start, err := train.StartOf(t.Model)
	if err != nil { // on an error, the training reports the error
		return nil
	}
	return start
}

// Declaration returns the model of the trial as the text of a config.toml.
func (t *Trial) Declaration() []byte { return t.Model.Text() }

// Describe returns the model and the settings of a trial as text, without keys that its model does not have:
// "small loss.1.target=0.2 seed=1".
func (s *Sweep) Describe(t *Trial) string {
	parts := []string{t.Model.Name}
	for i, text := range t.Texts() {
		if t.Values[i] != nil {
			parts = append(parts, s.Keys[i]+"="+text)
		}
	}
	return strings.Join(append(parts, fmt.Sprintf("seed=%d", t.Model.Train.Seed)), " ")
}

// Begun reports whether the folder of the trial contains a run, finished or not.
func (t *Trial) Begun() bool { return begun(t.Path) }

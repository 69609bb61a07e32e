package fleet

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"tessera/config"
	"tessera/config/part"
	"tessera/config/part/table"
	"tessera/data"
	"tessera/internal/parallel/team"
	"tessera/internal/regular"
	"tessera/internal/sweep"
	"tessera/internal/train"
	"tessera/internal/train/checkpoint"
	"tessera/internal/train/folder"
	"tessera/metrics"
)

// attempt is one attempt of a worker to run a trial.
type attempt struct {
	*serving
	task    *task
	digest  string
	message jetstream.Msg
	dir     string
	sent    int       // step of the last checkpoint sent or received
	stamp   time.Time // time stamp of the last state sent
}

// trial runs one trial. If it cannot finish the trial, it returns the trial to the queue.
func (s *serving) trial(ctx context.Context, m jetstream.Msg, team *team.Team) {
	a := &attempt{serving: s, task: &task{}, digest: sum(m.Data()), message: m}
	if err := decode(m.Data(), a.task); err != nil {
		s.options.Log("a trial was not understood: " + err.Error())
		_ = m.NakWithDelay(s.lease)
		return
	}
	if s.busy(a.task.Trial) { // this process is still running the trial: its lease expired while the connection was lost
		_ = m.NakWithDelay(s.lease)
		return
	}
	a.dir = filepath.Join(s.dir, a.task.Trial)
	end := a.keepLease()
	defer end() // deferred first, so that it runs after the folder is removed; another slot may then take the trial
	defer func() { _ = errors.Join(s.options.Disk.RemoveAll(a.dir), s.options.Disk.RemoveAll(a.startDir())) }()
	err := a.do(ctx, team)
	if err != nil {
		a.giveBack(ctx, err)
	}
}

// busy reports whether this process is already running the trial. If not, it registers the trial as running.
func (s *serving) busy(trial string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, is := s.running[trial]
	if !is {
		s.running[trial] = running{Trial: trial}
	}
	return is
}

// keepLease extends the lease of the trial until the returned function is called. This function also unregisters the
// trial.
func (a *attempt) keepLease() (end func()) {
	stop := every(context.Background(), a.lease/3, func(context.Context) { _ = a.message.InProgress() })
	return func() {
		stop()
		a.mu.Lock()
		delete(a.running, a.task.Trial)
		a.mu.Unlock()
	}
}

// show stores the progress of the trial for the next hello message.
func (a *attempt) show(p train.Progress) {
	r := running{Trial: a.task.Trial, Epoch: p.Epoch, Epochs: p.Epochs, Step: p.Step, Steps: p.Steps}
	if finite(p.Loss) {
		r.Loss = &p.Loss
	}
	if finite(p.ImagesPerSecond) {
		r.ImagesPerSecond = p.ImagesPerSecond
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running[a.task.Trial] = r
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// do runs the trial and sends its result.
func (a *attempt) do(ctx context.Context, team *team.Team) (err error) {
	exhausted := false
	rec, err := a.records.change(ctx, a.task.Trial, func(r *record) bool {
		if exhausted = r.exhausted(); exhausted {
			return false
		}
		r.Tries = append(r.Tries, try{Worker: a.self.Name})
		return true
	})
	if err != nil {
		return err
	}
	if exhausted {
		return a.giveUp(ctx, rec)
	}
	if a.options.fake != nil {
		run, err := a.options.fake(ctx, a.store, a.task)
		if err != nil {
			return err
		}
		return a.finish(ctx, &result{Digest: a.digest, Run: run})
	}
	r, err := a.outcome(ctx, a.train(ctx, rec, team))
	if err != nil {
		return err
	}
	return a.finish(ctx, r)
}

// train trains and measures the trial in a folder of this process.
func (a *attempt) train(ctx context.Context, rec record, team *team.Team) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("internal error: %v\n%s", cause, debug.Stack())
		}
	}()
	one, err := a.standalone(ctx)
	if err != nil {
		return err
	}
	restored, err := a.restore(ctx, rec, one)
	if err != nil {
		return err
	}
	if err = a.advance(ctx, one, team); !restored || !unreadable(err) {
		return err
	}
	if err := a.beginAgain(ctx, rec, err); err != nil {
		return err
	}
	return a.advance(ctx, one, team)
}

// advance trains and measures the trial, and sends checkpoints in the meantime.
func (a *attempt) advance(ctx context.Context, one *sweep.StandaloneTrial, team *team.Team) error {
	ended := a.send(ctx)
	defer ended()
	_, err := one.Do(ctx, team)
	return err
}

// unreadable reports whether the files of a run are unreadable or do not match its model.
func unreadable(err error) bool {
	var file *checkpoint.Error
	var text *table.Diagnostics
	return errors.As(err, &file) || errors.As(err, &text)
}

// beginAgain removes a checkpoint whose contents are unusable although its bytes arrived correctly. why is the error.
func (a *attempt) beginAgain(ctx context.Context, rec record, why error) error {
	a.options.Log(fmt.Sprintf("%s: its checkpoint cannot be used: %s; it begins again", a, a.text(why)))
	if err := a.options.Disk.RemoveAll(a.dir); err != nil {
		return &folder.WriteError{Path: a.dir, Err: err}
	}
	var unusable *manifest
	_, err := a.records.change(ctx, a.task.Trial, func(r *record) bool {
		if r.Checkpoint == nil || r.Step != rec.Step { // another worker has sent a later checkpoint
			return false
		}
		unusable, r.Step, r.Checkpoint = r.Checkpoint, 0, nil
		return true
	})
	a.sent, a.stamp = 0, time.Time{}
	a.store.drop(ctx, unusable)
	return err
}

// standalone returns the trial together with its data.
func (a *attempt) standalone(ctx context.Context) (*sweep.StandaloneTrial, error) {
	spec, err := train.Declared("the declaration of trial "+a.task.Trial, []byte(a.task.Declaration))
	if err != nil {
		return nil, err
	}
	d := &spec.Dataset
	fitted, err := a.sets.of(ctx, a.serving, a.task, d, d.Need(), needFitted, a.task.Fitted)
	if err != nil {
		return nil, err
	}
	tested, err := a.sets.of(ctx, a.serving, a.task, d, d.NeedOf(data.TestSplit), needTested, a.task.Tested)
	if err != nil {
		return nil, err
	}
	one := &sweep.StandaloneTrial{Options: train.Options{Out: a.dir, Dirs: a.options.Dirs, Disk: a.options.Disk, Report: a.show}, ID: a.task.Trial, Model: spec,
		Fitted: fitted.set, Tested: tested.set, Split: a.task.Split, Metrics: a.task.Metrics, Rows: tested.rows}
	if a.task.Start != "" {
		if one.Start, err = a.start(ctx, spec.Start); err != nil {
			return nil, err
		}
	}
	if id, err := one.Identity(); err != nil || id != a.task.Trial {
		return nil, errors.Join(err, fmt.Errorf("the trial has another identity here (got %s, want %s): its data or its declaration differ", id, a.task.Trial))
	}
	return one, nil
}

// startDir returns the folder of the run from which the model takes its initial parameters.
func (a *attempt) startDir() string { return filepath.Join(a.worker.dir, "start-"+a.task.Trial) }

// start fetches the run or the file from which the model takes its initial parameters.
func (a *attempt) start(ctx context.Context, from *config.Start) (string, error) {
	m, err := a.ask(ctx, &need{Trial: a.task.Trial, What: needStart})
	if err != nil {
		return "", err
	}
	files, err := a.store.get(ctx, m, mostParts*partSize) // the initial parameters come from another model than that of the trial, so the bound is the general one
	if err != nil {
		return "", err
	}
	dir := a.startDir()
	held, err := folder.Create(dir, true, a.options.Disk, files...)
	if err != nil {
		return "", err
	}
	if from.File != "" {
		return filepath.Join(dir, startFile), held.Close()
	}
	return dir, held.Close()
}

// restore puts the last checkpoint of the trial into the folder of the trial. Without a usable checkpoint, the trial
// starts from the beginning.
func (a *attempt) restore(ctx context.Context, rec record, one *sweep.StandaloneTrial) (restored bool, err error) {
	if rec.Checkpoint == nil {
		return false, nil
	}
	files, err := a.store.get(ctx, rec.Checkpoint, largestRun(one))
	if err == nil && !resumable(files) {
		err = errors.New("it is not a whole run")
	}
	if err != nil {
		if ctx.Err() != nil {
			return false, err
		}
		return false, a.beginAgain(ctx, rec, err)
	}
	held, err := folder.Create(a.dir, true, a.options.Disk, files...)
	if err != nil {
		return false, err
	}
	a.sent = rec.Step
	return true, held.Close()
}

// send sends checkpoints of the trial during the training, at most four per lease, until the returned function is
// called.
func (a *attempt) send(ctx context.Context) (end func()) {
	return every(ctx, a.lease/4, func(ctx context.Context) { _ = a.sendCheckpoint(ctx, true) }) // the error is ignored, because the next attempt may succeed
}

// sendCheckpoint sends the state of the trial on disk if it is newer than the last one sent, and notes it in the
// record. It also resets the attempts in the record, because a trial that makes progress does not count as failed.
func (a *attempt) sendCheckpoint(ctx context.Context, trying bool) error {
	info, err := os.Stat(filepath.Join(a.dir, folder.State))
	if err != nil || info.ModTime().Equal(a.stamp) {
		return nil
	}
	files, step, err := snapshot(a.dir)
	if err != nil || step <= a.sent {
		return err
	}
	m, err := a.store.put(ctx, a.prefix(), files)
	if err != nil {
		return err
	}
	var old *manifest
	_, err = a.records.change(ctx, a.task.Trial, func(r *record) bool {
		if r.Checkpoint != nil && r.Step >= step { // another worker has made more progress
			old = m
			return false
		}
		old = r.Checkpoint
		r.Step, r.Checkpoint, r.Tries = step, m, nil
		if trying {
			r.Tries = []try{{Worker: a.self.Name}}
		}
		return true
	})
	if err != nil {
		return err
	}
	a.sent, a.stamp = step, info.ModTime()
	a.store.drop(ctx, without(old, m))
	return nil
}

// without returns a copy of the manifest m without the parts that the other manifest also has.
func without(m, other *manifest) *manifest {
	if m == nil || m == other {
		return m
	}
	rest := &manifest{}
	for _, p := range m.Parts {
		if !slices.ContainsFunc(other.Parts, func(q piece) bool { return q.Object == p.Object }) {
			rest.Parts = append(rest.Parts, p)
		}
	}
	return rest
}

// returnTime is the maximum time for returning a trial to the queue.
const returnTime = 15 * time.Second

// giveBack returns the trial to the queue, with a checkpoint. err is the reason.
func (a *attempt) giveBack(ctx context.Context, err error) {
	stopped := ctx.Err() != nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), returnTime)
	defer cancel()
	var unwritten *folder.WriteError
	full := errors.As(err, &unwritten)
	sent := a.sendCheckpoint(ctx, false)
	delay := time.Duration(0)
	_, failed := a.records.change(ctx, a.task.Trial, func(r *record) bool {
		i := slices.IndexFunc(r.Tries, func(t try) bool { return t.Worker == a.self.Name && t.Problem == "" })
		switch {
		case stopped || full:
			if i >= 0 {
				r.Tries = slices.Delete(r.Tries, i, i+1)
			}
			return i >= 0
		case i < 0:
			i, r.Tries = len(r.Tries), append(r.Tries, try{Worker: a.self.Name})
		}
		r.Tries[i].Problem = a.text(err)
		delay = time.Second // so that another worker may take the trial first
		return true
	})
	switch {
	case full:
		a.mu.Lock()
		a.full = err
		a.mu.Unlock()
		a.options.Log(fmt.Sprintf("%v: the trial is given back, and no more are taken", err))
		a.wake()
	case !stopped:
		a.options.Log(fmt.Sprintf("%s: given back: %v", a, err))
	default:
		a.options.Log(fmt.Sprintf("gave back %s", a))
	}
	if err := errors.Join(sent, failed); err != nil {
		a.options.Log(fmt.Sprintf("%s: its checkpoint was not sent: %v", a, err))
	}
	_ = a.message.NakWithDelay(delay)
	_ = a.conn.FlushWithContext(ctx)
}

// outcome returns the result that ends a trial: a finished run, or an error that would occur on every machine. It
// returns other errors, after which a retry may succeed, as an error.
func (a *attempt) outcome(ctx context.Context, err error) (*result, error) {
	var diverged *train.Diverged
	var notFinite *metrics.NotFinite
	var bad *data.Error
	var setting part.KeyError
	switch {
	case err == nil:
		text, err := regular.ReadUnlinked(filepath.Join(a.dir, evalFile))
		return &result{Digest: sum(text)}, err
	case ctx.Err() != nil:
		return nil, err
	case errors.As(err, &diverged), errors.As(err, &notFinite), errors.As(err, &bad), errors.As(err, &setting):
		return &result{Problem: a.text(err)}, nil
	}
	return nil, err
}

// text returns the message of an error without the paths of this machine.
func (a *attempt) text(err error) string {
	return cut(strings.ReplaceAll(err.Error(), a.dir, trialPath))
}

// finish sends the run and the result, and removes the trial from the queue.
func (a *attempt) finish(ctx context.Context, r *result) error {
	r.Protocol, r.Trial, r.Task, r.Worker = protocol, a.task.Trial, a.digest, a.self.Name
	if r.Run == nil {
		files, err := a.files()
		if err != nil {
			return err
		}
		if len(files) > 0 {
			if r.Run, err = a.store.put(ctx, a.prefix(), files); err != nil {
				return err
			}
		}
	}
	text, err := encode(r)
	if err != nil {
		return err
	}
	if err := a.store.publish(ctx, a.names.subject("result."+a.task.Trial), a.task.Trial, text); err != nil {
		return err
	}
	what := "done"
	if r.Problem != "" {
		what = "failed: " + r.Problem
	}
	a.options.Log(fmt.Sprintf("%s: %s", a, what))
	_ = a.message.Ack() // if the acknowledgement is lost, the coordinator withdraws the trial
	return nil
}

func (a *attempt) String() string { return "trial " + a.task.Trial + ", " + a.task.Label }

// prefix returns the prefix of the names of the objects that this worker stores for the trial.
func (a *attempt) prefix() string { return a.task.Trial + "-" + a.self.ID }

// files returns the files of the run, or none if there is no run.
func (a *attempt) files() (files []folder.File, err error) {
	for _, name := range known {
		b, err := regular.ReadUnlinked(filepath.Join(a.dir, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		files = append(files, folder.File{Name: name, Data: b})
	}
	return files, nil
}

// exhausted reports whether a trial has reached the maximum number of attempts.
func (r *record) exhausted() bool {
	failures := 0
	for _, t := range r.Tries {
		if t.Problem != "" {
			failures++
		}
	}
	return failures >= mostFailures || len(r.Tries)-failures >= mostLosses
}

// giveUp ends a trial that has reached the maximum number of attempts.
func (a *attempt) giveUp(ctx context.Context, rec record) error {
	text := fmt.Sprintf("failed %d times:", len(rec.Tries))
	for _, t := range rec.Tries {
		if t.Problem == "" {
			t.Problem = "the worker ended or lost its connection"
		}
		text += fmt.Sprintf(" on %s: %s;", t.Worker, t.Problem)
	}
	return a.finish(ctx, &result{Problem: cut(strings.TrimSuffix(text, ";")), GaveUp: true})
}

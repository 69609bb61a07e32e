package fleet

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"tessera/data"
	"tessera/parallel/team"
	"tessera/sweep"
	"tessera/train"
	"tessera/train/folder"
)

// attempt is one try of a trial.
type attempt struct {
	*serving
	task    *task
	digest  string
	message jetstream.Msg
	dir     string
	sent    int       // step of the last checkpoint that was sent or received
	stamp   time.Time // of the state that was sent
}

// trial does one trial, or gives it back.
func (s *serving) trial(ctx context.Context, m jetstream.Msg, team *team.Team) {
	a := &attempt{serving: s, task: &task{}, digest: sum(m.Data()), message: m}
	if err := decode(m.Data(), a.task); err != nil {
		s.options.Log("a trial was not understood: " + err.Error())
		_ = m.NakWithDelay(s.lease)
		return
	}
	if s.busy(a.task.Trial) { // this process still does it: its lease had run out while the connection was lost
		_ = m.NakWithDelay(s.lease)
		return
	}
	a.dir = filepath.Join(s.dir, a.task.Trial)
	defer func() { _ = errors.Join(s.options.Disk.RemoveAll(a.dir), s.options.Disk.RemoveAll(a.startDir())) }()
	ended := a.keep()
	defer ended()
	err := a.do(ctx, team)
	if err != nil {
		a.back(ctx, err)
	}
}

// busy reports whether this process does the trial, and if not, marks it as done by it.
func (s *serving) busy(trial string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, is := s.running[trial]
	if !is {
		s.running[trial] = running{Trial: trial}
	}
	return is
}

// keep extends the lease of the trial until the returned function is called.
func (a *attempt) keep() (end func()) {
	stop := make(chan struct{})
	go func() {
		tick := time.NewTicker(a.lease / 3)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				_ = a.message.InProgress()
			}
		}
	}()
	return func() {
		close(stop)
		a.mu.Lock()
		delete(a.running, a.task.Trial)
		a.mu.Unlock()
	}
}

// show notes the progress for the next hello.
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

// do does the trial and sends its result.
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

// train trains and measures the trial in the folder of this process.
func (a *attempt) train(ctx context.Context, rec record, team *team.Team) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("internal error: %v\n%s", cause, debug.Stack())
		}
	}()
	one, err := a.one(ctx)
	if err != nil {
		return err
	}
	if err := a.restore(ctx, rec); err != nil {
		return err
	}
	ended := a.send(ctx)
	defer ended()
	_, err = one.Do(ctx, team)
	return err
}

// one is the trial, with its data.
func (a *attempt) one(ctx context.Context) (*sweep.One, error) {
	spec, err := train.Declared("the declaration of trial "+a.task.Trial, []byte(a.task.Declaration))
	if err != nil {
		return nil, err
	}
	d := &spec.Dataset
	fitted, err := a.sets.of(ctx, a.serving, a.task, d, d.Need(), needFitted, a.task.Fitted)
	if err != nil {
		return nil, err
	}
	tested, err := a.sets.of(ctx, a.serving, a.task, d, data.NeedOf(d.Source, d.Selection, data.TestSplit), needTested, a.task.Tested)
	if err != nil {
		return nil, err
	}
	one := &sweep.One{ID: a.task.Trial, Model: spec, Path: a.dir, Fitted: fitted.set, Tested: tested.set, Split: a.task.Split, Metrics: a.task.Metrics,
		Dirs: a.options.Dirs, Disk: a.options.Disk, Report: a.show, Rows: tested.rows}
	if a.task.Start != "" {
		if one.Start, err = a.start(ctx); err != nil {
			return nil, err
		}
	}
	if id, err := one.Identity(); err != nil || id != a.task.Trial {
		return nil, errors.Join(err, fmt.Errorf("the trial has another identity here (got %s, want %s): its data or its declaration differ", id, a.task.Trial))
	}
	return one, nil
}

// startDir is the folder of the run that the model starts from.
func (a *attempt) startDir() string { return filepath.Join(a.worker.dir, "start-"+a.task.Trial) }

// start fetches the run whose parameters the model starts from.
func (a *attempt) start(ctx context.Context) (string, error) {
	m, err := a.ask(ctx, &need{Trial: a.task.Trial, What: needStart})
	if err != nil {
		return "", err
	}
	files, err := a.store.get(ctx, m)
	if err != nil {
		return "", err
	}
	dir := a.startDir()
	held, err := folder.Create(dir, true, a.options.Disk, files...)
	if err != nil {
		return "", err
	}
	return dir, held.Close()
}

// restore puts the last checkpoint of the trial into its folder. Without a usable one the trial begins again.
func (a *attempt) restore(ctx context.Context, rec record) error {
	if rec.Checkpoint == nil {
		return nil
	}
	files, err := a.store.get(ctx, rec.Checkpoint)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		a.options.Log(fmt.Sprintf("%s: its checkpoint cannot be used: %v; it begins again", a, err))
		return nil
	}
	held, err := folder.Create(a.dir, true, a.options.Disk, files...)
	if err != nil {
		return err
	}
	a.sent = rec.Step
	return held.Close()
}

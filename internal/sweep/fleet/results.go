package fleet

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
	"tessera/internal/regular"
	"tessera/internal/sweep"
	"tessera/internal/train"
	"tessera/internal/train/checkpoint"
	"tessera/internal/train/folder"
)

// trialPath replaces the path of a trial's folder in problems that workers report.
const trialPath = "{trial}"

// receive applies the result of a trial, and only then removes the result from the queue. If the coordinator is killed
// in between, it receives the result again.
func (c *Coordinator) receive(ctx context.Context, m jetstream.Msg) {
	if ctx.Err() != nil {
		return // the next coordinator receives it
	}
	var r result
	if err := decode(m.Data(), &r); err != nil {
		c.options.Log("a result was ignored: " + err.Error())
		_ = m.Ack()
		return
	}
	t := c.trials[r.Trial]
	if t == nil { // a result of an earlier declaration
		_ = m.Ack()
		return
	}
	err := c.apply(ctx, t, &r)
	if ctx.Err() != nil {
		return
	}
	if _, ok := errors.AsType[*folder.WriteError](err); ok { // the result stays in the queue
		c.finish(t, r.Task, err)
		return
	}
	if err != nil {
		c.reject(ctx, t, &r, err)
	}
	_ = m.DoubleAck(ctx)
}

// reject offers a trial with an unusable result again. After mostFailures such results it ends the trial.
func (c *Coordinator) reject(ctx context.Context, t *sweep.Trial, r *result, why error) {
	c.rejected[t.ID]++ // without a lock, because results are received one after the other
	if n := c.rejected[t.ID]; n >= mostFailures {
		c.finish(t, r.Task, fmt.Errorf("%d results of workers cannot be used; that of %s: %w", n, r.Worker, why))
		c.clear(ctx, t, r)
		return
	}
	c.options.Log(fmt.Sprintf("%s: the result of %s cannot be used: %v; the trial is done again", t.Path, r.Worker, why))
	c.repeat(ctx, t)
}

// apply records a result in the sweep's folder. It returns an error for an unusable result.
func (c *Coordinator) apply(ctx context.Context, t *sweep.Trial, r *result) error {
	current, err := c.task(t)
	if err != nil {
		return nil // the sweep reports the error
	}
	text, err := encode(current)
	if err != nil || sum(text) != r.Task { // the result is for a task with other metrics
		c.store.drop(ctx, r.Run)
		if c.sweep.Check(t) != nil {
			return errors.New("other metrics are asked for now")
		}
		return nil
	}
	switch {
	case c.sweep.Check(t) == nil:
		c.compare(t, r)
	case r.Problem != "":
		return c.failed(ctx, t, r)
	default:
		files, err := c.store.get(ctx, r.Run, largestRun(c.sweep.Standalone(t)))
		if err != nil {
			return err
		}
		if err := c.put(t, r, files); err != nil {
			return err
		}
		c.finish(t, r.Task, nil)
	}
	c.clear(ctx, t, r)
	return nil
}

// installResult verifies a finished run and puts it into the sweep's folder.
func (c *Coordinator) installResult(t *sweep.Trial, r *result, files []folder.File) error {
	if got := sum(find(files, evalFile)); got != r.Digest {
		return fmt.Errorf("%s: %w (got %.12s..., want %.12s...)", evalFile, errChecksum, got, r.Digest)
	}
	if err := c.install(t, files, r.Worker); err != nil {
		return err
	}
	if err := c.sweep.Check(t); err != nil { // otherwise workers would continue from that run
		return errors.Join(err, c.options.Disk.RemoveAll(t.Path))
	}
	return nil
}

// install atomically puts a run into the folder of its trial. It writes only files of a run, whatever was sent.
func (c *Coordinator) install(t *sweep.Trial, files []folder.File, worker string) error {
	if !resumable(files) {
		return errors.New("it is not a whole run")
	}
	one := c.sweep.Standalone(t)
	var kept []folder.File
	for _, f := range files {
		if f.Name == folder.Environment {
			text, err := train.Moved(f.Data, worker, one.Dirs, one.Fitted.Files, t.Started())
			if err != nil {
				return err
			}
			f.Data = text
		}
		if f.Name != setFile {
			kept = append(kept, f)
		}
	}
	held, err := folder.Create(t.Path, t.Begun(), c.options.Disk, kept...)
	if err != nil {
		return err
	}
	return held.Close()
}

// failed ends a trial with the error that its workers have reported.
func (c *Coordinator) failed(ctx context.Context, t *sweep.Trial, r *result) error {
	if r.Run != nil && !t.Begun() {
		files, err := c.store.get(ctx, r.Run, largestRun(c.sweep.Standalone(t)))
		if err == nil {
			err = c.install(t, files, r.Worker)
		}
		if err != nil {
			return err
		}
	}
	c.finish(t, r.Task, errors.New(strings.ReplaceAll(r.Problem, trialPath, t.Path)))
	c.clear(ctx, t, r)
	return nil
}

// compare compares a second result with the installed one. Unequal results mean that the machines compute differently,
// or that memory or disk is faulty. Workers with different kernels compute differently; then the first result is kept.
func (c *Coordinator) compare(t *sweep.Trial, r *result) {
	text, err := regular.ReadUnlinked(filepath.Join(t.Path, evalFile))
	if err != nil || r.GaveUp || r.Problem == "" && sum(text) == r.Digest {
		return
	}
	firstWorker, kernels := "another machine", ""
	if e, err := train.ReadEnvironment(t.Path); err == nil {
		if kernels = e.BLAS; e.Machine != "" {
			firstWorker = fmt.Sprintf("%s (%s, %s)", e.Machine, e.CPU, e.BLAS)
		}
	}
	second := r.Worker
	c.mu.Lock()
	mixed := c.mixed
	for _, m := range c.workers {
		if m.name == r.Worker {
			second = fmt.Sprintf("%s (%s, %s)", m.name, m.cpu, m.kernels)
			mixed = mixed || kernels != "" && m.kernels != "" && m.kernels != kernels // the first result may have come before a restart
		}
	}
	c.mu.Unlock()
	if mixed && r.Problem == "" {
		c.options.Log(fmt.Sprintf("%s: the result of %s differs from that of %s; the first is kept: the workers have different kernels", t.Path, second, firstWorker))
		return
	}
	what := "SHA-256 of parameters and metrics: got " + r.Digest + ", want " + sum(text)
	if r.Problem != "" {
		what = "it failed: " + strings.ReplaceAll(r.Problem, trialPath, t.Path)
	}
	c.fail(fmt.Errorf("%w: %w", ErrUnequal, checkpoint.Mismatchf(t.Path, "the result of %s differs from that of %s (%s)", second, firstWorker, what)))
}

// finish ends the call of Do for a trial.
func (c *Coordinator) finish(t *sweep.Trial, digest string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.waiting[t.ID]; w != nil && w.digest == digest {
		select {
		case w.done <- err:
		default: // the trial already has an outcome
		}
	}
}

// clear removes a trial and its result from the queue and the store.
func (c *Coordinator) clear(ctx context.Context, t *sweep.Trial, r *result) {
	_ = c.withdraw(ctx, t.ID)
	rec, _, err := c.records.get(ctx, t.ID)
	if err == nil {
		c.store.drop(ctx, rec.Checkpoint)
	}
	c.records.remove(ctx, t.ID)
	c.store.drop(ctx, r.Run)
}

// repeat offers a trial again, from the beginning.
func (c *Coordinator) repeat(ctx context.Context, t *sweep.Trial) {
	c.records.remove(ctx, t.ID)
	c.mu.Lock()
	w := c.waiting[t.ID]
	c.mu.Unlock()
	if w == nil {
		return
	}
	if err := c.offer(ctx, t, w, false); err != nil && ctx.Err() == nil {
		c.fail(fmt.Errorf("%w: %w", ErrLost, err))
	}
}

package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"tessera/data"
	"tessera/internal/regular"
	"tessera/sweep"
	"tessera/train"
	"tessera/train/checkpoint"
	"tessera/train/folder"
)

// Do implements [sweep.Elsewhere]: it puts the trial into the queue and waits for its result.
func (c *Coordinator) Do(ctx context.Context, t *sweep.Trial, progress func(train.Progress)) error {
	w, err := c.wait(t, progress)
	if err != nil {
		return err
	}
	defer w.over()
	defer c.forget(t.ID, w)
	if c.sweep.Check(t) == nil { // its result came before
		return nil
	}
	if err := c.begin(ctx, t, w); err != nil && ctx.Err() == nil {
		return &sweep.Stop{Err: fmt.Errorf("%w: %w", ErrLost, err)}
	}
	select {
	case err := <-w.done:
		return err
	case <-c.breaks:
		return &sweep.Stop{Err: c.broken}
	case <-ctx.Done():
		return ctx.Err()
	}
}

// wait registers a trial whose result is expected.
func (c *Coordinator) wait(t *sweep.Trial, progress func(train.Progress)) (*waiting, error) {
	task, err := c.task(t)
	if err != nil {
		return nil, err
	}
	text, err := encode(task)
	if err != nil {
		return nil, err
	}
	w := &waiting{task: task, digest: sum(text), progress: progress, done: make(chan error, 1), sign: time.Now()}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting[t.ID] = w
	return w, nil
}

func (c *Coordinator) forget(trial string, w *waiting) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting[trial] == w {
		delete(c.waiting, trial)
	}
}

// over ends the reports of progress.
func (w *waiting) over() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.progress = nil
}

// task describes a trial to a worker.
func (c *Coordinator) task(t *sweep.Trial) (*task, error) {
	one := c.sweep.One(t)
	w := &task{Protocol: protocol, Trial: t.ID, Label: cut(c.sweep.Describe(t)), Declaration: string(t.Declaration()), Split: one.Split, Metrics: one.Metrics,
		Fitted: sums(one.Fitted.Files), Tested: sums(one.Tested.Files)}
	if start := t.Started(); start != nil {
		w.Start = start.SHA256
	}
	return w, w.check()
}

// sums are the checksums of files.
func sums(files []data.File) []string {
	all := []string{}
	for _, f := range files {
		all = append(all, f.SHA256)
	}
	return all
}

// begin puts a trial into the queue, unless a worker does it or its result is there: the work of an earlier coordinator.
func (c *Coordinator) begin(ctx context.Context, t *sweep.Trial, w *waiting) error {
	c.mu.Lock()
	there := c.arrived[t.ID] || c.holder(t.ID) != ""
	delete(c.arrived, t.ID)
	c.mu.Unlock()
	if there {
		return nil
	}
	return c.offer(ctx, t, w, true)
}

// offer puts a trial into the queue. A run that the sweep's folder has is where workers continue. The tries of earlier
// coordinators are forgotten, those of this one are not: they end a trial that ends every worker.
func (c *Coordinator) offer(ctx context.Context, t *sweep.Trial, w *waiting, first bool) error {
	if err := c.sendBegun(ctx, t, first); err != nil {
		return err
	}
	text, err := encode(w.task)
	if err != nil {
		return err
	}
	if err := c.withdraw(ctx, t.ID); err != nil {
		return err
	}
	unique := t.ID + newID() // a repeated request adds nothing
	return c.store.again(ctx, func(ctx context.Context) error {
		_, err := c.store.js.Publish(ctx, c.names.task(t.ID, w.digest), text, jetstream.WithMsgID(unique))
		return err
	})
}

// withdraw takes the tasks of a trial out of the queue.
func (c *Coordinator) withdraw(ctx context.Context, trial string) error {
	return c.store.again(ctx, func(ctx context.Context) error {
		return c.work.Purge(ctx, jetstream.WithPurgeSubject(c.names.subject("work."+trial+".*")))
	})
}

// sendBegun makes the run in the folder of a trial the checkpoint from which workers continue, unless they have a later one.
func (c *Coordinator) sendBegun(ctx context.Context, t *sweep.Trial, forget bool) error {
	var sent *manifest
	step := 0
	if t.Begun() {
		files, at, err := snapshot(t.Path)
		if err == nil {
			if sent, err = c.store.put(ctx, t.ID+"-folder", files); err != nil {
				return err
			}
			step = at
		} else if !errors.Is(err, os.ErrNotExist) {
			c.options.Log(fmt.Sprintf("%s: workers do not continue from this folder: %v", t.Path, err))
		}
	}
	_, err := c.records.change(ctx, t.ID, func(r *record) bool {
		further := sent != nil && (r.Checkpoint == nil || step > r.Step)
		if further {
			r.Step, r.Checkpoint = step, sent
		}
		forgotten := forget && len(r.Tries) > 0
		if forgotten {
			r.Tries = nil
		}
		return further || forgotten
	})
	return err
}

// snapshot returns the files from which a run can be resumed, and its step. The state is read first: metrics that are newer
// are cut on resume. The step is that of the bytes that were read, which a training may have replaced since. A damaged state is an
// error.
func snapshot(run string) (files []folder.File, step int, err error) {
	for _, name := range []string{folder.State, folder.Config, folder.Environment, folder.Metrics} {
		b, err := regular.ReadFile(filepath.Join(run, name))
		if errors.Is(err, os.ErrNotExist) && (name == folder.Metrics || name == folder.Environment) {
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		files = append(files, folder.File{Name: name, Data: b})
	}
	state, err := checkpoint.Decode(files[0].Data)
	if err != nil {
		return nil, 0, checkpoint.Errorf(filepath.Join(run, folder.State), "%v", err)
	}
	step, err = strconv.Atoi(state.Metadata["step"])
	return files, step, err
}

// stepOf returns the step of a state.
func stepOf(path string) (int, error) {
	about, err := checkpoint.ReadMetadata(path)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(about["step"])
}

// End implements [sweep.Elsewhere]: it lets the workers go and closes the queue. After an interruption it waits until the workers
// have given their trials back, and installs their checkpoints.
func (c *Coordinator) End(err error) error {
	if c.conn != nil && c.work != nil {
		if err == nil {
			c.turn(stateEnd)
			c.await(2*time.Second, func(m *member) bool { return m.knowsEnd })
		} else {
			c.turn(stateCancel)
			c.await(giveBack, func(m *member) bool { return m.leaving || len(m.running) == 0 && m.asked })
		}
	}
	c.stop()
	if c.local != nil {
		<-c.local
	}
	if c.inbox != nil {
		c.inbox.Stop()
		<-c.inbox.Closed()
	}
	c.mu.Lock()
	broken := c.broken
	c.mu.Unlock()
	switch {
	case c.work == nil:
	case err == nil && broken == nil:
		c.removeQueue()
	case errors.Is(err, train.ErrInterrupted):
		c.installCheckpoints()
	}
	c.close()
	if err == nil && broken == nil {
		return c.options.Disk.RemoveAll(c.dir)
	}
	return broken
}

// close ends the connection, and the server of this process.
func (c *Coordinator) close() {
	if c.conn != nil {
		c.conn.Close()
	}
	if c.server != nil {
		c.server.Shutdown()
		c.server.WaitForShutdown()
	}
}

// removeQueue removes what the sweep has in a server that stays.
func (c *Coordinator) removeQueue() {
	if c.server != nil { // its whole folder is removed
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTime)
	defer cancel()
	for _, name := range []string{c.names.work(), c.names.inbox(), "OBJ_" + c.names.files(), "KV_" + c.names.records()} {
		_ = c.store.js.DeleteStream(ctx, name)
	}
}

// installCheckpoints puts the last checkpoints of unfinished trials into the sweep's folder: a sweep without workers can resume
// them.
func (c *Coordinator) installCheckpoints() {
	ctx, cancel := context.WithTimeout(context.Background(), giveBack)
	defer cancel()
	for _, t := range c.sweep.Trials {
		if c.sweep.Check(t) == nil {
			continue
		}
		r, _, err := c.records.get(ctx, t.ID)
		if err != nil || r.Checkpoint == nil {
			continue
		}
		if at, err := stepOf(filepath.Join(t.Path, folder.State)); err == nil && at >= r.Step {
			continue
		}
		files, err := c.store.get(ctx, r.Checkpoint)
		if err == nil {
			err = c.install(t, files, "")
		}
		if err != nil {
			c.options.Log(fmt.Sprintf("%s: the checkpoint of its worker was not installed: %v", t.Path, err))
		}
	}
}

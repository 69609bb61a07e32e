package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"tessera/train/folder"
)

// send sends checkpoints of the trial while it is trained, at most four per lease, until the returned function is called.
func (a *attempt) send(ctx context.Context) (end func()) {
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(a.lease / 4)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				_ = a.sendCheckpoint(ctx, true) // the next one may succeed
			}
		}
	}()
	return func() {
		stop()
		<-ended
	}
}

// sendCheckpoint sends the state that the trial has on the disk, if it is later than the last one, and enters it into the
// record: a trial that advances has not failed.
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
		if r.Checkpoint != nil && r.Step >= step { // another worker is further
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

// without returns a manifest without the parts that another one has too.
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

// backTime bounds the time for giving a trial back.
const backTime = 15 * time.Second

// back gives the trial back to the queue, with a checkpoint. err is why.
func (a *attempt) back(ctx context.Context, err error) {
	stopped := ctx.Err() != nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), backTime)
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
		delay = time.Second // another worker may take it first
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

package fleet

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"tessera/sweep"
	"tessera/train/folder"
)

// present is how recent the last hello of a worker is that is there.
const present = 3 * helloEvery

// watch offers trials again that are neither in the queue nor with a worker nor finished: the queue of a server that was killed may
// have lost them.
func (c *Coordinator) watch(ctx context.Context) {
	tick := time.NewTicker(min(c.options.Lease/2, 5*time.Second))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := c.writable(); err != nil {
			c.fail(err) // the server of this process answers no more, and does not say why
			return
		}
		c.missWorkers()
		for _, t := range c.lost(ctx) {
			c.options.Log(fmt.Sprintf("%s: no worker has the trial; it is given out again", t.Path))
			c.mu.Lock()
			w := c.waiting[t.ID]
			c.mu.Unlock()
			if w != nil {
				_ = c.offer(ctx, t, w, false) // else at the next tick
			}
		}
	}
}

// writable returns an error if the disk of the sweep is full.
func (c *Coordinator) writable() error {
	path := filepath.Join(c.dir, "writable")
	err := c.options.Disk.WriteFile(path, func(w io.Writer) error { _, err := w.Write(make([]byte, 1<<16)); return err })
	if err != nil {
		return &folder.WriteError{Path: path, Err: err}
	}
	return nil
}

// lost are the trials of which there was no sign for too long: twice the lease, or less if the worker that had it is there and
// does not have it any more.
func (c *Coordinator) lost(ctx context.Context) (trials []*sweep.Trial) {
	one, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	info, err := c.tasks.Info(one)
	if err != nil {
		return nil
	}
	unread, err := c.unread(one)
	if err != nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != stateRun {
		return nil
	}
	now := time.Now()
	for id, w := range c.waiting {
		holder := c.holder(id)
		most := 2 * c.options.Lease
		if m := c.workers[w.holder]; m != nil && now.Sub(m.seen) < present {
			most = min(most, present)
		}
		switch {
		case holder != "":
			w.sign, w.holder = now, holder
		case unread[id], w.holder == "" && info.NumPending > 0:
			w.sign = now
		case now.Sub(w.sign) > most:
			w.sign, w.holder = now, ""
			trials = append(trials, c.trials[id])
		}
	}
	return trials
}

// holder is the worker that does a trial, "" for none that is there. The caller holds the mutex.
func (c *Coordinator) holder(trial string) string {
	for id, m := range c.workers {
		if m.leaving || time.Since(m.seen) > present {
			continue
		}
		for _, r := range m.running {
			if r.Trial == trial {
				return id
			}
		}
	}
	return ""
}

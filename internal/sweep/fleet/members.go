package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"sync/atomic"
	"time"

	"tessera/config"
	"tessera/data"
	"tessera/internal/machine"
	"tessera/internal/regular"
	"tessera/internal/sweep"
	"tessera/internal/train/folder"
	"tessera/internal/train/sae"
	"tessera/metrics"
)

// absentAfter is the time without a hello message after which a worker is no longer counted.
const absentAfter = 10 * time.Second

// member is the coordinator's record of a worker.
type member struct {
	name, cpu, kernels string
	cores              int
	running            []running
	leaving            bool
	asked              bool      // the worker knows that it must return its trials
	absent             bool      // the worker has been reported as lost
	knowsEnd           bool      // the worker knows that the sweep has ended
	seen               time.Time // time of the last hello message, by the clock of this machine
}

// Fleet contains the number of workers, the number of trials that they can run concurrently (Cores), and the number of
// trials that they are running.
type Fleet struct{ Workers, Cores, Running int }

// Fleet returns the numbers of present workers and of their trials.
func (c *Coordinator) Fleet() (f Fleet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.workers {
		if time.Since(m.seen) < absentAfter && !m.leaving {
			f.Workers++
			f.Cores += m.cores
			f.Running += len(m.running)
		}
	}
	return f
}

// greet returns the answer to a hello message.
func (c *Coordinator) greet(b []byte) []byte {
	w := welcome{Protocol: protocol}
	var version struct {
		Version string `json:"version"`
		Name    string `json:"name"`
	}
	var h hello
	switch err := decode(b, &h); {
	case json.Unmarshal(b, &version) == nil && len(b) <= mostMessage && version.Version != machine.Version():
		w.Refused = cut(fmt.Sprintf("the worker is tessera %q, the coordinator %q; install the same version", version.Version, machine.Version()))
	case err != nil:
		w.Refused = cut(err.Error())
	default:
		w = c.admit(&h)
	}
	if w.Refused != "" {
		c.refuse(version.Name, w.Refused)
	}
	text, err := encode(&w)
	if err != nil {
		return nil
	}
	return text
}

// refuse logs, once per worker, that the worker is rejected.
func (c *Coordinator) refuse(name, why string) {
	c.mu.Lock()
	key := cut("refused " + name)
	_, known := c.workers[key]
	c.prune()
	c.workers[key] = &member{leaving: true}
	c.mu.Unlock()
	if !known {
		c.options.Log(fmt.Sprintf("worker %s was refused: %s", cut(name), why))
	}
}

// admit records the state in a worker's hello message, forwards its progress, and returns the answer.
func (c *Coordinator) admit(h *hello) welcome {
	c.mu.Lock()
	if c.kernels == "" {
		c.kernels = h.Kernels
	}
	other := h.Kernels != c.kernels
	if other && c.options.SameKernels {
		c.mu.Unlock()
		return welcome{Protocol: protocol, Refused: cut(fmt.Sprintf("its kernels are %s, this sweep accepts only %s; TESSERA_SIMD may select them", h.Kernels, c.kernels))}
	}
	warn := other && !c.mixed
	c.mixed = c.mixed || other
	m := c.workers[h.ID]
	joined := m == nil
	if joined {
		c.prune()
		m = &member{}
		c.workers[h.ID] = m
	}
	left := h.Leaving && !m.leaving
	joined, m.absent = joined || m.absent, false
	m.name, m.cpu, m.kernels, m.cores, m.running, m.leaving, m.seen = h.Name, h.CPU, h.Kernels, h.Cores, h.Running, h.Leaving, time.Now()
	m.asked = c.state == stateCancel && m.asked || c.state == stateCancel && len(h.Running) == 0
	m.knowsEnd = c.state == stateEnd
	state := c.state
	var tell []func()
	for _, r := range h.Running {
		if w := c.waiting[r.Trial]; w != nil && state == stateRun {
			tell = append(tell, func() { w.report(r.progress()) })
		}
	}
	c.mu.Unlock()
	for _, one := range tell {
		one()
	}
	c.announce(h, joined, left, warn)
	return welcome{Protocol: protocol, Sweep: c.names.sweep, State: state, Lease: int(c.options.Lease / time.Millisecond)}
}

// mostMembers is the maximum number of workers that a coordinator stores.
const mostMembers = 4096

// prune removes workers that have not sent a hello message for absentAfter, if there are too many workers. The caller
// must hold the mutex.
func (c *Coordinator) prune() {
	if len(c.workers) >= mostMembers {
		maps.DeleteFunc(c.workers, func(_ string, m *member) bool { return time.Since(m.seen) > absentAfter })
	}
}

// announce logs that a worker has joined or is leaving.
func (c *Coordinator) announce(h *hello, joined, left, warn bool) {
	switch {
	case joined:
		c.options.Log(fmt.Sprintf("worker %s has joined: %d at once, %s, %s", h.Name, h.Cores, h.CPU, h.Kernels))
	case left:
		c.options.Log(fmt.Sprintf("worker %s leaves", h.Name))
	}
	if warn {
		c.options.Mixed(c.kernels, h.Kernels)
	}
}

// reportAbsent logs, once for each worker, that the worker has been silent for too long.
func (c *Coordinator) reportAbsent() {
	var names []string
	c.mu.Lock()
	for _, m := range c.workers {
		if !m.leaving && !m.absent && time.Since(m.seen) > absentAfter {
			m.absent = true
			names = append(names, m.name)
		}
	}
	c.mu.Unlock()
	for _, name := range names {
		c.options.Log(fmt.Sprintf("worker %s is lost: it has sent nothing for %v; its trials go to other workers", name, absentAfter))
	}
}

// await waits until the function holds returns true for every present worker. It returns at the latest after the given
// time.
func (c *Coordinator) await(most time.Duration, holds func(*member) bool) {
	for began := time.Now(); time.Since(began) < most; time.Sleep(20 * time.Millisecond) {
		all := true
		c.mu.Lock()
		for _, m := range c.workers {
			all = all && (m.leaving || time.Since(m.seen) > 3*time.Second || holds(m))
		}
		c.mu.Unlock()
		if all {
			return
		}
	}
}

// inMemory returns the data set of a trial from memory, for the worker in this process.
func (c *Coordinator) inMemory(trial, what string) *data.Set {
	t := c.trials[trial]
	if t == nil {
		return nil
	}
	one := c.sweep.Standalone(t)
	if what == needTested {
		return one.Tested
	}
	return one.Fitted
}

// supplies counts the data sets that were sent. The number makes the names of their objects distinct.
var supplies atomic.Int64

// supply answers a request for files. The answer is a data set, which is stored once, or the initial parameters of a
// model.
func (c *Coordinator) supply(ctx context.Context, b []byte) []byte {
	var n need
	s := supply{}
	err := decode(b, &n)
	if err == nil {
		s.Manifest, err = c.send(ctx, n)
	}
	if err != nil {
		s = supply{Problem: cut(err.Error())}
	}
	text, err := encode(&s)
	if err != nil {
		return nil
	}
	return text
}

// send stores the requested files and returns their manifest.
func (c *Coordinator) send(ctx context.Context, n need) (*manifest, error) {
	t := c.trials[n.Trial]
	if t == nil {
		return nil, fmt.Errorf("trial %s is not of this sweep", n.Trial)
	}
	if n.What == needStart {
		start := t.Started()
		if start == nil {
			return nil, fmt.Errorf("trial %s starts from no run", n.Trial)
		}
		files, err := startFiles(t.Model.Start, start.Path)
		if err != nil {
			return nil, err
		}
		return c.store.put(ctx, "start-"+start.SHA256, files)
	}
	set := c.inMemory(n.Trial, n.What)
	if err := travels(set, c.sweep.Standalone(t).Metrics); err != nil {
		return nil, err
	}
	if m := c.sets[set]; m != nil { // without a lock, because requests are answered one after the other
		return m, nil
	}
	packed, err := pack(set)
	if err != nil {
		return nil, err
	}
	m, err := c.store.put(ctx, fmt.Sprintf("set-%s-%d", c.names.sweep, supplies.Add(1)), []folder.File{{Name: setFile, Data: packed}})
	if err == nil {
		c.sets[set] = m
	}
	return m, err
}

// travels returns an error if a metric reads what does not travel with a data set: the classifier inside of which its samples are values.
// Without it a worker would measure less than the first machine does.
func travels(set *data.Set, chosen metrics.Selection) error {
	inside := func(m *data.Images) bool { return m != nil && m.Downstream != nil }
	if !inside(set.Train) && !inside(set.Test) {
		return nil
	}
	for _, one := range chosen {
		if d := one.Metric.Describe(); d.Reads.Has(metrics.ReadsDownstream) {
			return fmt.Errorf("%s needs the run whose values are the samples: give it to the worker, in the same place and with the data that it reads, or choose other metrics (the option metrics)",
				d.Measures[0].Name)
		}
	}
	return nil
}

// startFile is the name under which a file of parameters travels.
const startFile = "start.safetensors"

// startFiles returns the files that a run needs for its initial parameters: the parameters and, of a run or a sparse dictionary, the declaration.
func startFiles(start *config.Start, parameters string) ([]folder.File, error) {
	var files []folder.File
	for _, path := range []string{filepath.Join(start.Run, folder.Config), filepath.Join(start.Run, sae.ConfigFile), parameters} {
		b, err := regular.ReadUnlinked(path)
		if path != parameters && (start.Run == "" || errors.Is(err, fs.ErrNotExist)) {
			continue
		} else if err != nil {
			return nil, err
		}
		name := filepath.Base(path)
		if start.File != "" {
			name = startFile
		}
		files = append(files, folder.File{Name: name, Data: b})
	}
	return files, nil
}

// present is the maximum age of the last hello message of a worker that counts as present.
const present = 3 * helloEvery

// watch offers trials again that are neither in the queue, nor with a worker, nor finished. They exist because a killed
// server may have lost a part of its queue.
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
			c.fail(err) // with a full disk, the server in this process stops without an error
			return
		}
		c.reportAbsent()
		for _, t := range c.expired(ctx) {
			c.options.Log(fmt.Sprintf("%s: no worker has the trial; it is given out again", t.Path))
			c.mu.Lock()
			w := c.waiting[t.ID]
			c.mu.Unlock()
			if w != nil {
				_ = c.offer(ctx, t, w, false) // if this fails, the next tick tries again
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

// expired returns the trials whose lease has expired. No worker has reported such a trial for twice the lease. The time
// is shorter if the last worker of the trial is present and no longer has the trial.
func (c *Coordinator) expired(ctx context.Context) (trials []*sweep.Trial) {
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

// holder returns the present worker that is running a trial, "" if there is none. The caller must hold the mutex.
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

package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"tessera/data"
	"tessera/internal/parallel/team"
	"tessera/internal/train"
	"tessera/internal/train/folder"
)

// WorkerOptions are the settings of a worker.
type WorkerOptions struct {
	URL string
	Access
	Jobs  int           // number of concurrent trials; < 1: one per processor
	Dirs  data.Dirs     // where data sets are searched for
	Cache string        // folder for fetched data sets and for trials in progress
	Wait  time.Duration // maximum time to wait for a coordinator; 0: ten minutes
	Disk  folder.Disk   // disk of the cache; nil: that of the operating system
	Log   func(string)  // called with log lines about trials and connections; may be nil

	inside *nats.Conn                                              // connection of the coordinator in the same process
	sets   func(trial, what string) *data.Set                      // returns the data sets of the coordinator in the same process
	fake   func(context.Context, *store, *task) (*manifest, error) // replaces the training in tests
}

const helloEvery = time.Second

// worker is a process that takes trials from a queue.
type worker struct {
	options WorkerOptions
	conn    *nats.Conn
	dir     string // folder of this process for trials in progress
	held    *folder.Folder
	sets    sets
	nudge   chan struct{}

	mu      sync.Mutex
	self    hello
	running map[string]running
	full    error     // write error of the disk; the worker then takes no more trials
	alone   time.Time // time of the last answer of a coordinator, by the clock of this machine
	ended   bool      // the last sweep has ended
}

// Work runs trials until ctx ends. It then returns trials in progress to the queue, with checkpoints, and the error is
// [train.ErrInterrupted]. Other errors are [ErrRefused], [ErrLost] if the coordinator does not answer for longer than
// Wait during a sweep, [ErrIdle] after the end of a sweep, and [*folder.WriteError] if the disk cannot be written.
// Trials are returned to the queue after these errors, too.
func Work(ctx context.Context, o WorkerOptions) error {
	w, err := newWorker(o)
	if err != nil {
		return err
	}
	return w.work(ctx)
}

func newWorker(o WorkerOptions) (*worker, error) {
	if o.URL == "" && o.inside == nil || o.Cache == "" {
		return nil, errors.New("fleet: a worker needs the URL of a coordinator and a folder for what it fetches: set URL and Cache")
	}
	if o.Jobs < 1 {
		o.Jobs = runtime.GOMAXPROCS(0)
	}
	if o.Wait <= 0 {
		o.Wait = 10 * time.Minute
	}
	if o.Disk == nil {
		o.Disk = folder.OS{}
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	return &worker{options: o, self: self(o.Jobs), running: map[string]running{}, nudge: make(chan struct{}, 1), alone: time.Now()}, nil
}

// work takes trials until ctx ends; see [Work].
func (w *worker) work(ctx context.Context) error {
	if err := w.place(); err != nil {
		return err
	}
	defer w.leave()
	if err := w.connect(ctx); err != nil {
		return err
	}
	return w.serve(ctx)
}

// place creates the folder of this process and removes the folders of killed processes.
func (w *worker) place() (err error) {
	all := filepath.Join(w.options.Cache, "in-progress") // not a name that a sweep or a user gives, because folders of killed processes are removed
	w.dir = filepath.Join(all, w.self.ID)
	w.sets = sets{worker: w}
	if w.held, err = folder.Hold(w.dir, w.options.Disk); err != nil {
		return err
	}
	if !folder.Held(w.dir) { // without locks, the folders of killed processes cannot be recognised
		return nil
	}
	entries, _ := os.ReadDir(all)
	for _, e := range entries {
		left := filepath.Join(all, e.Name())
		if !e.IsDir() || !isID(e.Name()) {
			continue
		}
		if held, err := folder.Hold(left, w.options.Disk); err == nil {
			_ = w.options.Disk.RemoveAll(left)
			_ = held.Close()
		}
	}
	return nil
}

// leave removes the folder of this process and closes the connection.
func (w *worker) leave() {
	_ = w.options.Disk.RemoveAll(w.dir)
	_ = w.held.Close()
	if w.conn != nil && w.options.inside == nil {
		w.conn.Close()
	}
}

// connect connects to the queue. If necessary it waits for the server.
func (w *worker) connect(ctx context.Context) error {
	if w.conn = w.options.inside; w.conn != nil {
		return nil
	}
	options, err := w.options.options(w.self.Name)
	if err != nil {
		return err
	}
	options = append(options, nats.DisconnectErrHandler(func(c *nats.Conn, _ error) {
		if !c.IsClosed() { // if the connection is closed, this process has closed it
			w.options.Log(fmt.Sprintf("lost %s, waiting up to %v", shown(w.options.URL), w.options.Wait))
		}
	}), nats.ReconnectHandler(func(*nats.Conn) {
		w.options.Log("connected again")
		w.wake()
	}))
	for said := false; ; said = true {
		w.conn, err = dial(w.options.URL, options...)
		if err == nil {
			w.options.Log("connected to " + w.conn.ConnectedUrlRedacted())
			return nil
		}
		if errors.Is(err, ErrRefused) {
			return err
		}
		if !said {
			w.options.Log(fmt.Sprintf("%v at %s, waiting up to %v", ErrNoServer, shown(w.options.URL), w.options.Wait))
		}
		if time.Since(w.alone) > w.options.Wait {
			return err
		}
		if !sleep(ctx, 500*time.Millisecond) {
			return train.ErrInterrupted
		}
	}
}

// wake makes the worker send a hello message immediately.
func (w *worker) wake() {
	select {
	case w.nudge <- struct{}{}:
	default:
	}
}

// serve serves one sweep after another.
func (w *worker) serve(ctx context.Context) error {
	var current *serving
	defer func() {
		if current != nil {
			current.end()
		}
		if w.conn.IsConnected() {
			_, _ = w.say(true, "") // a coordinator that does not receive this message counts the worker a little longer
		}
	}()
	tick := time.NewTicker(helloEvery)
	defer tick.Stop()
	for {
		answer, err := w.say(false, current.id())
		if err != nil {
			return err
		}
		if answer != nil && current != nil && !current.continues(answer) {
			w.options.Log(current.reason(answer))
			current.end()
			current = nil
			w.wake()
		}
		if answer != nil && answer.State == stateRun && current == nil && w.problem() == nil {
			if current, err = w.join(ctx, answer); err != nil {
				current = nil
				w.options.Log(err.Error())
			}
		}
		if err := w.problem(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return train.ErrInterrupted
		case <-tick.C:
		case <-w.nudge:
		}
	}
}

// problem returns the error because of which the worker takes no more trials, or nil.
func (w *worker) problem() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.full
}

// say sends a hello message to the coordinator and returns the answer. The answer is nil if there is none.
func (w *worker) say(leaving bool, sweep string) (*welcome, error) {
	w.mu.Lock()
	h := w.self
	h.Leaving, h.Sweep = leaving, sweep
	for _, r := range w.running {
		h.Running = append(h.Running, r)
	}
	w.mu.Unlock()
	text, err := encode(&h)
	if err != nil {
		return nil, err
	}
	subject := helloSubject
	if sweep != "" {
		subject = names{sweep}.subject("hello")
	}
	m, err := w.conn.Request(subject, text, 2*helloEvery)
	if err != nil {
		return nil, w.unanswered(err)
	}
	var answer welcome
	if err := decode(m.Data, &answer); err != nil {
		return nil, fmt.Errorf("%s: %w: the coordinator: %w", shown(w.options.URL), ErrRefused, err)
	}
	if answer.Refused != "" {
		return nil, fmt.Errorf("%s: %w by the coordinator: %s", shown(w.options.URL), ErrRefused, answer.Refused)
	}
	w.mu.Lock()
	w.alone, w.ended = time.Now(), answer.State == stateEnd
	w.mu.Unlock()
	return &answer, nil
}

// unanswered handles a hello message without an answer. It returns nil while the worker may still wait, and then an
// error.
func (w *worker) unanswered(err error) error {
	if w.conn.IsClosed() {
		if why := refused(w.options.URL, w.conn.LastError()); why != nil {
			return why
		}
		return fmt.Errorf("%s: %w: %w", shown(w.options.URL), ErrLost, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.alone) < w.options.Wait || len(w.running) > 0 && w.conn.IsConnected() {
		return nil
	}
	if w.ended {
		return ErrIdle
	}
	return fmt.Errorf("%s: %w: no coordinator has answered for %v", shown(w.options.URL), ErrLost, w.options.Wait)
}

// serving is a worker that serves one sweep.
type serving struct {
	*worker
	names    names
	lease    time.Duration
	consumer jetstream.Consumer
	store    *store
	records  records
	control  *nats.Subscription
	stop     context.CancelFunc
	slots    sync.WaitGroup
}

func (s *serving) id() string {
	if s == nil {
		return ""
	}
	return s.names.sweep
}

// continues reports whether the worker can continue unchanged after an answer. A restarted coordinator may have another
// lease.
func (s *serving) continues(answer *welcome) bool {
	return answer.State == stateRun && answer.Sweep == s.id() && answer.lease() == s.lease
}

// reason returns the reason why the worker takes no more trials of the sweep, as text.
func (s *serving) reason(answer *welcome) string {
	switch {
	case answer.Sweep != s.id():
		return "another sweep has begun"
	case answer.State == stateEnd:
		return "the sweep has ended"
	case answer.State == stateCancel:
		return "the sweep was interrupted"
	}
	return "the lease of the sweep has changed"
}

// join opens the queue of a sweep and starts the goroutines that run trials.
func (w *worker) join(ctx context.Context, answer *welcome) (*serving, error) {
	s := &serving{worker: w, names: names{answer.Sweep}, lease: answer.lease()}
	var err error
	if s.store, s.records, err = s.names.storage(w.conn, w.options.Log); err != nil {
		return nil, err
	}
	js := s.store.js
	one, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	if s.consumer, err = js.Consumer(one, s.names.work(), consumerName); err != nil {
		return nil, fmt.Errorf("the queue of sweep %s: %w", s.names.sweep, err)
	}
	if s.store.objects, err = js.ObjectStore(one, s.names.files()); err != nil {
		return nil, fmt.Errorf("the files of sweep %s: %w", s.names.sweep, err)
	}
	if s.records.kv, err = js.KeyValue(one, s.names.records()); err != nil {
		return nil, fmt.Errorf("the records of sweep %s: %w", s.names.sweep, err)
	}
	if s.control, err = w.conn.Subscribe(s.names.subject("control"), func(*nats.Msg) { w.wake() }); err != nil {
		return nil, err
	}
	ctx, s.stop = context.WithCancel(ctx)
	w.options.Log(fmt.Sprintf("taking trials of sweep %s, %d at once", s.names.sweep, w.options.Jobs))
	for range w.options.Jobs {
		s.slots.Go(func() { s.slot(ctx) })
	}
	return s, nil
}

// end returns the trials in progress to the queue and waits until this is done. Meanwhile it sends hello messages, so
// that the coordinator waits, too.
func (s *serving) end() {
	s.stop()
	stop := every(context.Background(), helloEvery, func(context.Context) { _, _ = s.say(false, s.id()) }) // the answer does not matter
	s.slots.Wait()
	stop()
	_ = s.control.Unsubscribe()
}

// Limits of attempts without a new checkpoint. A trial has failed after mostFailures errors that might not occur on
// another machine. It has also failed after mostLosses workers that ended or lost their connection while running it.
// Workers are lost for many reasons. One of them is a trial that needs too much memory and ends its worker.
const (
	mostFailures = 3
	mostLosses   = 10
)

// fetchTime is the maximum time that a request for a trial waits at the server.
const fetchTime = 2 * time.Second

// slot runs one trial after another until ctx ends.
func (s *serving) slot(ctx context.Context) {
	team := team.New(1)
	defer team.Close()
	for ctx.Err() == nil && s.problem() == nil {
		batch, err := s.consumer.Fetch(1, jetstream.FetchMaxWait(fetchTime))
		if err == nil {
			s.taken(ctx, batch, team)
			err = batch.Error()
		}
		if err != nil {
			sleep(ctx, 200*time.Millisecond) // the server does not answer; the connection will be re-established
		}
	}
}

// taken runs the trial that a request returns. If ctx ends first and the request still returns a trial, the trial goes
// back to the queue.
func (s *serving) taken(ctx context.Context, batch jetstream.MessageBatch, team *team.Team) {
	for {
		select {
		case m, ok := <-batch.Messages():
			if !ok {
				return
			}
			s.trial(ctx, m, team)
		case <-ctx.Done():
			go func() {
				for m := range batch.Messages() {
					_ = m.Nak()
				}
			}()
			return
		}
	}
}

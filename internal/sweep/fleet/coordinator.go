package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"tessera/data"
	"tessera/internal/engine/kernel"
	"tessera/internal/regular"
	"tessera/internal/sweep"
	"tessera/internal/train"
	"tessera/internal/train/checkpoint"
	"tessera/internal/train/folder"
)

// Options are the settings of a coordinator.
type Options struct {
	Listen string // listening address of a server inside of this process; alternative to URL
	URL    string // URL of an external NATS server with JetStream
	Access
	Jobs        int           // number of concurrent trials in this process; 0: none
	Lease       time.Duration // maximum time without a message from a worker before its trial is given to another one; 0: 30 s
	SameKernels bool          // reject workers whose kernels differ from those of the first worker
	Dirs        data.Dirs     // where this process searches for data sets
	Disk        folder.Disk   // disk of the sweep's folder; nil: that of the operating system
	Log         func(string)  // called with log lines about workers; may be nil

	Listening func(address, url string)    // called with its address and the URL for workers when the server listens; nil: Log
	Mixed     func(kernels, others string) // called once when workers have different kernels; nil: Log
}

// width is the maximum number of trials in the queue. A longer queue would only use more memory.
const width = 512

// patience is the time that a coordinator waits for a lost server. giveBackTime is the time that it waits for workers
// to return their trials.
const (
	patience     = 10 * time.Minute
	giveBackTime = 20 * time.Second
)

// Coordinator is the [sweep.Executor] that runs a sweep on several machines. It serves one call of [sweep.Sweep.Run].
type Coordinator struct {
	options Options
	sweep   *sweep.Sweep
	dir     string // the fleet folder within the sweep's folder
	names   names
	trials  map[string]*sweep.Trial

	server  *server.Server
	conn    *nats.Conn
	work    jetstream.Stream
	tasks   jetstream.Consumer
	results jetstream.Stream
	store   *store
	records records
	inbox   jetstream.ConsumeContext
	local   chan error         // receives the error of the worker in this process when the worker ends; nil if there is no such worker
	stop    context.CancelFunc // stops the worker in this process and the goroutines
	outage  outage

	mu       sync.Mutex
	state    string
	waiting  map[string]*waiting
	arrived  map[string]bool // trials of an earlier coordinator whose results are in the queue
	workers  map[string]*member
	kernels  string // kernels of the first worker
	mixed    bool   // workers with different kernels have been reported
	sets     map[*data.Set]*manifest
	rejected map[string]int // number of unusable results per trial
	broken   error
	breaks   chan struct{} // closed when the field broken is set

	put func(*sweep.Trial, *result, []folder.File) error // installs a run; tests of the queue replace it
}

type waiting struct {
	task   *task
	digest string
	done   chan error

	sign   time.Time // time of the last sign that the trial is in the queue or with a worker; guarded by the coordinator's mutex
	holder string    // last worker that had the trial

	mu       sync.Mutex
	progress func(train.Progress) // receives the progress of the trial; nil after Do has returned
}

func (w *waiting) report(p train.Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.progress != nil {
		w.progress(p)
	}
}

// NewCoordinator returns a coordinator. It starts when a sweep runs with the coordinator as its
// [sweep.Options.Executor].
func NewCoordinator(o Options) *Coordinator {
	if o.Lease <= 0 {
		o.Lease = 30 * time.Second
	}
	if o.Disk == nil {
		o.Disk = folder.OS{}
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	if o.Listening == nil {
		o.Listening = func(address, _ string) { o.Log("listening on " + address) }
	}
	if o.Mixed == nil {
		o.Mixed = func(kernels, others string) {
			o.Log(fmt.Sprintf("warning: the workers have different kernels (%s and %s): the last bits of results depend on which machine takes a trial", kernels, others))
		}
	}
	c := &Coordinator{options: o, state: stateRun, waiting: map[string]*waiting{}, workers: map[string]*member{}, trials: map[string]*sweep.Trial{},
		sets: map[*data.Set]*manifest{}, rejected: map[string]int{}, breaks: make(chan struct{}), stop: func() {}}
	c.put = c.installResult
	if o.Jobs > 0 { // so that this process is the first worker even if another worker sends a hello earlier
		c.kernels = kernel.Float32().Name
	}
	return c
}

// Begin implements [sweep.Executor]. It opens the queue.
func (c *Coordinator) Begin(ctx context.Context, s *sweep.Sweep, _ []*sweep.Trial) error {
	if err := c.options.Check(); err != nil {
		return err
	}
	c.sweep, c.dir = s, filepath.Join(s.Path, sweep.FleetDir)
	for _, t := range s.Trials {
		c.trials[t.ID] = t
	}
	id, err := c.identify()
	if err != nil {
		return err
	}
	c.names = names{id}
	if err := c.connect(); err != nil {
		return err
	}
	if err := c.prepare(ctx); err != nil {
		return err
	}
	resumed, err := c.tidy(ctx)
	if err != nil {
		return err
	}
	behind, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop = stop
	if err := c.answer(behind); err != nil {
		return err
	}
	if c.server != nil {
		address := c.server.Addr().String()
		c.options.Listening(address, "nats://"+reached(address))
	}
	c.setState(stateRun) // of a resumed sweep it was another one
	context.AfterFunc(ctx, func() { c.setState(stateCancel) })
	c.workHere(behind)
	if resumed { // time for workers that are running trials to report them
		sleep(ctx, 2*helloEvery+helloEvery/2)
	}
	go c.watch(behind)
	return nil
}

// identify returns the ID of the sweep, which is stored in its fleet folder.
func (c *Coordinator) identify() (string, error) {
	path := filepath.Join(c.dir, "id")
	if text, err := os.ReadFile(path); err == nil && isID(strings.TrimSpace(string(text))) {
		return strings.TrimSpace(string(text)), nil
	}
	held, err := folder.Hold(c.dir, c.options.Disk)
	if err != nil {
		return "", err
	}
	defer held.Close()
	id := newID()
	return id, held.Write(folder.File{Name: "id", Data: []byte(id + "\n")})
}

// connect starts the server, if it is to run in this process, and connects to it.
func (c *Coordinator) connect() error {
	inside := c.options.Access
	address := c.options.URL
	if c.options.Listen != "" {
		inside = Access{Token: newID() + newID()}
		s, err := listen(c.options.Listen, c.dir, c.options.Access, inside.Token, c.options.Log)
		if err != nil {
			return err
		}
		c.server, address = s, "nats://"+s.Addr().String() // connections within the process use no TLS
	}
	options, err := inside.options("coordinator")
	if err != nil {
		return err
	}
	if c.server != nil {
		options = append(options, nats.InProcessServer(c.server))
	}
	lost := func(conn *nats.Conn) { c.fail(fmt.Errorf("%s: %w: %w", shown(address), ErrLost, conn.LastError())) }
	options = append(options, nats.DisconnectErrHandler(func(conn *nats.Conn, err error) {
		if err != nil { // without an error, this process has closed the connection
			c.outage.begin(func() { lost(conn) })
		}
	}), nats.ReconnectHandler(func(*nats.Conn) {
		c.outage.end()
	}), nats.ClosedHandler(func(conn *nats.Conn) {
		c.outage.end()
		if conn.LastError() != nil {
			lost(conn)
		}
	}))
	c.conn, err = dial(address, options...)
	return err
}

// answer starts to answer the messages of workers.
func (c *Coordinator) answer(ctx context.Context) error {
	subscribe := func(subject string, answer func(b []byte) []byte) error {
		_, err := c.conn.Subscribe(subject, func(m *nats.Msg) {
			if text := answer(m.Data); m.Reply != "" {
				_ = m.Respond(text)
			}
		})
		return err
	}
	if err := c.results.DeleteConsumer(ctx, inboxName); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return fmt.Errorf("fleet: %w", err) // a message that was delivered to an earlier coordinator would be delivered again only after a delay
	}
	results, err := c.results.CreateConsumer(ctx, jetstream.ConsumerConfig{Durable: inboxName, AckPolicy: jetstream.AckExplicitPolicy,
		AckWait: 5 * time.Minute, MaxDeliver: -1})
	if err != nil {
		return fmt.Errorf("fleet: %w", err)
	}
	c.inbox, err = results.Consume(func(m jetstream.Msg) { c.receive(ctx, m) }, jetstream.PullMaxMessages(32))
	return errors.Join(err, subscribe(helloSubject, c.greet), subscribe(c.names.subject("hello"), c.greet),
		subscribe(c.names.subject("need"), func(b []byte) []byte { return c.supply(ctx, b) }), c.conn.FlushTimeout(requestTime))
}

func (c *Coordinator) workHere(ctx context.Context) {
	if c.options.Jobs < 1 {
		return
	}
	c.local = make(chan error, 1)
	o := WorkerOptions{Jobs: c.options.Jobs, Dirs: c.options.Dirs, Cache: filepath.Join(c.dir, "cache"), Disk: c.options.Disk, Log: func(string) {},
		inside: c.conn, sets: c.inMemory}
	go func() {
		err := Work(ctx, o)
		var full *folder.WriteError
		switch {
		case errors.As(err, &full):
			c.fail(err)
		case ctx.Err() == nil && !errors.Is(err, ErrIdle):
			c.options.Log(fmt.Sprintf("this process takes no more trials: %v", err))
		}
		c.local <- err
	}()
}

// outage is a period without a connection to the server.
type outage struct {
	mu    sync.Mutex
	limit *time.Timer // nil while there is a connection
}

// begin starts an outage. It calls tooLong if the outage lasts longer than patience.
func (o *outage) begin(tooLong func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.limit == nil {
		o.limit = time.AfterFunc(patience, tooLong)
	}
}

func (o *outage) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.limit != nil {
		o.limit.Stop()
		o.limit = nil
	}
}

func (c *Coordinator) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken == nil {
		c.broken = err
		close(c.breaks)
	}
}

// setState changes the state of the sweep and notifies the workers.
func (c *Coordinator) setState(state string) {
	c.mu.Lock()
	if state == stateRun && c.state != stateRun { // a sweep that was cancelled or has ended does not run again
		state = c.state
	}
	c.state = state
	c.mu.Unlock()
	_ = c.conn.Publish(c.names.subject("control"), []byte(state)) // the error is ignored: workers also ask for the state
	_ = c.conn.Flush()
}

func (c *Coordinator) Width() int { return width }

// Ready implements [sweep.Executor]. It returns an error if this machine cannot listen on the address, or if no server
// with JetStream accepts the sweep.
func (c *Coordinator) Ready() error {
	o := c.options
	if err := o.Check(); err != nil {
		return err
	}
	if o.Listen == "" {
		return o.reach()
	}
	host, port, err := hostPort(o.Listen)
	if err != nil {
		return err
	}
	if o.Certificate != "" {
		if _, err := o.serverTLS(); err != nil {
			return err
		}
	}
	return free(host, port)
}

// reach connects to a server once, to find errors.
func (o Options) reach() error {
	options, err := o.options("coordinator")
	if err != nil {
		return err
	}
	conn, err := dial(o.URL, options...)
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return fmt.Errorf("fleet: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTime)
	defer cancel()
	_, err = js.AccountInfo(ctx)
	if errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) || errors.Is(err, nats.ErrNoResponders) {
		return &Refusal{o.URL, NoPersistence, "the server has no JetStream"}
	}
	return nil // other errors may be temporary
}

// prepare opens or creates the streams of the sweep.
func (c *Coordinator) prepare(ctx context.Context) error {
	var err error
	if c.store, c.records, err = c.names.storage(c.conn, c.options.Log); err != nil {
		return fmt.Errorf("fleet: %w", err)
	}
	js := c.store.js
	err = c.store.again(ctx, func(ctx context.Context) (err error) {
		if c.work, err = js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: c.names.work(), Subjects: []string{c.names.subject("work.*.*")},
			Retention: jetstream.WorkQueuePolicy}); err != nil {
			return err
		}
		if c.results, err = js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: c.names.inbox(), Subjects: []string{c.names.subject("result.*")},
			Retention: jetstream.WorkQueuePolicy}); err != nil {
			return err
		}
		if c.store.objects, err = js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: c.names.files()}); err != nil {
			return err
		}
		c.records.kv, err = js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: c.names.records()})
		return err
	})
	if err != nil {
		return fmt.Errorf("fleet: cannot make the queue: %w", err)
	}
	return nil
}

// tidy empties the queue of an earlier coordinator and lists the trials whose results are still in the queue. Trials
// that workers are running are not lost, because the workers name them in their hello messages. The old queue is not
// reused: a killed server may have lost the end of a stream and would then reuse message numbers that consumers regard
// as delivered. resumed reports whether there was an earlier coordinator.
func (c *Coordinator) tidy(ctx context.Context) (resumed bool, err error) {
	c.arrived = map[string]bool{}
	err = c.store.again(ctx, func(ctx context.Context) error {
		info, err := c.work.Info(ctx)
		if err != nil {
			return err
		}
		resumed = resumed || info.State.LastSeq > 0
		if err := c.work.Purge(ctx); err != nil {
			return err
		}
		if err := c.work.DeleteConsumer(ctx, consumerName); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
			return err
		}
		// A trial is delivered again whenever a worker is lost. Its record counts the attempts, and no message is ever
		// given up.
		if c.tasks, err = c.work.CreateConsumer(ctx, jetstream.ConsumerConfig{Durable: consumerName, AckPolicy: jetstream.AckExplicitPolicy,
			AckWait: c.options.Lease, MaxDeliver: -1, MaxAckPending: -1}); err != nil {
			return err
		}
		c.arrived, err = c.unread(ctx)
		return err
	})
	return resumed, err
}

// unread returns the trials whose results are in the queue.
func (c *Coordinator) unread(ctx context.Context) (map[string]bool, error) {
	info, err := c.results.Info(ctx, jetstream.WithSubjectFilter(">"))
	if err != nil {
		return nil, err
	}
	trials := map[string]bool{}
	for subject := range info.State.Subjects {
		trials[subject[strings.LastIndex(subject, ".")+1:]] = true
	}
	return trials, nil
}

// Do implements [sweep.Executor]. It puts the trial into the queue and waits for the result.
func (c *Coordinator) Do(ctx context.Context, t *sweep.Trial, progress func(train.Progress)) error {
	w, err := c.wait(t, progress)
	if err != nil {
		return err
	}
	defer w.mute()
	defer c.forget(t.ID, w)
	if c.sweep.Check(t) == nil { // the result arrived before this call
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

// wait registers a trial with its callback for progress.
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

// mute ends the reports of progress.
func (w *waiting) mute() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.progress = nil
}

// task returns the description of a trial for a worker.
func (c *Coordinator) task(t *sweep.Trial) (*task, error) {
	one := c.sweep.Standalone(t)
	w := &task{Protocol: protocol, Trial: t.ID, Label: cut(c.sweep.Describe(t)), Declaration: string(t.Declaration()), Split: one.Split, Metrics: one.Metrics,
		Fitted: sums(one.Fitted.Files), Tested: sums(one.Tested.Files)}
	if start := t.Started(); start != nil {
		w.Start = start.SHA256
	}
	return w, w.check()
}

func sums(files []data.File) []string {
	all := []string{}
	for _, f := range files {
		all = append(all, f.SHA256)
	}
	return all
}

// begin puts a trial into the queue, unless a worker of an earlier coordinator is still running it or its result has
// arrived.
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

// offer puts a trial into the queue. If the sweep's folder contains a run of the trial, workers continue this run. If
// first is true, it resets the number of attempts, so that only those under this coordinator count. A trial that ends
// every worker is given up after some attempts.
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
	return c.store.publish(ctx, c.names.task(t.ID, w.digest), t.ID, text)
}

// withdraw removes the tasks of a trial from the queue.
func (c *Coordinator) withdraw(ctx context.Context, trial string) error {
	return c.store.again(ctx, func(ctx context.Context) error {
		return c.work.Purge(ctx, jetstream.WithPurgeSubject(c.names.subject("work."+trial+".*")))
	})
}

// sendBegun sends the run in the folder of a trial as the checkpoint from which workers continue, unless a later
// checkpoint exists.
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

// snapshot returns the files from which a run can be resumed, and the step of the state in these files. It reads the
// state first; a resume removes metrics that are newer than the state. The step is that of the returned bytes, even if
// a training replaces the file in the meantime. A damaged state is an error.
func snapshot(run string) (files []folder.File, step int, err error) {
	for _, name := range []string{folder.State, folder.Config, folder.Environment, folder.Metrics} {
		b, err := regular.ReadUnlinked(filepath.Join(run, name))
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

// stepOf returns the step of a state file.
func stepOf(path string) (int, error) {
	about, err := checkpoint.ReadMetadata(path)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(about["step"])
}

// End implements [sweep.Executor]. It notifies the workers that the sweep has ended, and closes the queue. After an
// interruption it first waits until the workers have returned their trials, and installs the checkpoints of these
// trials.
func (c *Coordinator) End(err error) error {
	if c.conn != nil && c.work != nil {
		if err == nil {
			c.setState(stateEnd)
			c.await(2*time.Second, func(m *member) bool { return m.knowsEnd })
		} else {
			c.setState(stateCancel)
			c.await(giveBackTime, func(m *member) bool { return m.leaving || len(m.running) == 0 && m.asked })
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

// close closes the connection and the server in this process.
func (c *Coordinator) close() {
	if c.conn != nil {
		c.conn.Close()
	}
	if c.server != nil {
		c.server.Shutdown()
		c.server.WaitForShutdown()
	}
}

// removeQueue removes the streams and stores of the sweep from an external server.
func (c *Coordinator) removeQueue() {
	if c.server != nil { // the folder of a server in this process is removed as a whole
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTime)
	defer cancel()
	for _, name := range []string{c.names.work(), c.names.inbox(), "OBJ_" + c.names.files(), "KV_" + c.names.records()} {
		_ = c.store.js.DeleteStream(ctx, name)
	}
}

// installCheckpoints puts the last checkpoints of unfinished trials into the sweep's folder, so that a sweep without
// workers can resume the trials.
func (c *Coordinator) installCheckpoints() {
	ctx, cancel := context.WithTimeout(context.Background(), giveBackTime)
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
		files, err := c.store.get(ctx, r.Checkpoint, largestRun(c.sweep.Standalone(t)))
		if err == nil {
			err = c.install(t, files, "")
		}
		if err != nil {
			c.options.Log(fmt.Sprintf("%s: the checkpoint of its worker was not installed: %v", t.Path, err))
		}
	}
}

package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"tessera/data"
	"tessera/kernel"
	"tessera/sweep"
	"tessera/train"
	"tessera/train/folder"
)

// Options are those of a coordinator.
type Options struct {
	Listen string // address of a server inside this process; or
	URL    string // of a NATS server with JetStream
	Access
	Jobs        int           // trials at once in this process; 0: none
	Lease       time.Duration // after which a trial without a sign of life is given to another worker; 0: 30 s
	SameKernels bool          // refuse workers whose kernels are not those of the first one
	Dirs        data.Dirs     // where this process searches data sets
	Disk        folder.Disk   // of the sweep's folder; nil: the operating system's
	Log         func(string)  // lines about workers; may be nil
}

// width is how many trials wait in the queue at once. More would only take memory.
const width = 512

// patience is how long a coordinator waits for a server that it has lost, and for workers to give their trials back.
const (
	patience = 10 * time.Minute
	giveBack = 20 * time.Second
)

// Coordinator is the [sweep.Elsewhere] of a sweep on several machines. It serves one [sweep.Sweep.Run].
type Coordinator struct {
	options Options
	sweep   *sweep.Sweep
	dir     string // the fleet folder of the sweep
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
	local   chan error         // the end of the worker in this process; nil without one
	stop    context.CancelFunc // of that worker, and of what runs behind

	mu       sync.Mutex
	state    string
	waiting  map[string]*waiting
	arrived  map[string]bool // trials whose results it has left
	workers  map[string]*member
	kernels  string // of the first worker
	mixed    bool   // that there are several kernels was said
	sets     map[*data.Set]*manifest
	rejected map[string]int // results of a trial that could not be used
	broken   error
	breaks   chan struct{} // closed with broken

	put func(*sweep.Trial, *result, []folder.File) error // installs a run; tests of the queue alone replace it
}

// waiting is a trial that is in the queue or with a worker.
type waiting struct {
	task   *task
	digest string
	done   chan error

	sign   time.Time // when there was a sign that it is in the queue or with a worker; the coordinator's mutex guards both
	holder string    // the worker that was last seen with it

	mu       sync.Mutex
	progress func(train.Progress) // nil when Do has returned
}

// tell reports progress.
func (w *waiting) tell(p train.Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.progress != nil {
		w.progress(p)
	}
}

// NewCoordinator returns a coordinator. Run of the sweep that has it as [sweep.Options.Elsewhere] starts it.
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
	c := &Coordinator{options: o, state: stateRun, waiting: map[string]*waiting{}, workers: map[string]*member{}, trials: map[string]*sweep.Trial{},
		sets: map[*data.Set]*manifest{}, rejected: map[string]int{}, breaks: make(chan struct{}), stop: func() {}}
	c.put = c.installResult
	if o.Jobs > 0 { // the first worker is this process, even if another one says hello before
		c.kernels = kernel.Float32().Name
	}
	return c
}

// Begin implements [sweep.Elsewhere]: it opens the queue.
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
		c.options.Log(fmt.Sprintf("listening on %s: tessera worker nats://%s", c.server.Addr(), reached(c.server.Addr().String())))
	}
	context.AfterFunc(ctx, func() { c.turn(stateCancel) })
	c.workHere(behind)
	if resumed { // workers that do trials say so
		c.turn(stateRun)
		select {
		case <-ctx.Done():
		case <-time.After(2*helloEvery + helloEvery/2):
		}
	}
	go c.watch(behind)
	return nil
}

// identify returns the ID of the sweep, which its fleet folder keeps.
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

// connect starts the server, if it is in this process, and connects to it.
func (c *Coordinator) connect() error {
	inside := c.options.Access
	address := c.options.URL
	if c.options.Listen != "" {
		inside = Access{Token: newID() + newID()}
		s, err := listen(c.options.Listen, c.dir, c.options.Access, inside.Token, c.options.Log)
		if err != nil {
			return err
		}
		c.server, address = s, "nats://"+s.Addr().String() // inside the process there is no TLS
	}
	options, err := inside.options("coordinator")
	if err != nil {
		return err
	}
	if c.server != nil {
		options = append(options, nats.InProcessServer(c.server))
	}
	lost := func(conn *nats.Conn) {
		if !conn.IsConnected() {
			c.fail(fmt.Errorf("%s: %w: %w", shown(address), ErrLost, conn.LastError()))
		}
	}
	options = append(options, nats.DisconnectErrHandler(func(conn *nats.Conn, err error) {
		if err != nil { // else this process has closed it
			time.AfterFunc(patience, func() { lost(conn) })
		}
	}), nats.ClosedHandler(func(conn *nats.Conn) {
		if conn.LastError() != nil {
			lost(conn)
		}
	}))
	c.conn, err = nats.Connect(address, options...)
	if why := inside.refused(address, err); why != nil {
		return why
	}
	if err != nil {
		return absent(address, err)
	}
	return nil
}

// answer starts to listen to workers.
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
		return fmt.Errorf("fleet: %w", err) // what was delivered to an earlier coordinator would be late
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

// workHere starts the worker of this process.
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

// fail ends the sweep with an error.
func (c *Coordinator) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken == nil {
		c.broken = err
		close(c.breaks)
	}
}

// turn changes the state of the sweep and tells the workers.
func (c *Coordinator) turn(state string) {
	c.mu.Lock()
	c.state = state
	c.mu.Unlock()
	_ = c.conn.Publish(c.names.subject("control"), []byte(state)) // a nudge: they ask again
	_ = c.conn.Flush()
}

// Width implements [sweep.Elsewhere].
func (c *Coordinator) Width() int { return width }

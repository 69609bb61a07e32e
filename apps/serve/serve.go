// Package serve serves the models of runs over HTTP by the Open Inference Protocol, version 2, with JSON and with the binary
// tensor extension. [New] opens the models; a [Server] is an [http.Handler]; [Server.Serve]
// serves connections with limits, and drains at the end.
//
//	server, err := serve.New([]serve.Model{{Folder: "runs/shallow"}}, serve.Options{})
//	...
//	defer server.Close()
//	http.Handle("/v2/", server) // or server.Serve(ctx, listener)
//
// The input of a model is "input"; its outputs are "code", "output" and its heads. A head that predicts classes has two more
// outputs, HEAD.label and HEAD.probability, which are computed only if a request names them.
//
// The images of several requests are computed together. The result for an image has the same bits in every batch, those of
// [tessera.Encoder]: batch sizes that round differently are not used, and a baseline computes one image at a time.
//
// The protocol is that of https://github.com/kserve/open-inference-protocol; docs/serve.md describes the rest.
package serve

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tessera"
	"tessera/internal/lists"
	"tessera/internal/loopback"
)

// Options are the settings of a server. A field that is 0 has its default; see [Defaults].
type Options struct {
	MaxBatch int           `flag:"max-batch" want:"> 0" doc:"images that are computed together; 1 does not batch"`
	MaxWait  time.Duration `flag:"max-wait" want:">= 0s" doc:"how long an image waits for others while a thread is free"`
	Queue    int           `flag:"queue" want:"> 0" doc:"images that may wait for each output of a model; further requests are answered 429"`
	Workers  int           `flag:"threads" want:"> 0" doc:"batches that are computed at the same time, for each output of a model" default:"one for each CPU"`

	MaxImages int   // images of one request; by default, and at most, Queue
	MaxBody   int64 `flag:"max-body" unit:"bytes" want:"> 0" doc:"largest body of a request"`
	MaxMemory int64 `flag:"max-memory" unit:"bytes" want:"> 0" doc:"memory that all requests hold at once: bodies, images, results, responses; further requests are answered 429"`
	MaxHeader int   `flag:"max-header" unit:"bytes" want:"> 0" doc:"largest header of a request"`
	MaxConns  int   `flag:"max-connections" want:"> 0" doc:"connections at once; others wait"`

	ReadTimeout  time.Duration `flag:"read-timeout" want:"> 0s" doc:"time limit for reading a request"`
	Timeout      time.Duration `flag:"timeout" want:"> 0s" doc:"time limit for computing a request"` // and again for writing the results
	IdleTimeout  time.Duration // time between two requests of a connection
	DrainDelay   time.Duration `flag:"drain-delay" want:">= 0s" doc:"first phase of the drain: how long requests are accepted while the server is not ready"`
	DrainTimeout time.Duration `flag:"drain-timeout" want:">= 0s" doc:"second phase of the drain: time limit for open requests"`
	Reload       time.Duration `flag:"reload" want:">= -1s" doc:"how often the files of runs, tokens and certificate are checked for changes; 0 for never"` // here negative for never

	Certificate *Certificate // certificate for TLS
	TLS         *tls.Config  // further settings of TLS, or all of them; if nil, the server uses TLS only with Certificate
	Tokens      *Tokens      // accepted tokens; nil accepts every client
	// Hosts are the names that the header Host may have without Tokens, beside those of this machine; "*" allows all.
	Hosts []string `flag:"allow-host" each:"true" doc:"name that the header Host may have without --tokens, beside those of this machine; * for all; may be repeated"`
	// Path is the prefix of all paths, such as "/tessera"; "" for none.
	Path     string            `flag:"path" doc:"prefix of all paths, such as /tessera"`
	Generate bool              `flag:"generate" doc:"also serve NAME.sample (seed to image) and NAME.traverse (unit and position in [0,1] to image) for each model NAME that can make them"` // and has a Folder
	Profile  bool              `flag:"pprof" doc:"serve profiles at /debug/pprof/"`
	Runs     tessera.Options   // options for opening runs
	Log      func(text string) // called for reloads, faults and models that are left out, concurrently; nil for no log
	Requests *slog.Logger      // logger of all requests; nil for none
}

// OptionError reports an invalid option, or an invalid or repeated name of a model.
type OptionError struct{ Problem string }

func (e *OptionError) Error() string { return "serve: " + e.Problem }

func invalid(format string, args ...any) error { return &OptionError{fmt.Sprintf(format, args...)} }

// Defaults returns the options that fields of 0 stand for.
func Defaults() Options {
	return Options{MaxBatch: 64, Queue: 1024, Workers: runtime.GOMAXPROCS(0), MaxBody: 32 << 20, MaxMemory: 192 << 20, MaxHeader: 64 << 10, MaxConns: 4096,
		ReadTimeout: 30 * time.Second, Timeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, DrainDelay: time.Second, DrainTimeout: 30 * time.Second, Reload: 2 * time.Second}
}

// complete checks the options and fills in the defaults.
func (o *Options) complete() error {
	d := Defaults()
	o.MaxImages = cmp.Or(o.MaxImages, o.Queue, d.Queue)
	o.Reload = cmp.Or(o.Reload, d.Reload)
	if o.Log == nil {
		o.Log = func(string) {}
	}
	if o.Path = strings.TrimRight(o.Path, "/"); o.Path != "" && (o.Path[0] != '/' || strings.ContainsAny(o.Path, "{}?#")) {
		return invalid("Path: got %q, want a path that begins with /", o.Path)
	}
	if o.MaxWait < 0 {
		return invalid("MaxWait: got %v, want >= 0", o.MaxWait)
	}
	err := errors.Join(set(&o.MaxBatch, "MaxBatch", d.MaxBatch), set(&o.Queue, "Queue", d.Queue), set(&o.MaxImages, "MaxImages", d.Queue),
		set(&o.Workers, "Workers", d.Workers), set(&o.MaxBody, "MaxBody", d.MaxBody), set(&o.MaxMemory, "MaxMemory", d.MaxMemory),
		set(&o.MaxHeader, "MaxHeader", d.MaxHeader), set(&o.MaxConns, "MaxConns", d.MaxConns), set(&o.ReadTimeout, "ReadTimeout", d.ReadTimeout),
		set(&o.Timeout, "Timeout", d.Timeout), set(&o.IdleTimeout, "IdleTimeout", d.IdleTimeout),
		set(&o.DrainDelay, "DrainDelay", d.DrainDelay), set(&o.DrainTimeout, "DrainTimeout", d.DrainTimeout))
	if err == nil && o.MaxImages > o.Queue {
		return invalid("MaxImages: got %d, want at most Queue = %d", o.MaxImages, o.Queue)
	}
	return err
}

// set sets a field that is 0 to its default, and returns an error for a negative value.
func set[T int | int64 | time.Duration](field *T, name string, standard T) error {
	*field = cmp.Or(*field, standard)
	if *field < 0 {
		return invalid("%s: got %v, want > 0", name, *field)
	}
	return nil
}

// Server serves models. It is an [http.Handler] for use with any HTTP server. [Server.Serve] is a complete server.
type Server struct {
	options  Options
	models   []*model // models in the order of New
	byName   map[string]*model
	stats    *stats
	handler  http.Handler
	memory   atomic.Int64 // memory of all requests in bytes
	answers  atomic.Int64 // number of responses to inference requests
	draining atomic.Bool
	stop     context.CancelFunc // ends the watch
	watching sync.WaitGroup     // waits for the watch, and for the closing of replaced models
	closing  sync.Once
	closed   error
}

// New opens the models and compiles them for every output. The caller closes the server. It returns an [*OptionError] for an
// invalid option or name, and the errors of [tessera.Open] for a run.
func New(models []Model, o Options) (*Server, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	if len(models) == 0 {
		return nil, invalid("got no models, want at least one")
	}
	s := &Server{options: o, byName: map[string]*model{}, stats: newStats()}
	var runs []*tessera.Run    // of each served model
	for _, m := range models { // names first: compiling takes longer
		name, err := m.name()
		if err != nil {
			return nil, err
		}
		kinds := []string{""}
		if o.Generate && m.Folder != "" {
			kinds = append(kinds, sampling, traversing)
		}
		for _, kind := range kinds {
			full := name
			if kind != "" {
				full += "." + kind
			}
			if s.byName[full] != nil {
				return nil, invalid("two models have the name %q: give one another name, as in NAME=RUN", full)
			}
			added := &model{name: full, folder: m.Folder, kind: kind, stats: s.stats.model(full)}
			s.models, s.byName[full] = append(s.models, added), added
			runs = append(runs, m.Run)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	for i, m := range s.models {
		err := m.load(&s.options, runs[i])
		if reason := (cannotMake{}); errors.As(err, &reason) { // the run itself is served
			s.leaveOut(m, reason.Error())
		} else if err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	s.models = slices.DeleteFunc(s.models, func(m *model) bool { return s.byName[m.name] == nil })
	s.handler = s.routes()
	if o.Reload > 0 {
		s.watching.Go(func() { s.watch(ctx) })
	}
	return s, nil
}

// leaveOut removes a model that makes images, and says so in the log and in the metadata of its run.
func (s *Server) leaveOut(m *model, reason string) {
	of := s.byName[strings.TrimSuffix(m.name, "."+m.kind)].current
	of.missing[m.kind] = reason
	s.options.Log(fmt.Sprintf("model %s is not served: %s", m.name, reason))
	s.stats.forget(m.name)
	delete(s.byName, m.name)
}

// Models lists the names of the models.
func (s *Server) Models() []string {
	if s == nil {
		return nil
	}
	names := lists.Map(s.models, func(m *model) string { return m.name })
	return names
}

// errNoModels is the error for a Server that New did not create.
var errNoModels = errors.New("serve: the server has no models: take one that serve.New returned")

// ServeHTTP implements [http.Handler]. A Server that New did not create responds with status 503.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s == nil || s.handler == nil {
		http.Error(w, errNoModels.Error(), http.StatusServiceUnavailable)
		return
	}
	s.handler.ServeHTTP(w, r)
}

// Close frees the models when no request uses them. No request may arrive afterwards: first shut down the HTTP server, as
// [Server.Serve] does.
func (s *Server) Close() error {
	if s == nil || s.stop == nil {
		return nil
	}
	s.closing.Do(func() {
		s.stop()
		s.watching.Wait()
		for _, m := range s.models {
			s.closed = errors.Join(s.closed, m.retire().close())
		}
	})
	return s.closed
}

// ErrCut reports requests that were still open after DrainTimeout: their connections were closed.
var ErrCut = errors.New("serve: requests were still open after DrainTimeout and were cut")

// Serve serves connections of the listener until ctx ends, then drains and returns nil when all requests are answered, or
// [ErrCut].
//
// To drain, the server first reports that it is not ready. For the time DrainDelay it still responds to requests and asks
// clients to close their connections, so that load balancers and clients can switch to other servers. Then it closes the
// listener and waits for open requests, at most for the time DrainTimeout. Until then no accepted request is lost.
//
// Without tokens, requests must name this machine, or one of [Options].Hosts, in their header Host: otherwise a web page could
// use the server through a host name that it controls. Without both, an address that other machines reach is an [*OptionError].
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	switch {
	case s == nil || s.handler == nil:
		return errNoModels
	case ctx == nil || l == nil:
		return errors.New("serve: got a nil context or listener")
	}
	o := &s.options
	secured := o.secured()
	h := &http.Server{Handler: s, ReadHeaderTimeout: o.ReadTimeout, ReadTimeout: o.ReadTimeout,
		WriteTimeout: o.ReadTimeout + 2*o.Timeout, // measured from the end of the header
		IdleTimeout:  o.IdleTimeout, MaxHeaderBytes: o.MaxHeader, TLSConfig: secured,
		ErrorLog: log.New(lines(o.Log), "", 0)}
	if o.Tokens == nil {
		if err := loopback.Check(l.Addr().String(), false, o.Hosts); err != nil {
			return invalid("%v, or the names that Host may have", err)
		}
		h.Handler = s.ownHost()
	}
	ended := make(chan error, 1)
	go func() {
		l := &limited{l, make(chan struct{}, o.MaxConns)}
		if secured != nil {
			ended <- h.ServeTLS(l, "", "")
		} else {
			ended <- h.Serve(l)
		}
	}()
	select {
	case err := <-ended:
		return errors.Join(err, h.Close())
	case <-ctx.Done():
	}
	s.draining.Store(true)
	defer func() { o.Log(fmt.Sprintf("ended: %d inference requests were answered", s.answers.Load())) }()
	time.Sleep(o.DrainDelay)
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.DrainTimeout)
	defer cancel()
	if err := h.Shutdown(within); errors.Is(err, context.DeadlineExceeded) {
		return errors.Join(ErrCut, h.Close())
	} else if err != nil {
		return errors.Join(err, h.Close())
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// ownHost rejects requests whose header Host names neither this machine nor one of the hosts.
func (s *Server) ownHost() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.isHealth(r) && !loopback.Accepts(r.Host, s.options.Hosts) {
			fail(w, problemf(http.StatusForbidden, "host: got %q, want localhost or the address of the server; a server for other names needs tokens or --allow-host", cut(r.Host)))
			return
		}
		s.ServeHTTP(w, r)
	})
}

// isHealth reports whether a request is for a health endpoint, which is open: probes have no tokens and name an address as host.
func (s *Server) isHealth(r *http.Request) bool {
	return strings.HasPrefix(strings.TrimPrefix(r.URL.Path, s.options.Path), "/v2/health/")
}

// lines writes the log of the HTTP server to Options.Log.
type lines func(string)

func (l lines) Write(p []byte) (int, error) {
	l(strings.TrimSpace(string(p)))
	return len(p), nil
}

// limited is a listener that accepts a connection only while fewer connections than its limit are open.
type limited struct {
	net.Listener
	places chan struct{}
}

// Accept implements net.Listener. After Close, an Accept that waits for a place returns when a connection ends, which happens
// soon, because all connections are then closed.
func (l *limited) Accept() (net.Conn, error) {
	l.places <- struct{}{}
	leave := sync.OnceFunc(func() { <-l.places })
	c, err := l.Listener.Accept()
	if err != nil {
		leave()
		return nil, err
	}
	return &limitedConn{c, leave}, nil
}

// limitedConn is a connection that releases its place when it is closed.
type limitedConn struct {
	net.Conn
	leave func()
}

func (c *limitedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// Package serve serves the models of runs over HTTP by the Open Inference Protocol, version 2, with JSON and with the binary
// tensor extension.
//
//	server, err := serve.New([]serve.Model{{Folder: "runs/shallow"}}, serve.Options{})
//	...
//	defer server.Close()
//	http.Handle("/v2/", server) // or server.Serve(ctx, listener)
//
// The outputs of a model are "code", "output" and its heads; its input is "input". The images of several requests are computed
// together. The values of an image have the same bits whatever it is computed with, as those of [tessera.Encoder]: batch sizes
// that round differently are not used, and a baseline computes one image after the other.
//
// The protocol is that of https://github.com/kserve/open-inference-protocol; docs/serve.md describes the rest.
package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
)

// Server serves models. It is an [http.Handler], for use in another server; [Server.Serve] listens by itself.
type Server struct {
	options  Options
	models   []*model // in the order of New
	byName   map[string]*model
	stats    *stats
	handler  http.Handler
	memory   atomic.Int64 // bytes of the bodies that are held
	answers  atomic.Int64 // to inference requests
	draining atomic.Bool
	stop     context.CancelFunc // of the watch
	watching sync.WaitGroup     // of the watch, and of closing what it has replaced
	closing  sync.Once
	closed   error
}

// New opens the models and compiles them for every output. The caller closes the server. The errors of a run are those of
// [tessera.Open].
func New(models []Model, o Options) (*Server, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	if len(models) == 0 {
		return nil, errors.New("serve: got no models, want at least one")
	}
	s := &Server{options: o, byName: map[string]*model{}, stats: newStats()}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	for _, m := range models {
		if err := s.add(m); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	s.handler = s.routes()
	if o.Reload > 0 {
		s.watching.Go(func() { s.watch(ctx) })
	}
	return s, nil
}

// add opens a model.
func (s *Server) add(m Model) error {
	name, err := m.name()
	if err != nil {
		return err
	}
	if s.byName[name] != nil {
		return fmt.Errorf("serve: two models have the name %q: give one another name, as in NAME=RUN", name)
	}
	added := &model{name: name, folder: m.Folder, stats: s.stats.model(name)}
	if m.Run != nil {
		added.current, err = s.options.load(m.Run, "1", added.stats)
	} else {
		added.current, err = s.options.open(m.Folder, added.stats)
	}
	if err != nil {
		return err
	}
	s.models = append(s.models, added)
	s.byName[name] = added
	return nil
}

// ServeHTTP implements [http.Handler]. A server that New did not make answers with status 503.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s == nil || s.handler == nil {
		http.Error(w, "serve: the server has no models: take one that serve.New returned", http.StatusServiceUnavailable)
		return
	}
	s.handler.ServeHTTP(w, r)
}

// Close frees the models, once no request uses them. Requests that come later must not: shut the HTTP server down first, as
// [Server.Serve] does.
func (s *Server) Close() error {
	if s == nil || s.stop == nil {
		return nil
	}
	s.closing.Do(func() {
		s.stop()
		s.watching.Wait()
		for _, m := range s.models {
			s.closed = errors.Join(s.closed, m.current.close())
		}
	})
	return s.closed
}

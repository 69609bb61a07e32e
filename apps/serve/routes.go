package serve

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/pprof"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"tessera"
)

// openAPI is the OpenAPI description of the server.
//
//go:embed openapi.json
var openAPI []byte

func (s *Server) routes() http.Handler {
	s.exportLoad()
	mux := http.NewServeMux()
	handle := func(method, path string, h http.HandlerFunc) { mux.Handle(path, only(method, h)) }
	for _, at := range []string{"/{$}", "/v2", "/v2/{$}"} {
		handle(http.MethodGet, at, s.metadata)
	}
	handle(http.MethodGet, "/v2/health/live", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]bool{"live": true})
	})
	handle(http.MethodGet, "/v2/health/ready", s.ready)
	handle(http.MethodGet, "/v2/models", s.list)
	for _, at := range []string{"/v2/models/{model}", "/v2/models/{model}/versions/{version}"} {
		handle(http.MethodGet, at, s.describe(func(m *model, l *loaded) any { return m.metadata(l) }))
		handle(http.MethodGet, at+"/ready", s.describe(func(m *model, _ *loaded) any { return map[string]any{"name": m.name, "ready": true} }))
		handle(http.MethodPost, at+"/infer", s.answer(s.infer))
		handle(http.MethodPost, at+"/image", s.answer(s.picture))
		handle(http.MethodPost, at+"/generate", s.generate(false))
		handle(http.MethodPost, at+"/generate_stream", s.generate(true))
	}
	handle(http.MethodGet, "/metrics", promhttp.HandlerFor(s.stats.registry, promhttp.HandlerOpts{}).ServeHTTP)
	handle(http.MethodGet, "/openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(openAPI)
	})
	if s.options.Profile {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, problemf(http.StatusNotFound, "path: got %q, want one of those in /openapi.json", cut(r.URL.Path)))
	})
	return s.logged(s.polite(s.guarded(s.below(mux))))
}

// below removes the prefix [Options].Path from the path of a request. A request without the prefix gets status 404.
func (s *Server) below(h http.Handler) http.Handler {
	if s.options.Path == "" {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rest, ok := strings.CutPrefix(r.URL.Path, s.options.Path); !ok || rest != "" && rest[0] != '/' {
			fail(w, problemf(http.StatusNotFound, "path: got %q, want one that begins with %s", cut(r.URL.Path), s.options.Path))
			return
		}
		http.StripPrefix(s.options.Path, h).ServeHTTP(w, r)
	})
}

// polite turns a panic into an error response. While the server drains, it asks clients to close their connections. It does
// not recover a panic with [http.ErrAbortHandler], which closes the connection: otherwise the client would treat an incomplete
// response as complete.
func (s *Server) polite(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			switch cause := recover(); cause {
			case nil:
			case http.ErrAbortHandler:
				panic(cause)
			default:
				s.options.Log(fmt.Sprintf("%s %s: internal error: %v", r.Method, r.URL.Path, cause))
				fail(w, problemf(http.StatusInternalServerError, "internal error"))
			}
		}()
		if s.draining.Load() {
			w.Header().Set("Connection", "close")
		}
		h.ServeHTTP(w, r)
	})
}

func (s *Server) logged(h http.Handler) http.Handler {
	if s.options.Requests == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began, seen := time.Now(), &recorder{ResponseWriter: w, status: http.StatusOK}
		defer func() {
			s.options.Requests.Info("request", "client", r.RemoteAddr, "method", r.Method, "path", r.URL.Path, "status", seen.status,
				"bytes", seen.bytes, "seconds", time.Since(began).Seconds())
		}()
		h.ServeHTTP(seen, r)
	})
}

// recorder records the status and the length of a response.
type recorder struct {
	http.ResponseWriter
	status, bytes int
}

func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(p []byte) (int, error) {
	n, err := r.ResponseWriter.Write(p)
	r.bytes += n
	return n, err
}

// Unwrap returns the wrapped writer for [http.ResponseController].
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// only returns a handler that rejects all methods except the given one.
func only(method string, h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != method && !(r.Method == http.MethodHead && method == http.MethodGet) {
			w.Header().Set("Allow", method)
			fail(w, problemf(http.StatusMethodNotAllowed, "method: got %s, want %s", cut(r.Method), method))
			return
		}
		h(w, r)
	})
}

func (s *Server) metadata(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{"name": "tessera", "version": tessera.Version, "extensions": []string{"binary_tensor_data", "generate"},
		"models": s.options.Path + "/v2/models", "openapi": s.options.Path + "/openapi.json"})
}

// ready reports whether the server accepts work. Models are ready from the beginning.
func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	status := http.StatusOK
	if s.draining.Load() {
		status = http.StatusServiceUnavailable
	}
	writeJSON(w, status, map[string]bool{"live": true, "ready": status == http.StatusOK})
}

func (s *Server) list(w http.ResponseWriter, _ *http.Request) {
	type entry struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	var all []entry
	for _, m := range s.models {
		if l := m.acquire(); l != nil {
			all = append(all, entry{m.name, l.version})
			l.release()
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{"models": all})
}

// found returns a handler for requests of a model, which it holds until the response is written.
func (s *Server) found(answer func(w http.ResponseWriter, r *http.Request, m *model, l *loaded)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		m, l, err := s.find(r)
		if err != nil {
			fail(w, err)
			return
		}
		defer l.release()
		answer(w, r, m, l)
	}
}

// describe returns a handler that responds with a description of a model.
func (s *Server) describe(what func(*model, *loaded) any) http.HandlerFunc {
	return s.found(func(w http.ResponseWriter, _ *http.Request, m *model, l *loaded) {
		writeJSON(w, http.StatusOK, what(m, l))
	})
}

// problem is an error with the HTTP status of its response.
type problem struct {
	status int
	text   string
}

func (p *problem) Error() string { return p.text }

func problemf(status int, format string, args ...any) error {
	return &problem{status, fmt.Sprintf(format, args...)}
}

// errFull reports a full queue of a model.
var errFull = &problem{http.StatusTooManyRequests, "the queue of the model is full; try again later"}

// retryAfter is the time after which clients are asked to repeat a request if the queue is full or the server drains.
const retryAfter = time.Second

// statusOf returns the HTTP status of an error: that of a problem, 503 for an expired context, otherwise 400, as the protocol
// proposes.
func statusOf(err error) int {
	var p *problem
	switch {
	case errors.As(err, &p):
		return p.status
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return http.StatusServiceUnavailable
	}
	return http.StatusBadRequest
}

// fail responds with an error object of the protocol, and returns the status.
func fail(w http.ResponseWriter, err error) int {
	status, text := statusOf(err), err.Error()
	if errors.Is(err, context.DeadlineExceeded) {
		text = "the time limit of the request is over; try again later"
	}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
	}
	writeJSON(w, status, map[string]string{"error": text})
	return status
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil { // only values of this package are written
		panic(err)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // fails if the client is gone
}

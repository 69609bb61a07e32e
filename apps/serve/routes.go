package serve

import (
	_ "embed"
	"net/http"
	"net/http/pprof"

	"tessera"
)

//go:embed openapi.json
var openAPI []byte

// routes returns the handler of all requests.
func (s *Server) routes() http.Handler {
	s.exportLoad()
	mux := http.NewServeMux()
	handle := func(method, path string, h http.HandlerFunc) { mux.Handle(path, only(method, h)) }
	handle(http.MethodGet, "/v2", s.metadata)
	handle(http.MethodGet, "/v2/{$}", s.metadata)
	handle(http.MethodGet, "/v2/health/live", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]bool{"live": true})
	})
	handle(http.MethodGet, "/v2/health/ready", s.ready)
	for _, at := range []string{"/v2/models/{model}", "/v2/models/{model}/versions/{version}"} {
		handle(http.MethodGet, at, s.modelMetadata)
		handle(http.MethodGet, at+"/ready", s.modelReady)
		handle(http.MethodPost, at+"/infer", s.infer)
		handle(http.MethodPost, at+"/image", s.image)
	}
	handle(http.MethodGet, "/metrics", s.stats.handler().ServeHTTP)
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
		fail(w, problemf(http.StatusNotFound, "path: got %q, want one of those in /openapi.json", r.URL.Path))
	})
	return s.polite(s.guarded(mux))
}

// polite answers a panic as an error, and asks clients to leave while the server drains.
func (s *Server) polite(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if cause := recover(); cause != nil && cause != http.ErrAbortHandler {
				s.options.Log(problemf(0, "%s %s: internal error: %v", r.Method, r.URL.Path, cause).Error())
				fail(w, problemf(http.StatusInternalServerError, "internal error"))
			}
		}()
		if s.draining.Load() {
			w.Header().Set("Connection", "close")
		}
		h.ServeHTTP(w, r)
	})
}

// only refuses other methods.
func only(method string, h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != method && !(r.Method == http.MethodHead && method == http.MethodGet) {
			w.Header().Set("Allow", method)
			fail(w, problemf(http.StatusMethodNotAllowed, "method: got %s, want %s", r.Method, method))
			return
		}
		h(w, r)
	})
}

// metadata describes the server.
func (s *Server) metadata(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{"name": "tessera", "version": tessera.Version, "extensions": []string{"binary_tensor_data"}})
}

// ready reports whether the server accepts work. Models are ready from the beginning.
func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	status := http.StatusOK
	if s.draining.Load() {
		status = http.StatusServiceUnavailable
	}
	writeJSON(w, status, map[string]bool{"live": true, "ready": status == http.StatusOK})
}

// tensor is the metadata of an input or an output.
type tensor struct {
	Name     string `json:"name"`
	Datatype string `json:"datatype"`
	Shape    []int  `json:"shape"`
}

// modelMetadata describes a model.
func (s *Server) modelMetadata(w http.ResponseWriter, r *http.Request) {
	m, l, err := s.find(r)
	if err != nil {
		fail(w, err)
		return
	}
	defer l.release()
	var outputs []tensor
	for _, o := range l.outputs {
		outputs = append(outputs, tensor{o.name, typeFP32, batched(o.shape)})
	}
	writeJSON(w, http.StatusOK, struct {
		Name     string   `json:"name"`
		Versions []string `json:"versions"`
		Platform string   `json:"platform"`
		Inputs   []tensor `json:"inputs"`
		Outputs  []tensor `json:"outputs"`
	}{m.name, []string{l.version}, "tessera", []tensor{{inputName, typeFP32, batched(l.shape)}}, outputs})
}

// batched is the shape of any number of values of that shape.
func batched(shape []int) []int { return append([]int{-1}, shape...) }

// modelReady reports that a model is ready.
func (s *Server) modelReady(w http.ResponseWriter, r *http.Request) {
	m, l, err := s.find(r)
	if err != nil {
		fail(w, err)
		return
	}
	l.release()
	writeJSON(w, http.StatusOK, map[string]any{"name": m.name, "ready": true})
}

package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
)

// hostile returns request bodies of the given size, each of which would take far more memory if it were stored completely.
func hostile(size int) map[string][]byte {
	repeat := func(before, what, after string) []byte {
		return []byte(before + strings.Repeat(what, size/len(what)) + after)
	}
	return map[string][]byte{
		"inputs":         repeat(`{"inputs":[`, "{},", "{}]}"),
		"null inputs":    repeat(`{"inputs":[`, "null,", "null]}"),
		"outputs":        repeat(`{"outputs":[`, "{},", "{}]}"),
		"null outputs":   repeat(`{"outputs":[`, "null,", "null]}"),
		"shape":          repeat(`{"inputs":[{"shape":[`, "0,", "0]}]}"),
		"name":           repeat(`{"inputs":[{"name":"`, "n", `"}]}`),
		"datatype":       repeat(`{"inputs":[{"name":"input","datatype":"`, "\\u00e9", `"}]}`),
		"id":             repeat(`{"id":"`, "<", `"}`),
		"key":            repeat(`{"`, "k", `":1}`),
		"keys":           repeat(`{`, `"k":1,`, `"k":1}`),
		"output's name":  repeat(`{"outputs":[{"name":"`, "n", `"}]}`),
		"number":         repeat(`{"inputs":[{"data":[0.`, "1", "]}]}"),
		"values":         repeat(`{"inputs":[{"data":[`, "0,", "0]}]}"),
		"empty arrays":   repeat(`{"inputs":[{"data":[`, "[],", "[]]}]}"),
		"dimensions":     repeat(`{"inputs":[{"data":`, "[", ""),
		"a long integer": repeat(`{"inputs":[{"shape":[`, "9", "]}]}"),
		"unknown":        repeat(`{"x":[`, "{},", "{}]}"),
	}
}

// The memory of a request is proportional to the size of its body, and an error message repeats only a short part of it.
func TestHostileRequestsTakeLittleMemory(t *testing.T) {
	s := newServer(t, Options{})
	const size = 4 << 20
	for name, body := range hostile(size) {
		body := bytes.NewReader(body)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, inferPath, body))
		runtime.ReadMemStats(&after)
		if taken := after.TotalAlloc - before.TotalAlloc; w.Code < 400 || w.Code >= 500 || w.Body.Len() > 1000 || taken > 16*size {
			t.Errorf("%s: status %d, a response of %d bytes, %d bytes allocated; want an error of at most 1000 bytes and at most %d bytes", name, w.Code, w.Body.Len(), taken, 16*size)
		}
	}
	expect.Equal(t, s.memory.Load(), 0, "bytes are held")
}

// unread is a client that does not read: a write to it blocks until the test releases it.
type unread struct {
	http.ResponseWriter
	waits   chan<- int // length of the response
	release <-chan struct{}
}

func (u *unread) Write(p []byte) (int, error) {
	u.waits <- len(p)
	<-u.release
	return u.ResponseWriter.Write(p)
}

// Responses for clients that do not read count towards the memory limit: further requests are rejected before the limit is
// exceeded.
func TestClientsThatDoNotReadAreWithinTheLimit(t *testing.T) {
	const limit = 16 << 20
	s := newServer(t, Options{MaxMemory: limit})
	pixels := lists.Of(1024*64, func(i int) byte { return byte(i) })
	head := fmt.Sprintf(`{"inputs":[{"name":"input","shape":[1024,64],"datatype":"UINT8","parameters":{"binary_data_size":%d}}],"outputs":[{"name":"output"}]}`, len(pixels))
	body := append([]byte(head), pixels...)
	waits, release := make(chan int), make(chan struct{})
	var served sync.WaitGroup
	waiting, refused := 0, 0
	for range 64 {
		r := httptest.NewRequest(http.MethodPost, inferPath, bytes.NewReader(body))
		r.Header.Set(headerLength, itoa(len(head)))
		w := httptest.NewRecorder()
		served.Go(func() { s.ServeHTTP(&unread{w, waits, release}, r) })
		before, length := s.memory.Load(), <-waits
		if length > 1000 {
			waiting++
		} else {
			refused++
		}
		if held := s.memory.Load(); held > limit || length > 1000 && held < int64(length) {
			t.Fatalf("%d bytes are held after a response of %d bytes (%d before), want at most %d", held, length, before, limit)
		}
	}
	if waiting < 4 || refused < 4 {
		t.Errorf("%d responses wait, %d requests were refused", waiting, refused)
	}
	close(release)
	served.Wait()
	expect.Equal(t, s.memory.Load(), 0, "bytes are held")
}

// The counted size of a buffer equals the size of its slices.
func TestTheAccountIsThatOfTheSlices(t *testing.T) {
	s := newServer(t, Options{})
	x := images(300, 1)
	bin, header := binaryRequest(x, `,"outputs":[{"name":"code"},{"name":"output","parameters":{"binary_data":true}}]`)
	for name, c := range map[string]struct {
		body   []byte
		header string
	}{"JSON": {jsonRequest(x, ""), ""}, "binary": {bin, header}} {
		r := httptest.NewRequest(http.MethodPost, inferPath, bytes.NewReader(c.body))
		r.SetPathValue("model", "small")
		r.Header.Set(headerLength, c.header)
		if c.header == "" {
			r.Header.Del(headerLength)
		}
		_, l, err := s.find(r)
		fatal.If(t, err)
		b := &buffer{server: s, lent: true}
		q, err := s.infer(b, httptest.NewRecorder(), r, l)
		if err == nil {
			err = b.compute(t.Context(), q, time.Now())
		}
		if err == nil {
			_, err = b.encode("small", l, q)
		}
		const names = 4096 // upper bound in bytes of the names of the outputs, which are counted only after they are written
		if want := b.size(); err != nil || want-b.held > names || s.memory.Load() != b.held || want < int64(len(c.body)) {
			t.Errorf("%s: %d bytes are counted, %d of the server, want %d: %v", name, b.held, s.memory.Load(), want, err)
		}
		b.giveBack()
		l.release()
	}
	expect.Equal(t, s.memory.Load(), 0, "bytes are held")
}

// After an error of the system, the same files are read again. After an error in the contents, they are not.
func TestOnlyInvalidContentsAreRemembered(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	rewrite(t, file, "first")
	f := newFiles(file)
	rewrite(t, file, "the second")
	var logged []string
	reads := 0
	var err error
	refresh := func() {
		f.refresh(func(text string) { logged = append(logged, text) }, "file", func() (string, error) { reads++; return "", err })
	}
	err = fmt.Errorf("run: %w", &fs.PathError{Op: "open", Path: file, Err: syscall.EMFILE})
	refresh()
	refresh()
	err = nil
	refresh()
	refresh()
	want := []string{"file: reload: run: open " + file + ": too many open files; the former one is used", "file: was read again"}
	expect.Equal(t, reads, 3, "read")
	expect.Slice(t, logged, want, "read")
	err = errors.New("damaged")
	rewrite(t, file, "the third one")
	refresh()
	refresh()
	expect.Equal(t, reads, 4, "damaged contents: read")
	expect.Equal(t, f.problem, "damaged", "damaged contents: read")
}

// metricOf returns the value of a line of /metrics, "" if there is none.
func metricOf(s *Server, name string) string {
	for line := range strings.Lines(string(send(s, http.MethodGet, "/metrics", nil).body)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func TestMetricsAndLogTellWhichVersionIsServed(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	trainRun(t, folder, fmt.Sprintf(text, 4))
	var logged []string
	s, err := New([]Model{{Folder: folder}, {Folder: smallRun(t)}}, Options{Workers: 1, Reload: -1, Log: func(text string) { logged = append(logged, text) }})
	fatal.If(t, err)
	defer s.Close()
	first := s.models[0].current.version
	info := func(version string) string {
		return metricOf(s, fmt.Sprintf(`tessera_model_info{model="run",version=%q}`, version))
	}
	stale := func() string { return metricOf(s, `tessera_model_stale{model="run"}`) }
	s.refresh()
	if info(first) != "1" || stale() != "0" || metricOf(s, `tessera_model_loaded_timestamp_seconds{model="run"}`) == "" || len(logged) != 0 {
		t.Errorf("at the start: %q, %q, %q", info(first), stale(), logged)
	}
	model := filepath.Join(folder, "model.safetensors")
	sound, err := os.ReadFile(model)
	fatal.If(t, err)
	rewrite(t, model, "damaged")
	s.refresh()
	if stale() != "1" || info(first) != "1" || metricOf(s, `tessera_reloads_total{model="run",result="error"}`) != "1" {
		t.Errorf("damaged: %q", stale())
	}
	rewrite(t, model, string(sound))
	s.refresh()
	if last := logged[len(logged)-1]; stale() != "0" || last != "model run: was read again" {
		t.Errorf("repaired: %q, logged %q", stale(), last)
	}
	replace(t, smallRun(t), folder)
	s.refresh()
	second := s.models[0].current.version
	if info(first) != "" || info(second) != "1" || !strings.Contains(logged[len(logged)-1], second+" replaces "+first) {
		t.Errorf("replaced: %q and %q, logged %q", info(first), info(second), logged)
	}
	expect.Equal(t, metricOf(s, fmt.Sprintf(`tessera_model_info{model="small",version=%q}`, s.models[1].current.version)), "1", "the other model has lost its version")
}

func TestOnlyTheNamesOfThisMachineAreServedWithoutTokens(t *testing.T) {
	tokens, err := NewTokens("0123456789abcdef")
	fatal.If(t, err)
	for host, want := range map[string]int{"evil.example": 403, "evil.example:80": 403, "": 403, "localhost": 200, "127.0.0.1:1": 200, "[::1]": 200} {
		ask := func(o Options, token string) int {
			address, stop := listening(t, newServer(t, o))
			defer func() { _ = stop() }()
			status := 0
			err := dialled(address, func(c net.Conn) error {
				_, err := fmt.Fprintf(c, "GET /v2 HTTP/1.0\r\nHost: %s\r\n%s\r\n", host, token)
				if err == nil {
					_, err = fmt.Fscanf(c, "HTTP/1.0 %d", &status)
				}
				return err
			})
			expect.NoError(t, err)
			return status
		}
		expect.Equal(t, ask(Options{DrainDelay: 1}, ""), want, "host", host)
		expect.Equal(t, ask(Options{DrainDelay: 1, Tokens: tokens}, "Authorization: Bearer 0123456789abcdef\r\n"), 200, "host", host, "with a token")
	}
}

func TestRequestsThatDoNotEndAreCutAfterTheDrain(t *testing.T) {
	s := newServer(t, Options{DrainDelay: 1, DrainTimeout: 1})
	reads := make(chan struct{})
	inner := s.handler
	s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(reads)
		inner.ServeHTTP(w, r)
	})
	address, stop := listening(t, s)
	err := dialled(address, func(c net.Conn) error {
		if _, err := fmt.Fprint(c, "POST "+inferPath+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{"); err != nil {
			return err
		}
		<-reads
		return stop()
	})
	if !errors.Is(err, ErrCut) || strings.Contains(err.Error(), "context") {
		t.Errorf("got %v, want %v", err, ErrCut)
	}
}

// A connection that was cut may still have a handler that begins only after Close.
func TestARequestAfterCloseDoesNotGetAModel(t *testing.T) {
	s := newServer(t, Options{})
	fatal.If(t, s.Close())
	expect.Equal(t, send(s, "GET", "/v2/models/small", nil).status, http.StatusServiceUnavailable, "status")
	expect.Equal(t, send(s, "GET", "/metrics", nil).status, http.StatusOK, "metrics: status")
}

func TestAnAbortedAnswerCutsTheConnection(t *testing.T) {
	s := newServer(t, Options{})
	h := s.polite(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	server := httptest.NewServer(h)
	defer server.Close()
	r, err := http.Get(server.URL)
	fatal.If(t, err)
	defer r.Body.Close()
	if b, err := io.ReadAll(r.Body); err == nil {
		t.Errorf("half an answer, %q, looks complete", b)
	}
	w := httptest.NewRecorder()
	s.polite(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a fault") })).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	expect.Equal(t, w.Code, http.StatusInternalServerError, "another panic: status")
}

func TestNilAndZeroServersAreErrors(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	fatal.If(t, err)
	defer l.Close()
	for name, s := range map[string]*Server{"nil": nil, "zero": {}} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("GET", "/v2", nil))
		if err := s.Serve(t.Context(), l); err == nil || s.Close() != nil || s.Models() != nil || w.Code != http.StatusServiceUnavailable {
			t.Errorf("a %s server: %v, %d", name, err, w.Code)
		}
	}
	s := newServer(t, Options{})
	expect.AnyError(t, s.Serve(t.Context(), nil), "a nil listener")
	var none context.Context
	expect.AnyError(t, s.Serve(none, l), "a nil context")
}

func TestInvalidOptionsAndNamesAreTyped(t *testing.T) {
	run := smallRun(t)
	for name, c := range map[string]struct {
		models []Model
		o      Options
	}{
		"none": {nil, Options{}}, "no folder": {[]Model{{}}, Options{}}, "a slash": {[]Model{{Name: "a/b", Folder: run}}, Options{}},
		"a dot": {[]Model{{Name: ".", Folder: run}}, Options{}}, "two dots": {[]Model{{Name: "..", Folder: run}}, Options{}},
		"an escape": {[]Model{{Name: "%2e", Folder: run}}, Options{}}, "twice": {[]Model{{Folder: run}, {Folder: run}}, Options{}},
		"negative": {[]Model{{Folder: run}}, Options{MaxBody: -1}}, "wait": {[]Model{{Folder: run}}, Options{MaxWait: -1}},
	} {
		s, err := New(c.models, c.o)
		if !errors.As(err, new(*OptionError)) {
			t.Errorf("%s: got %v, want an *OptionError", name, err)
		}
		if err == nil {
			s.Close()
		}
	}
}

func TestRequestsAreLogged(t *testing.T) {
	var log bytes.Buffer
	s := newServer(t, Options{Requests: slog.New(slog.NewJSONHandler(&log, nil))})
	send(s, http.MethodGet, "/v2/models/none", nil)
	var line struct {
		Msg, Method, Path string
		Status, Bytes     int
		Seconds           float64
	}
	if err := json.Unmarshal(log.Bytes(), &line); err != nil || line.Method != "GET" || line.Path != "/v2/models/none" || line.Status != 404 || line.Bytes == 0 {
		t.Errorf("got %s, %v", &log, err)
	}
}

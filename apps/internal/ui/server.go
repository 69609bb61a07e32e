// Package ui serves the pages of a folder of runs and sweeps over HTTP, and the progress of trainings by server-sent events. It
// writes nothing. `tessera ui` starts a [Server].
package ui

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"tessera/apps/show/comparison"
	"tessera/apps/show/page"
	"tessera/internal/loopback"
	"tessera/internal/sweep"
	"tessera/internal/train/folder"
)

// Options configure a server.
type Options struct {
	page.Options
	Token string // required of every request; "" for none
	// AnyHost accepts requests with any Host header. If false, only names of this machine are accepted: otherwise a web page
	// could read the runs through a host name that it controls.
	AnyHost bool
	Folders []string      // sub-folders that are listed; nil lists all
	Every   time.Duration // time between two checks of the files; 0 for half a second
}

// Server serves one folder.
type Server struct {
	dir     string
	real    string // dir as an absolute path without symbolic links
	options Options
	list    lister

	measuring sync.Mutex // only one page is measured at a time, because measuring uses all threads
	mu        sync.Mutex
	pages     map[string]rendered
}

// rendered is a page with the stamp of the files from which it was rendered.
type rendered struct {
	stamp string
	page  []byte
}

// New returns a server for the runs and sweeps in a folder and its sub-folders.
func New(dir string, o Options) (*Server, error) {
	real, err := filepath.Abs(dir)
	if err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	if err != nil {
		return nil, fmt.Errorf("ui: %w", err)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("ui: %s: is a file; give the folder of runs", dir)
	}
	if o.Every == 0 {
		o.Every = time.Second / 2
	}
	return &Server{dir: dir, real: real, options: o, list: lister{dir: dir, folders: o.Folders, known: map[string]status{}}, pages: map[string]rendered{}}, nil
}

// Handler returns the handler of the server's requests.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.index)
	mux.HandleFunc("GET /run/{path...}", s.run)
	mux.HandleFunc("GET /sweep/{path...}", s.sweep)
	mux.HandleFunc("GET /compare", s.compare)
	mux.HandleFunc("GET /events", s.listEvents)
	mux.HandleFunc("GET /events/run/{path...}", s.runEvents)
	mux.HandleFunc("GET /events/sweep/{path...}", s.sweepEvents)
	return s.guarded(mux)
}

// cookie returns the name of the cookie that contains the token. Browsers send a cookie to all ports of a host, so that each port has
// another name: a server on another port does not get the token.
func cookie(r *http.Request) string {
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		return "tessera-token-" + port
	}
	return "tessera-token"
}

// guarded rejects requests without the token, and requests for another host.
func (s *Server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Content-Security-Policy", "frame-ancestors 'none'; base-uri 'none'; form-action 'self'; object-src 'none'") // pages restrict more
		h.Set("Cache-Control", "no-store")
		if !s.options.AnyHost && !loopback.Host(r.Host) {
			http.Error(w, "host: got a name of another machine; use http://127.0.0.1 with the port", http.StatusForbidden)
			return
		}
		if s.options.Token != "" {
			if given := r.URL.Query().Get("token"); given != "" && s.valid(given) {
				http.SetCookie(w, &http.Cookie{Name: cookie(r), Value: given, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
				http.Redirect(w, r, withoutToken(r.URL), http.StatusSeeOther) // so that the token is not in the history
				return
			}
			if !s.valid(tokenOf(r)) {
				h.Set("WWW-Authenticate", "Bearer")
				http.Error(w, "a token is needed: open the address that tessera ui printed", http.StatusUnauthorized)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// valid compares a token in constant time: the time does not depend on the position of a difference.
func (s *Server) valid(token string) bool {
	given, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(s.options.Token))
	return subtle.ConstantTimeCompare(given[:], want[:]) == 1
}

func tokenOf(r *http.Request) string {
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return token
	}
	if c, err := r.Cookie(cookie(r)); err == nil {
		return c.Value
	}
	return ""
}

// withoutToken returns the address of a request without its token.
func withoutToken(u *url.URL) string {
	q := u.Query()
	q.Del("token")
	path := "/" + strings.TrimLeft(u.Path, "/") // "//" would begin the name of another server
	return (&url.URL{Path: path, RawQuery: q.Encode()}).RequestURI()
}

// errNotHere reports that the folder has no such run or sweep.
var errNotHere = errors.New("there is no such run or sweep in this folder")

// find returns the folder of a path below the served one. It returns an error for hidden folders, and for links to places
// outside of the served folder.
func (s *Server) find(path string) (string, error) {
	if path == "" {
		path = "."
	}
	if strings.ContainsRune(path, 0) {
		return "", refused{errors.New("path: got a NUL character")}
	}
	local := filepath.FromSlash(path)
	if !filepath.IsLocal(local) || strings.Contains("/"+path, "/.") && path != "." {
		return "", errNotHere
	}
	real, err := filepath.EvalSymlinks(filepath.Join(s.real, local))
	if err != nil {
		return "", errNotHere
	}
	if inside, err := filepath.Rel(s.real, real); err != nil || !filepath.IsLocal(inside) {
		return "", errNotHere
	}
	return filepath.Join(s.dir, local), nil
}

// findKind returns the folder of a request, which must satisfy the function is.
func (s *Server) findKind(r *http.Request, is func(path string) bool) (string, error) {
	path, err := s.find(r.PathValue("path"))
	if err == nil && !is(path) {
		err = errNotHere
	}
	return path, err
}

// refused is an error in a request; other errors concern the files.
type refused struct{ error }

func fail(w http.ResponseWriter, err error) {
	code := http.StatusInternalServerError
	if errors.Is(err, errNotHere) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, folder.ErrNotRun) {
		code = http.StatusNotFound
	} else if errors.As(err, new(refused)) {
		code = http.StatusBadRequest
	}
	http.Error(w, err.Error(), code)
}

// send responds with a page.
func send(w http.ResponseWriter, text []byte) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(text) // fails if the reader is gone
}

// cached responds with a page, which is rendered again only if its files have changed. Concurrent requests for a page share
// one rendering.
func (s *Server) cached(w http.ResponseWriter, key, stamp string, make func(*bytes.Buffer) error) {
	text, ok := s.fresh(key, stamp)
	if !ok {
		var err error
		if text, err = s.render(key, stamp, make); err != nil {
			fail(w, err)
			return
		}
	}
	send(w, text)
}

// render renders a page, unless another request has rendered it in the meantime.
func (s *Server) render(key, stamp string, make func(*bytes.Buffer) error) ([]byte, error) {
	s.measuring.Lock()
	defer s.measuring.Unlock()
	if text, ok := s.fresh(key, stamp); ok {
		return text, nil
	}
	var b bytes.Buffer
	if err := make(&b); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pages) >= mostPages {
		clear(s.pages)
	}
	s.pages[key] = rendered{stamp, b.Bytes()}
	return b.Bytes(), nil
}

// fresh returns a stored page that was rendered from files with the given stamp.
func (s *Server) fresh(key, stamp string) (text []byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	have, ok := s.pages[key]
	return have.page, ok && have.stamp == stamp
}

// mostPages is the maximum number of stored pages.
const mostPages = 32

// index responds with the list of runs and sweeps.
func (s *Server) index(w http.ResponseWriter, _ *http.Request) {
	var b bytes.Buffer
	rows := s.list.rows()
	if rows == nil {
		rows = []row{}
	}
	name, err := filepath.Abs(s.dir)
	if err != nil {
		name = s.dir
	}
	if err := page.WriteList(&b, name, rows); err != nil {
		fail(w, err)
		return
	}
	send(w, b.Bytes())
}

func (s *Server) run(w http.ResponseWriter, r *http.Request) {
	path, err := s.find(r.PathValue("path"))
	if err != nil {
		fail(w, err)
		return
	}
	at := statusOf(path)
	if at.Model == "" {
		if _, err := os.Stat(filepath.Join(path, folder.Config)); err == nil { // the list has it
			fail(w, errors.New(at.Problem))
		} else {
			fail(w, errNotHere)
		}
		return
	}
	o := s.options.Options
	o.Quick = at.State == training
	s.cached(w, r.URL.Path, fmt.Sprint(stampOf(path, folder.Config, folder.Model, folder.Best, folder.Metrics), o.Quick), func(b *bytes.Buffer) error {
		one, err := page.ReadRun(context.WithoutCancel(r.Context()), path, o) // for the next reader too
		if err != nil {
			return err
		}
		return (&page.Report{Runs: []*page.Run{one}, Live: "/events" + r.URL.EscapedPath()}).Write(b)
	})
}

// sweep responds with the page of a sweep.
func (s *Server) sweep(w http.ResponseWriter, r *http.Request) {
	path, err := s.findKind(r, sweep.Is)
	if err != nil {
		fail(w, err)
		return
	}
	s.cached(w, r.URL.Path, stampOf(path, sweep.ResultsFile), func(b *bytes.Buffer) error {
		one, err := page.ReadSweep(context.WithoutCancel(r.Context()), path, s.options.Options)
		if err != nil {
			return err
		}
		one.Live = "/events" + r.URL.EscapedPath()
		for i := range one.Trials {
			if trial := sweep.TrialPath(path, one.Trials[i].Name); statusOf(trial).Model != "" {
				one.Trials[i].Link = link("run", s.dir, trial)
			}
		}
		return one.Write(b)
	})
}

// compare responds with the comparison of the runs that the query names.
func (s *Server) compare(w http.ResponseWriter, r *http.Request) {
	var paths []string
	stamp := ""
	for _, name := range r.URL.Query()["run"] {
		path, err := s.find(name)
		if err == nil && statusOf(path).Model == "" {
			err = errNotHere
		}
		if err != nil {
			fail(w, err)
			return
		}
		paths = append(paths, path)
		stamp += stampOf(path, folder.Config, folder.Model, folder.Best)
	}
	if len(paths) < 2 {
		http.Error(w, "choose two or more runs to compare", http.StatusBadRequest)
		return
	}
	s.cached(w, "compare?"+r.URL.RawQuery, stamp, func(b *bytes.Buffer) error {
		o := comparison.Options{Split: s.options.Split, Metrics: s.options.Metrics, Open: s.options.Open}
		t, err := comparison.Compare(context.WithoutCancel(r.Context()), paths, o)
		if err != nil {
			return refused{err}
		}
		return (&page.Comparison{Table: t, Live: true}).Write(b)
	})
}

// link returns the address of a run or sweep.
func link(kind, dir, path string) string {
	relative, err := filepath.Rel(dir, path)
	if err != nil {
		return ""
	}
	return (&url.URL{Path: "/" + kind + "/" + filepath.ToSlash(relative)}).EscapedPath()
}

// stampOf returns a text that changes if one of the files changes.
func stampOf(path string, names ...string) string {
	var b strings.Builder
	for _, name := range names {
		if info, err := os.Stat(filepath.Join(path, name)); err == nil {
			fmt.Fprintf(&b, "%s %d %d;", name, info.Size(), info.ModTime().UnixNano())
		}
	}
	return b.String()
}

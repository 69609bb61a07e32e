// Package ui serves the pages of a folder of runs and sweeps over HTTP, and the progress of trainings by server-sent events. It
// writes nothing. It is what `tessera ui` starts.
package ui

import (
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

	"tessera/show/page"
	"tessera/train/folder"
)

// Options say how runs are served.
type Options struct {
	page.Options
	Token string // that every request needs; "" for none
	// AnyHost accepts requests under any name of this machine. Without it only names of the machine itself are accepted, so that no
	// web page can read the runs through a name that it controls.
	AnyHost bool
	Every   time.Duration // between two checks of the files; 0 takes half a second
}

// Server serves one folder.
type Server struct {
	dir     string
	options Options
	list    lister

	measuring sync.Mutex // one page at a time is measured: it takes all threads
	mu        sync.Mutex
	pages     map[string]kept
}

// kept is a page that was rendered, and the state of the files it was made of.
type kept struct {
	stamp string
	page  []byte
}

// New returns a server of the runs and sweeps in a folder and its sub-folders.
func New(dir string, o Options) (*Server, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("live: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("live: %s: is a file; give the folder of runs", dir)
	}
	if o.Every == 0 {
		o.Every = time.Second / 2
	}
	return &Server{dir: dir, options: o, list: lister{dir: dir, known: map[string]status{}}, pages: map[string]kept{}}, nil
}

// Handler answers the requests.
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

// cookie holds the token once it was given.
const cookie = "tessera-token"

// guarded refuses requests without the token, and those under a foreign name.
func (s *Server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Cache-Control", "no-store")
		if !s.options.AnyHost && !ownName(r.Host) {
			http.Error(w, "this name is not of this machine: use http://127.0.0.1 with the port", http.StatusForbidden)
			return
		}
		if s.options.Token != "" {
			if given := r.URL.Query().Get("token"); given != "" && s.valid(given) {
				http.SetCookie(w, &http.Cookie{Name: cookie, Value: given, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
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

// ownName reports whether a host of a request names this machine itself.
func ownName(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	ip := net.ParseIP(strings.Trim(name, "[]"))
	return name == "localhost" || ip != nil && ip.IsLoopback()
}

// valid compares a token in constant time: the time depends on neither token.
func (s *Server) valid(token string) bool {
	given, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(s.options.Token))
	return subtle.ConstantTimeCompare(given[:], want[:]) == 1
}

// tokenOf is the token of a request.
func tokenOf(r *http.Request) string {
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return token
	}
	if c, err := r.Cookie(cookie); err == nil {
		return c.Value
	}
	return ""
}

func withoutToken(u *url.URL) string {
	q := u.Query()
	q.Del("token")
	path := "/" + strings.TrimLeft(u.Path, "/") // "//" would begin the name of another server
	return (&url.URL{Path: path, RawQuery: q.Encode()}).RequestURI()
}

// errNotHere says that the folder has no such run or sweep.
var errNotHere = errors.New("there is no such run or sweep in this folder")

// find returns the folder of a path below the served one. Hidden folders are not served.
func (s *Server) find(path string) (string, error) {
	if path == "" {
		path = "."
	}
	if !filepath.IsLocal(filepath.FromSlash(path)) || strings.Contains("/"+path, "/.") && path != "." {
		return "", errNotHere
	}
	return filepath.Join(s.dir, filepath.FromSlash(path)), nil
}

// refused is an error of a request, not of the files.
type refused struct{ error }

// fail answers with an error.
func fail(w http.ResponseWriter, err error) {
	code := http.StatusInternalServerError
	if errors.Is(err, errNotHere) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, folder.ErrNotRun) {
		code = http.StatusNotFound
	} else if errors.As(err, new(refused)) {
		code = http.StatusBadRequest
	}
	http.Error(w, err.Error(), code)
}

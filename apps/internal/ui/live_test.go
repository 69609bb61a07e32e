package ui_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tessera"
	"tessera/apps/internal/ui"
	"tessera/apps/show/page"
	"tessera/config"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/train"
)

// swimmers trains the shipped model for a few epochs.
func swimmers(t *testing.T, out, epochs string, report func(train.Progress)) {
	t.Helper()
	set, err := config.ParseSet("train.epochs=" + epochs)
	fatal.If(t, err)
	m, err := tessera.Shipped().Model("swimmer-parts", set)
	fatal.If(t, err)
	r, err := tessera.Train(context.Background(), m, tessera.Options{Threads: 1, Out: out, Report: report})
	if err != nil {
		t.Error(err)
		return
	}
	expect.NoError(t, r.Close())
}

// serve starts a server for a folder.
func serve(t *testing.T, dir string, o ui.Options) *httptest.Server {
	t.Helper()
	o.Options = page.Options{Open: tessera.Options{Threads: 1}}
	o.Every = 20 * time.Millisecond
	s, err := ui.New(dir, o)
	fatal.If(t, err)
	server := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		server.CloseClientConnections() // streams of events have no end
		server.Close()
	})
	return server
}

// answer returns the status and the body of a response.
func answer(t *testing.T, method, address string, change func(*http.Request)) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, address, nil)
	fatal.If(t, err)
	if change != nil {
		change(r)
	}
	a, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(r)
	fatal.If(t, err)
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	fatal.If(t, err)
	return a.StatusCode, string(text)
}

func TestOnlyTheFolderIsServed(t *testing.T) {
	dir := t.TempDir()
	swimmers(t, filepath.Join(dir, "outside"), "1", nil)
	fatal.If(t, os.MkdirAll(filepath.Join(dir, "served", "empty"), 0o700))
	swimmers(t, filepath.Join(dir, "served", "same"), "1", nil)
	fatal.If(t, errors.Join(os.Mkdir(filepath.Join(dir, "served", "broken"), 0o700), os.WriteFile(filepath.Join(dir, "served", "broken", "config.toml"), nil, 0o600)))
	for link, to := range map[string]string{"out": filepath.Join(dir, "outside"), "in": "same"} {
		if err := os.Symlink(to, filepath.Join(dir, "served", link)); err != nil {
			t.Skip(err)
		}
	}
	server := serve(t, filepath.Join(dir, "served"), ui.Options{})
	for path, want := range map[string]int{"/run/out": 404, "/run/in": 200, "/events/run/out": 404, "/compare?run=out&run=same": 404,
		"/run/a%00b": 400, "/sweep/a%00b": 400, "/events/run/%00": 400, "/compare?run=%00&run=same": 400,
		"/": 200, "/run/empty": 404, "/run/..%2foutside": 404, "/run/": 404, "/sweep/empty": 404, "/compare?run=..%2foutside&run=empty": 404,
		"/compare": 400, "/compare?run=same&run=same": 400, "/run/same": 200, "/events/run/empty": 404, "/other": 404} {
		if got, text := answer(t, "GET", server.URL+path, nil); got != want {
			t.Errorf("GET %s: got %d %.100s, want %d", path, got, text, want)
		}
	}
	if got, text := answer(t, "GET", server.URL+"/run/unknown", nil); got != http.StatusNotFound || !strings.Contains(text, "there is no such run") {
		t.Errorf("an unknown run: got %d %s", got, text)
	}
	if r, err := http.Get(server.URL + "/"); err != nil || !strings.Contains(r.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
		t.Errorf("no policy: %v", err)
	} else {
		r.Body.Close()
	}
	if got, text := answer(t, "GET", server.URL+"/run/broken", nil); got != http.StatusInternalServerError || !strings.Contains(text, "is not the declaration of one model") {
		t.Errorf("a damaged run: got %d %s", got, text)
	}
	if got, _ := answer(t, "POST", server.URL+"/", nil); got != http.StatusMethodNotAllowed {
		t.Errorf("POST: got %d, want 405", got)
	}
	if got, _ := answer(t, "GET", server.URL, func(r *http.Request) { r.Host = "evil.example" }); got != http.StatusForbidden {
		t.Errorf("a foreign name: got %d, want 403", got)
	}
}

func TestATokenIsNeeded(t *testing.T) {
	const token = "0123456789abcdef"
	server := serve(t, t.TempDir(), ui.Options{Token: token, AnyHost: true})
	for _, c := range []struct {
		name, path string
		change     func(*http.Request)
		want       int
	}{
		{"none", "/", nil, 401},
		{"a wrong one", "/?token=0123456789abcdeX", nil, 401},
		{"a wrong bearer", "/", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token[1:]) }, 401},
		{"the bearer", "/", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }, 200},
		{"the cookie", "/", func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "tessera-token-" + r.URL.Port(), Value: token}) }, 200},
		{"the cookie of another port", "/", func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "tessera-token-1", Value: token}) }, 401},
		{"the address", "/?token=" + token, nil, 303},
		{"none, of events", "/events", nil, 401},
		{"a foreign name with the bearer", "/", func(r *http.Request) { r.Host = "machine.example"; r.Header.Set("Authorization", "Bearer "+token) }, 200},
	} {
		if got, _ := answer(t, "GET", server.URL+c.path, c.change); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}

func TestAFolderThatIsNotThereIsAnError(t *testing.T) {
	expect.AnyError(t, expect.Err(ui.New(filepath.Join(t.TempDir(), "missing"), ui.Options{})), "a missing folder is served")
}

func TestOnlyTheNamedFoldersAreListed(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"runs/one", "sweeps/two", "other/three"} {
		swimmers(t, filepath.Join(dir, name), "1", nil)
	}
	server := serve(t, dir, ui.Options{Folders: []string{"runs", "sweeps", "missing"}})
	_, text := answer(t, "GET", server.URL, nil)
	if !strings.Contains(text, `"path":"runs/one"`) || !strings.Contains(text, `"path":"sweeps/two"`) || strings.Contains(text, "three") {
		t.Errorf("the list: %.600s", text)
	}
}

package data

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// mirror serves files and records the requested ranges.
type mirror struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string // "GET /tiny/NAME bytes=5-"
}

// newMirror serves the given files by serve, or by http.ServeContent if serve is nil.
func newMirror(t *testing.T, files map[string][]byte, serve func(w http.ResponseWriter, r *http.Request, b []byte, nth int)) *mirror {
	t.Helper()
	m := &mirror{}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		m.requests = append(m.requests, strings.TrimSpace(filepath.Base(r.URL.Path)+" "+r.Header.Get("Range")))
		nth := len(m.requests)
		m.mu.Unlock()
		b, ok := files[filepath.Base(r.URL.Path)]
		switch {
		case !ok || !strings.HasPrefix(r.URL.Path, "/tiny/"):
			http.NotFound(w, r)
		case serve == nil:
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
		default:
			serve(w, r, b, nth)
		}
	}))
	t.Cleanup(m.Close)
	return m
}

// packed returns the files of a set, compressed with the given level, as a mirror would have them.
func packed(t *testing.T, set *published, contents [4][]byte, level int) map[string][]byte {
	files := map[string][]byte{}
	for i, f := range set.files {
		files[f.name+".gz"] = wrapped(t, contents[i], level)
	}
	return files
}

// cutAfter serves n bytes of the requested range and then closes the connection.
func cutAfter(w http.ResponseWriter, r *http.Request, b []byte, n int) {
	recorder := httptest.NewRecorder()
	recorder.Header().Set("ETag", w.Header().Get("ETag")) // ServeContent compares If-Range with it
	http.ServeContent(recorder, r, "", time.Time{}, bytes.NewReader(b))
	for k, v := range recorder.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(recorder.Code)
	body := recorder.Body.Bytes()
	w.Write(body[:min(n, len(body))])
	if n < len(body) {
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

func fetch(t *testing.T, set *published, dir string, mirrors ...*mirror) error {
	t.Helper()
	d := Download{pause: time.Millisecond, Mirrors: []string{}}
	for _, m := range mirrors {
		d.Mirrors = append(d.Mirrors, m.URL)
	}
	_, err := d.get(background, set, dir)
	return err
}

// wantComplete checks that dir contains the files of the set and no others.
func wantComplete(t *testing.T, set *published, dir string) {
	t.Helper()
	expect.NoError(t, expect.Err(set.Load(background, Dirs{dir}, Both)), "what was downloaded cannot be loaded")
	entries, _ := os.ReadDir(filepath.Join(dir, set.name))
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".part") {
			t.Errorf("%s was left", e.Name())
		}
	}
}

func TestAMirrorWithoutRangesSendsTheWholeFileAgain(t *testing.T) {
	set, contents := tiny("tiny")
	files := packed(t, set, contents, gzip.BestCompression)
	m := newMirror(t, files, func(w http.ResponseWriter, _ *http.Request, b []byte, _ int) { w.Write(b) })
	dir := t.TempDir()
	name := set.files[trainImages].name + ".gz"
	write(t, dir, "tiny/"+name+".part", bytes.Repeat([]byte("x"), 2*len(files[name])))
	fatal.If(t, fetch(t, set, dir, m))
	wantComplete(t, set, dir)
}

func TestAMirrorThatAlwaysStartsAnewAndCutsIsGivenUp(t *testing.T) {
	set, contents := tiny("tiny")
	m := newMirror(t, packed(t, set, contents, gzip.BestCompression),
		func(w http.ResponseWriter, r *http.Request, b []byte, _ int) {
			r.Header.Del("Range")
			cutAfter(w, r, b, 300)
		})
	if err := fetch(t, set, t.TempDir(), m); err == nil || len(m.requests) != 4 {
		t.Errorf("got %v after requests %q, want an error after one that brought bytes and three that brought no more", err, m.requests)
	}
}

// Mirrors compress files differently, so a partial file from one mirror cannot be completed by another.
func TestBytesOfAnotherMirrorAreDiscardedAndFetchedOnceMore(t *testing.T) {
	set, contents := tiny("tiny")
	other := packed(t, set, contents, gzip.NoCompression)
	m := newMirror(t, packed(t, set, contents, gzip.BestCompression), nil)
	name := set.files[trainImages].name + ".gz"
	for _, have := range []int{200, len(other[name]) - 1} { // within the mirror's file, and beyond its end
		dir := t.TempDir()
		write(t, dir, "tiny/"+name+".part", other[name][:have])
		fatal.If(t, fetch(t, set, dir, m))
		wantComplete(t, set, dir)
	}
}

func TestTheNextMirrorIsAskedWhenOneHasNoFileOrOtherBytes(t *testing.T) {
	set, contents := tiny("tiny")
	files := packed(t, set, contents, gzip.BestCompression)
	wrong := contents
	wrong[trainImages] = slices.Clone(contents[trainImages])
	wrong[trainImages][1000] ^= 1
	for what, bad := range map[string]*mirror{
		"404":         newMirror(t, nil, nil),
		"wrong bytes": newMirror(t, packed(t, set, wrong, gzip.BestCompression), nil),
		"a web page":  newMirror(t, files, func(w http.ResponseWriter, _ *http.Request, _ []byte, _ int) { fmt.Fprint(w, "<html>") }),
		"nothing":     newMirror(t, files, func(http.ResponseWriter, *http.Request, []byte, int) {}),
		"no end": newMirror(t, files, func(w http.ResponseWriter, r *http.Request, _ []byte, _ int) {
			for r.Context().Err() == nil {
				w.Write(make([]byte, 1<<16))
			}
		}),
		"a broken server": newMirror(t, files, func(w http.ResponseWriter, _ *http.Request, _ []byte, _ int) { w.WriteHeader(500) }),
		"a wrong range": newMirror(t, files, func(w http.ResponseWriter, _ *http.Request, b []byte, _ int) {
			w.Header().Set("Content-Range", "bytes 7-9/10")
			w.WriteHeader(206)
			w.Write(b[7:10])
		}),
		"a cut before the first byte": newMirror(t, files, func(http.ResponseWriter, *http.Request, []byte, int) { panic(http.ErrAbortHandler) }),
	} {
		t.Run(what, func(t *testing.T) {
			good := newMirror(t, files, nil)
			dir := t.TempDir()
			fatal.If(t, fetch(t, set, dir, bad, good))
			if len(good.requests) == 0 {
				t.Error("the second mirror was never asked")
			}
			wantComplete(t, set, dir)
		})
	}
}

func TestWhenAllMirrorsFailTheErrorSaysWhyAndNoFileHasTheName(t *testing.T) {
	set, contents := tiny("tiny")
	wrong := contents
	for i := range wrong {
		wrong[i] = append(slices.Clone(contents[i]), 0)
	}
	missing, other := newMirror(t, nil, nil), newMirror(t, packed(t, set, wrong, gzip.BestCompression), nil)
	gone := newMirror(t, nil, nil)
	gone.Close()
	dir := t.TempDir()
	err := fetch(t, set, dir, missing, other, gone)
	if bad, ok := errors.AsType[*Error](err); !ok || bad.Dataset != "tiny" || strings.Contains(err.Error(), "\n") {
		t.Fatalf("got %v, want an *Error of one line", err)
	}
	for _, want := range []string{"no mirror provides it", missing.URL + "/tiny/", "404 Not Found", other.URL, "wrong size: more than 2368 bytes", gone.URL, "refused"} {
		expect.Contains(t, err.Error(), want, err)
	}
	if entries, _ := os.ReadDir(filepath.Join(dir, "tiny")); len(entries) != 0 {
		t.Errorf("the folder holds %v", entries)
	}
}

func TestMirrorsComeFromTheCallerThenTheEnvironmentThenTheSet(t *testing.T) {
	set, f := &fashionMNIST, fashionMNIST.files[0]
	t.Setenv(EnvMirror, "")
	if got := (Download{}).urls(set, f); len(got) != 2 ||
		got[0] != "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/train-images-idx3-ubyte.gz" {
		t.Errorf("the set's own: %q", got)
	}
	t.Setenv(EnvMirror, "http://a/data http://b")
	want := []string{"http://a/data/fashion-mnist/train-images-idx3-ubyte.gz", "http://b/fashion-mnist/train-images-idx3-ubyte.gz"}
	expect.Slice(t, (Download{}).urls(set, f), want, "the environment's")
	expect.Slice(t, (Download{Mirrors: []string{"http://c/"}}).urls(set, f), []string{"http://c/fashion-mnist/train-images-idx3-ubyte.gz"}, "the caller's")
}

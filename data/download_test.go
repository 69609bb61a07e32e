package data

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// mirror serves files and keeps the ranges that it was asked for.
type mirror struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string // "GET /tiny/NAME bytes=5-"
}

// newMirror serves the files of a set, each packed at that level, by serve, or by http.ServeContent where that is nil.
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

// packed returns the files of a set as a mirror that compresses at that level has them.
func packed(t *testing.T, set *published, contents [4][]byte, level int) map[string][]byte {
	files := map[string][]byte{}
	for i, f := range set.files {
		files[f.name+".gz"] = wrapped(t, contents[i], level)
	}
	return files
}

// cutAfter serves n bytes of what was asked for and then drops the connection.
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

// wantComplete checks that dir holds the set and nothing else.
func wantComplete(t *testing.T, set *published, dir string) {
	t.Helper()
	if _, err := set.Load(background, Dirs{dir}, Both); err != nil {
		t.Errorf("what was downloaded cannot be loaded: %v", err)
	}
	entries, _ := os.ReadDir(filepath.Join(dir, set.name))
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".part") {
			t.Errorf("%s was left", e.Name())
		}
	}
}

func TestGetDownloadsAllFilesOnceAndReportsProgress(t *testing.T) {
	set, contents := tiny("tiny")
	files := packed(t, set, contents, gzip.BestCompression)
	m := newMirror(t, files, nil)
	dir := t.TempDir()
	done := map[string]int64{}
	d := Download{Mirrors: []string{m.URL + "/"}, Progress: func(p Progress) {
		if p.Err != nil || p.Done <= done[p.File] || p.Total != int64(len(files[p.File])) || p.Dataset != "tiny" {
			t.Errorf("progress %+v after %d of %d bytes", p, done[p.File], len(files[p.File]))
		}
		done[p.File] = p.Done
	}}
	for range 2 {
		got, err := d.get(background, set, dir)
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range got {
			if f.Path != filepath.Join(dir, "tiny", set.files[i].name+".gz") || f.SHA256 != set.files[i].sha256 {
				t.Errorf("file %d is %+v", i, f)
			}
		}
	}
	for name, b := range files {
		if done[name] != int64(len(b)) {
			t.Errorf("%s: the last report was %d of %d bytes", name, done[name], len(b))
		}
	}
	if len(m.requests) != 4 {
		t.Errorf("requests %q, want one per file: what is there must not be fetched again", m.requests)
	}
	wantComplete(t, set, dir)
}

func TestAnInterruptedDownloadGoesOnByRange(t *testing.T) {
	set, contents := tiny("tiny")
	files := packed(t, set, contents, gzip.BestCompression)
	name := set.files[trainImages].name + ".gz"
	for _, have := range []int{1, 100, len(files[name])} { // the last: all was there but the name
		m := newMirror(t, files, nil)
		dir := t.TempDir()
		write(t, dir, "tiny/"+name+".part", files[name][:have])
		if err := fetch(t, set, dir, m); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("%s bytes=%d-", name, have); m.requests[0] != want || len(m.requests) != 4 {
			t.Errorf("requests %q, want %q and the other three files", m.requests, want)
		}
		wantComplete(t, set, dir)
	}
}

func TestACutConnectionIsResumedWhereItWasCut(t *testing.T) {
	set, contents := tiny("tiny")
	m := newMirror(t, packed(t, set, contents, gzip.BestCompression),
		func(w http.ResponseWriter, r *http.Request, b []byte, _ int) {
			w.Header().Set("ETag", `"v1"`)
			if ifRange := r.Header.Get("If-Range"); r.Header.Get("Range") != "" && ifRange != `"v1"` {
				t.Errorf("a range is asked for with If-Range %q", ifRange)
			}
			cutAfter(w, r, b, 300)
		})
	dir := t.TempDir()
	if err := fetch(t, set, dir, m); err != nil {
		t.Fatal(err)
	}
	name := set.files[trainImages].name + ".gz"
	if want := []string{name, name + " bytes=300-", name + " bytes=600-"}; !slices.Equal(m.requests[:3], want) {
		t.Errorf("requests %q, want %q first", m.requests, want)
	}
	wantComplete(t, set, dir)
}

func TestAFileThatChangesBetweenTwoRequestsIsFetchedAnew(t *testing.T) {
	set, contents := tiny("tiny")
	old := packed(t, set, contents, gzip.NoCompression)
	m := newMirror(t, packed(t, set, contents, gzip.BestCompression),
		func(w http.ResponseWriter, r *http.Request, b []byte, nth int) {
			if nth == 1 {
				w.Header().Set("ETag", `"old"`)
				cutAfter(w, r, old[filepath.Base(r.URL.Path)], 300)
				return
			}
			w.Header().Set("ETag", `"new"`)
			cutAfter(w, r, b, len(b))
		})
	dir := t.TempDir()
	if err := fetch(t, set, dir, m); err != nil {
		t.Fatal(err)
	}
	if len(m.requests) != 5 {
		t.Errorf("requests %q, want one more than files: If-Range makes the mirror send all of the new file", m.requests)
	}
	wantComplete(t, set, dir)
}

func TestAMirrorWithoutRangesSendsTheWholeFileAgain(t *testing.T) {
	set, contents := tiny("tiny")
	files := packed(t, set, contents, gzip.BestCompression)
	m := newMirror(t, files, func(w http.ResponseWriter, _ *http.Request, b []byte, _ int) { w.Write(b) })
	dir := t.TempDir()
	name := set.files[trainImages].name + ".gz"
	write(t, dir, "tiny/"+name+".part", bytes.Repeat([]byte("x"), 2*len(files[name])))
	if err := fetch(t, set, dir, m); err != nil {
		t.Fatal(err)
	}
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

// Mirrors compress differently: what one began cannot be continued by another.
func TestBytesOfAnotherMirrorAreDiscardedAndFetchedOnceMore(t *testing.T) {
	set, contents := tiny("tiny")
	other := packed(t, set, contents, gzip.NoCompression)
	m := newMirror(t, packed(t, set, contents, gzip.BestCompression), nil)
	name := set.files[trainImages].name + ".gz"
	for _, have := range []int{200, len(other[name]) - 1} { // within the mirror's file, and beyond its end
		dir := t.TempDir()
		write(t, dir, "tiny/"+name+".part", other[name][:have])
		if err := fetch(t, set, dir, m); err != nil {
			t.Fatal(err)
		}
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
			if err := fetch(t, set, dir, bad, good); err != nil {
				t.Fatal(err)
			}
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
	var bad *Error
	if !errors.As(err, &bad) || bad.Dataset != "tiny" || strings.Contains(err.Error(), "\n") {
		t.Fatalf("got %v, want an *Error of one line", err)
	}
	for _, want := range []string{"no mirror provides it", missing.URL + "/tiny/", "404 Not Found", other.URL, "wrong size: more than 2368 bytes", gone.URL, "refused"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %q, want %q in it", err, want)
		}
	}
	if entries, _ := os.ReadDir(filepath.Join(dir, "tiny")); len(entries) != 0 {
		t.Errorf("the folder holds %v", entries)
	}
}

func TestFilesThatFailTheirChecksumAreReplaced(t *testing.T) {
	set, contents := tiny("tiny")
	m := newMirror(t, packed(t, set, contents, gzip.BestCompression), nil)
	for _, suffix := range []string{"", ".gz"} {
		dir := t.TempDir()
		write(t, dir, "tiny/"+set.files[testImages].name+suffix, []byte("damaged"))
		if err := fetch(t, set, dir, m); err != nil {
			t.Fatal(err)
		}
		wantComplete(t, set, dir)
	}
}

func TestASilentMirrorIsGivenUpAndACancelledDownloadKeepsWhatItHas(t *testing.T) {
	set, contents := tiny("tiny")
	files := packed(t, set, contents, gzip.BestCompression)
	silent := newMirror(t, files, func(w http.ResponseWriter, r *http.Request, b []byte, _ int) {
		w.Write(b[:200])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	dir := t.TempDir()
	d := Download{Mirrors: []string{silent.URL}, Stall: 50 * time.Millisecond, pause: time.Millisecond}
	if _, err := d.get(background, set, dir); err == nil || !strings.Contains(err.Error(), "silent for 50ms") {
		t.Errorf("a silent mirror gave %v", err)
	}
	ctx, cancel := context.WithCancel(background)
	d.Stall, d.Progress = time.Minute, func(Progress) { cancel() }
	if _, err := d.get(ctx, set, t.TempDir()); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled download gave %v", err)
	}
	if info, err := os.Stat(filepath.Join(dir, "tiny", set.files[0].name+".gz.part")); err != nil || info.Size() == 0 {
		t.Errorf("what had come in was not kept: %v", err)
	}
}

func TestAFolderThatCannotBeWrittenIsAnErrorOfTheFileSystem(t *testing.T) {
	set, contents := tiny("tiny")
	m := newMirror(t, packed(t, set, contents, gzip.BestCompression), nil)
	dir := t.TempDir()
	inTheWay := write(t, dir, "file", nil)
	var disk *fs.PathError
	if err := fetch(t, set, inTheWay, m); !errors.As(err, &disk) {
		t.Errorf("a file in the way of the folder gave %v", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "tiny", set.files[0].name+".gz.part"), 0o755); err != nil {
		t.Fatal(err)
	}
	var bad *Error
	if err := fetch(t, set, dir, m); !errors.As(err, &disk) || errors.As(err, &bad) {
		t.Errorf("a folder in the way of the file gave %v", err)
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
	if got := (Download{}).urls(set, f); !slices.Equal(got, want) {
		t.Errorf("the environment's: %q, want %q", got, want)
	}
	if got := (Download{Mirrors: []string{"http://c/"}}).urls(set, f); !slices.Equal(got, []string{"http://c/fashion-mnist/train-images-idx3-ubyte.gz"}) {
		t.Errorf("the caller's: %q", got)
	}
}

func TestStatusAndVerifyTellMissingFromWrongFromRight(t *testing.T) {
	dirs := Dirs{t.TempDir()}
	for _, s := range List(dirs) {
		want := map[string]Origin{"swimmer": Generated, "bars": Generated, "idx": OwnFiles, "memory": OwnFiles, "npy": OwnFiles, "png": OwnFiles,
			"mnist": Downloaded, "fashion-mnist": Downloaded}[s.Name]
		if s.Origin != want || s.Complete() == (want == Downloaded) || (len(s.Files) == 4) != (want == Downloaded) || s.About == "" {
			t.Errorf("%s: %+v, want %s", s.Name, s, want)
		}
	}
	path := write(t, dirs[0], "mnist/t10k-labels-idx1-ubyte.gz", []byte("damaged"))
	located := mnist.locate(dirs)[testLabels]
	if located.Path != path || located.Bytes != 7 || located.Problem != nil {
		t.Errorf("a file that is there: %+v", located)
	}
	status, err := Verify(background, "mnist", dirs)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"not found", "not found", "not found", "wrong size"} {
		var bad *Error
		if f := status.Files[i]; !errors.As(f.Problem, &bad) || !strings.Contains(f.Problem.Error(), want) {
			t.Errorf("%s: %v, want an *Error with %q", f.Name, f.Problem, want)
		}
	}
	for _, name := range []string{"swimmer", "png", "minst"} {
		if _, err := Verify(background, name, dirs); err == nil {
			t.Errorf("%s was verified", name)
		}
		if _, err := (Download{}).Get(background, name, dirs[0]); err == nil {
			t.Errorf("%s was downloaded", name)
		}
	}
	if got := Published(); !slices.Equal(got, []string{"fashion-mnist", "mnist"}) {
		t.Errorf("published: %q", got)
	}
}

func TestTheRealFilesVerify(t *testing.T) {
	dirs := realData(t)
	for _, name := range Published() {
		status, err := Verify(background, name, dirs)
		if err != nil || !status.Complete() {
			t.Errorf("%s: %v, %v", name, err, status.Problem())
		}
	}
}

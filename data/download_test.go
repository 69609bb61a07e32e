package data

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

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
		fatal.If(t, err)
		for i, f := range got {
			expect.Equal(t, f.Path, filepath.Join(dir, "tiny", set.files[i].name+".gz"), "file", i, f)
			expect.Equal(t, f.SHA256, set.files[i].sha256, "file", i, f)
		}
	}
	for name, b := range files {
		expect.Equal(t, done[name], int64(len(b)), name, "the last report was", done[name], "of", len(b), "bytes")
	}
	expect.Equal(t, len(m.requests), 4, "requests", m.requests, "want one per file: what is there must not be fetched again")
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
		fatal.If(t, fetch(t, set, dir, m))
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
	fatal.If(t, fetch(t, set, dir, m))
	name := set.files[trainImages].name + ".gz"
	expect.Slice(t, m.requests[:3], []string{name, name + " bytes=300-", name + " bytes=600-"}, "requests", m.requests)
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
	fatal.If(t, fetch(t, set, dir, m))
	expect.Equal(t, len(m.requests), 5, "requests", m.requests, "want one more than files: If-Range makes the mirror send all of the new file")
	wantComplete(t, set, dir)
}

func TestFilesThatFailTheirChecksumAreReplaced(t *testing.T) {
	set, contents := tiny("tiny")
	m := newMirror(t, packed(t, set, contents, gzip.BestCompression), nil)
	for _, suffix := range []string{"", ".gz"} {
		dir := t.TempDir()
		write(t, dir, "tiny/"+set.files[testImages].name+suffix, "damaged")
		fatal.If(t, fetch(t, set, dir, m))
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
	d := Download{Mirrors: []string{silent.URL}, Stall: 50 * time.Millisecond, pause: time.Millisecond}
	expect.Error(t, expect.Err(d.get(background, set, t.TempDir())), "silent for 50ms", "a silent mirror gave")
	ctx, cancel := context.WithCancel(background)
	dir := t.TempDir()
	d.Stall, d.Progress = time.Hour, func(Progress) { cancel() }
	expect.Is(t, expect.Err(d.get(ctx, set, dir)), context.Canceled, "a cancelled download gave")
	if info, err := os.Stat(filepath.Join(dir, "tiny", set.files[0].name+".gz.part")); err != nil || info.Size() == 0 {
		t.Errorf("what had come in was not kept: %v", err)
	}
}

func TestAFolderThatCannotBeWrittenIsAnErrorOfTheFileSystem(t *testing.T) {
	set, contents := tiny("tiny")
	m := newMirror(t, packed(t, set, contents, gzip.BestCompression), nil)
	dir := t.TempDir()
	inTheWay := write(t, dir, "file", "")
	var disk *fs.PathError
	if err := fetch(t, set, inTheWay, m); !errors.As(err, &disk) {
		t.Errorf("a file in the way of the folder gave %v", err)
	}
	fatal.If(t, os.MkdirAll(filepath.Join(dir, "tiny", set.files[0].name+".gz.part"), 0o755))
	var bad *Error
	if err := fetch(t, set, dir, m); !errors.As(err, &disk) || errors.As(err, &bad) {
		t.Errorf("a folder in the way of the file gave %v", err)
	}
}

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"testing"
	"time"
)

var (
	files = []entry{{"tessera", 0o755, []byte("binary")}, {"LICENSE", 0o644, []byte("text")}}
	then  = time.Unix(1700000000, 0)
)

func TestArchivesHoldTheirFiles(t *testing.T) {
	var packed bytes.Buffer
	if err := writeTar(&packed, files, then); err != nil {
		t.Fatal(err)
	}
	unzipped, err := gzip.NewReader(&packed)
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewReader(unzipped)
	for _, want := range files {
		h, err := archive.Next()
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(archive)
		if err != nil || h.Name != want.name || h.FileInfo().Mode() != want.mode || !h.ModTime.Equal(then) || !bytes.Equal(got, want.data) {
			t.Errorf("tar: %s %v %v %q (%v), want %+v", h.Name, h.FileInfo().Mode(), h.ModTime, got, err, want)
		}
	}
	if _, err := archive.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("tar: more than %d files (%v)", len(files), err)
	}

	packed.Reset()
	if err := writeZip(&packed, files, then); err != nil {
		t.Fatal(err)
	}
	zipped, err := zip.NewReader(bytes.NewReader(packed.Bytes()), int64(packed.Len()))
	if err != nil || len(zipped.File) != len(files) {
		t.Fatalf("zip: %v", err)
	}
	for i, want := range files {
		f := zipped.File[i]
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err != nil || f.Name != want.name || f.Mode() != want.mode || !f.Modified.Equal(then) || !bytes.Equal(got, want.data) {
			t.Errorf("zip: %s %v %v %q (%v), want %+v", f.Name, f.Mode(), f.Modified, got, err, want)
		}
	}
}

func TestTheSameFilesGiveTheSameArchive(t *testing.T) {
	for name, write := range map[string]func(io.Writer, []entry, time.Time) error{"tar": writeTar, "zip": writeZip} {
		var one, two bytes.Buffer
		if err := errors.Join(write(&one, files, then), write(&two, files, then)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(one.Bytes(), two.Bytes()) {
			t.Errorf("%s: bytes differ", name)
		}
	}
}

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// idx returns an IDX file of n images of 2 x 3 pixels.
func idx(n byte) []byte {
	pixels := make([]byte, int(n)*6)
	for i := range pixels {
		pixels[i] = byte(i)
	}
	return append([]byte{0, 0, 8, 3, 0, 0, 0, n, 0, 0, 0, 2, 0, 0, 0, 3}, pixels...)
}

func TestFirstImages(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	w.Write(idx(100))
	w.Close()
	for name, file := range map[string][]byte{"plain": idx(100), "compressed": packed.Bytes()} {
		got, err := firstImages(file)
		if err != nil {
			t.Fatal(name, err)
		}
		if !bytes.Contains(got, []byte("'shape': (64, 2, 3)")) || !bytes.HasSuffix(got, idx(64)[16:]) || (len(got)-64*6)%64 != 0 {
			t.Errorf("%s: got %q", name, got)
		}
	}
	for name, file := range map[string][]byte{"empty": nil, "labels": {0, 0, 8, 1, 0, 0, 0, 1}, "cut": idx(3)[:20], "half a gzip": packed.Bytes()[:30]} {
		if _, err := firstImages(file); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestImagesOf(t *testing.T) {
	folder := t.TempDir()
	write(filepath.Join(folder, "mnist"), "t10k-images-idx3-ubyte", string(idx(5)))
	if got, err := imagesOf("mnist", []string{t.TempDir(), folder}); err != nil || !bytes.HasSuffix(got, idx(5)[16:]) {
		t.Errorf("got %q, %v", got, err)
	}
	first, err := imagesOf("swimmer", nil)
	second, _ := imagesOf("swimmer", nil)
	if err != nil || !bytes.Equal(first, second) || len(first) < encodedImages*32*32 {
		t.Errorf("generated images differ or are few (%d bytes), %v", len(first), err)
	}
	var absent *noImages
	if _, err := imagesOf("fashion-mnist", []string{folder}); !errors.As(err, &absent) {
		t.Errorf("got %v, want images to be missing", err)
	}
}

// archive returns a tar archive of one file.
func archive(t *testing.T, name, text string) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Name: "apps/", Typeflag: tar.TypeDir, Mode: 0o755}); err != nil {
		t.Fatal(err)
	}
	if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(text))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

func TestExtract(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "base")
	if err := extract(archive(t, "apps/main.go", "package main"), folder); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(folder, "apps", "main.go")); err != nil || string(text) != "package main" {
		t.Errorf("got %q, %v", text, err)
	}
	outside := filepath.Join(t.TempDir(), "base")
	if err := extract(archive(t, "../escaped", "x"), outside); err == nil {
		t.Error("a file outside of the folder: no error")
	}
	if err := extract(strings.NewReader("not a tar archive"), filepath.Join(t.TempDir(), "base")); err == nil {
		t.Error("no archive: no error")
	}
}

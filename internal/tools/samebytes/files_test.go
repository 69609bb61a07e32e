package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"path/filepath"
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

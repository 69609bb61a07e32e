package checkpoint

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

func TestMetadataAreReadWithoutTheTensors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.safetensors")
	expect.Is(t, expect.Err(ReadMetadata(path)), fs.ErrNotExist, "a missing file")
	want := map[string]string{"model": "m", "epoch": "3"}
	b, err := Encode(&File{Metadata: want, Tensors: []Tensor{{Name: "w", Shape: []int{2, 3}, Data: make([]float32, 6)}, {Name: "b", Shape: []int{3}, Data: make([]float32, 3)}}}, nil)
	fatal.If(t, err)
	read := func(b []byte) (map[string]string, error) {
		fatal.If(t, os.WriteFile(path, b, 0o600))
		return ReadMetadata(path)
	}
	got, err := read(b)
	if delete(got, checksumKey); err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	var damaged *Error
	for n := range len(b) {
		if _, err := read(b[:n]); !errors.As(err, &damaged) {
			t.Fatalf("cut to %d of %d bytes: got %v", n, len(b), err)
		}
	}
	if _, err := read(append(b, 0)); !errors.As(err, &damaged) {
		t.Errorf("with a further byte: got %v", err)
	}
	for i := range 8 * 60 { // flips of the header are errors, or change a text; none is a panic
		b[i/8] ^= 1 << (i % 8)
		_, _ = read(b)
		b[i/8] ^= 1 << (i % 8)
	}
}

package data

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// Every format reads what it writes, and refuses every truncation of it. A part of a text is a text, so CSV only has to read it.
func TestEveryFormatReadsWhatItWritesAndRefusesEveryTruncation(t *testing.T) {
	want := []float32{0, 1, 0.2, 0.4, 0.6, 0.8}
	examples := map[string]struct { // of formats that are only read
		file string
		like Source
	}{"safetensors": {"tensors.safetensors", &Files{Kind: "safetensors", Tensor: "acts"}}}
	for _, f := range formats {
		for _, suffix := range f.Suffixes {
			path := filepath.Join(t.TempDir(), "own"+suffix)
			var like Source
			if f.write != nil {
				fatal.If(t, WriteRows(path, "x", []int{1, 3}, want, Rows{}), suffix)
				rows, err := ReadRows(background, path, nil, nil)
				if err != nil || !slices.Equal(rows.Float32(), want) {
					t.Errorf("%s: read %v, %v, want %v", suffix, rows, err, want)
				}
			} else if e, ok := examples[f.Dataset]; ok {
				b, err := os.ReadFile(filepath.Join("testdata", e.file))
				fatal.If(t, err)
				like = e.like
				write(t, filepath.Dir(path), filepath.Base(path), b)
			} else {
				continue
			}
			whole, err := os.ReadFile(path)
			fatal.If(t, err)
			expect.NoError(t, expect.Err(ReadRows(background, path, nil, like)), suffix)
			for n := 0; n < len(whole) && f.Dataset != "csv"; n++ {
				write(t, filepath.Dir(path), filepath.Base(path), whole[:n])
				expect.AnyError(t, expect.Err(ReadRows(background, path, nil, like)), suffix, "the first", n, "of", len(whole), "bytes are read")
			}
		}
	}
}

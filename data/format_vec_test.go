package data

import (
	"bytes"
	"compress/gzip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tessera/internal/fatal"
)

// The first two files are what gensim 4.2 writes.
func TestVectorsOfWordsAreRowsWithNames(t *testing.T) {
	const asText = "3 3\nking 1.5 -2.0 0.1\n\xc3\xa9 1e-09 3.0 4.0\nNA 0.0 0.25 -7.0\n"
	const asFloats = "3 3\nking \x00\x00\xc0?\x00\x00\x00\xc0\xcd\xcc\xcc=\xc3\xa9 _p\x890\x00\x00@@\x00\x00\x80@NA \x00\x00\x00\x00\x00\x00\x80>\x00\x00\xe0\xc0"
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := z.Write([]byte(asFloats))
	fatal.If(t, err)
	fatal.If(t, z.Close())
	values := []float32{1.5, -2, 0.1, 1e-9, 3, 4, 0, 0.25, -7}
	for name, c := range map[string]struct {
		file, content string
		names         string // separated by |; or the problem
		values        []float32
	}{
		"text of gensim":        {"a.vec", asText, "king|é|NA", values},
		"floats of gensim":      {"a.bin", asFloats, "king|é|NA", values},
		"gzipped":               {"a.bin.gz", packed.String(), "king|é|NA", values},
		"spaces at the ends":    {"a.vec", "2 2\r\na 1 2 \r\nb 3 4 \r\n", "a|b", []float32{1, 2, 3, 4}},
		"a word with a space":   {"a.vec", "2 2\n. . 1 2\nb 3 4", ". .|b", []float32{1, 2, 3, 4}},
		"newlines after floats": {"a.bin", "2 1\na \x00\x00\x80?\nb \x00\x00\x00@\n", "a|b", []float32{1, 2}},
		"GloVe":                 {"a.txt", strings.TrimPrefix(asText, "3 3\n"), "king|é|NA", values},

		"fewer words":  {"a.vec", "3 2\na 1 2\nb 3 4\n", "has 2 words, but its first line says 3", nil},
		"more words":   {"a.vec", "1 2\na 1 2\nb 3 4\n", "has more words than the 1", nil},
		"a short line": {"a.vec", "2 2\na 1 2\nb 3\n", "line 3: got 1 values, want a word and 2 values", nil},
		"no number":    {"a.vec", "2 2\na 1 2\nb 3 x\n", "line 3", nil},
		"cut floats":   {"a.bin", asFloats[:len(asFloats)-1], "cut short", nil},
		"claims":       {"a.bin", "1 99999999999999999999\na 1\n", "line 1", nil},
		"a model":      {"a.bin", "\xba\x16\x4f\x2f\x0c\x00", "is a model of fastText", nil},
	} {
		path := filepath.Join(t.TempDir(), c.file)
		write(t, filepath.Dir(path), c.file, []byte(c.content))
		rows, err := ReadRows(background, path, nil, nil)
		switch {
		case c.values == nil && (err == nil || !strings.Contains(err.Error(), c.names)):
			t.Errorf("%s: got the error %v, want %q", name, err, c.names)
		case c.values != nil && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.values != nil && (strings.Join(rows.Names, "|") != c.names || !slices.Equal(rows.Float32(), c.values)):
			t.Errorf("%s: got %q, %v, want %s, %v", name, rows.Names, rows.Float32(), c.names, c.values)
		}
	}
}

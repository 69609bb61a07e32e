package data

import (
	"context"
	"os"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// The same numbers as floats and as bytes are samples in two units, because bytes are divided by 255.
func TestBytesAmongOtherNumbersAreAWarning(t *testing.T) {
	t.Chdir(t.TempDir())
	values := []float32{0, 9, 3, 4, 5, 6}
	scaled := make([]float32, len(values))
	for i, v := range values {
		scaled[i] = v / 255
	}
	fatal.If(t, WriteImages("floats.npy", []int{2}, values))
	fatal.If(t, WriteImages("pixels.npy", []int{2}, scaled))
	fatal.If(t, os.WriteFile("bytes.npy", []byte("\x93NUMPY\x01\x00\x47\x00{'descr': '|u1', 'fortran_order': False, 'shape': (3, 2), }           \n\x00\x09\x03\x04\x05\x06"), 0o600))
	const want = "uint8 values are divided by 255, and the values of the training are from 0 to 9: save all with the same type, for example as float32"
	for _, c := range []struct {
		file string
		most float32
		want string
	}{{"bytes.npy", 9, want}, {"floats.npy", 9, ""}, {"bytes.npy", 1, ""}} {
		rows, err := ReadRows(t.Context(), c.file, []int{2}, &Files{Kind: "npy"})
		fatal.If(t, err)
		expect.Equal(t, strings.Join(rows.Unlike(Seen{Shape: []int{2}, High: c.most}), "; "), c.want, c.file)
	}
	for _, c := range []struct{ train, test, want string }{
		{"floats.npy", "bytes.npy", "and the training samples are from 0 to 9"}, {"bytes.npy", "floats.npy", "and the test samples are from 0 to 9"},
		{"bytes.npy", "pixels.npy", ""}, {"bytes.npy", "bytes.npy", ""}} {
		set, err := Load(context.Background(), &Files{Kind: "npy", File: c.train, Test: c.test}, nil, Need{Train: true, Test: true})
		fatal.If(t, err)
		if notes := strings.Join(set.Notes, "; "); !strings.Contains(notes, c.want) || c.want == "" && strings.Contains(notes, "uint8") {
			t.Errorf("%s and %s: got the notes %q, want %q", c.train, c.test, notes, c.want)
		}
	}
}

func TestASparseMatrixIsRefusedWhereNoValueIsMissing(t *testing.T) {
	t.Chdir(t.TempDir())
	fatal.If(t, os.WriteFile("m.mtx", []byte("%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 5\n2 1 1\n2 2 4\n"), 0o600))
	_, err := ReadRows(t.Context(), "m.mtx", []int{2}, &Files{Kind: "npy"})
	expect.Error(t, err, "m.mtx: cannot be read: has 3 of 4 values, and the training had all: save the matrix as an array, with its zeros")
	rows, err := ReadRows(t.Context(), "m.mtx", []int{2}, &Files{Kind: "triples", Absent: "zero"})
	fatal.If(t, err)
	expect.Slice(t, rows.Raw(), []float32{5, 0, 1, 4}, "where absent entries are 0")
	fatal.If(t, WriteImages("x.npy", []int{2}, []float32{5, 0, 1, 4}))
	_, err = ReadRows(t.Context(), "x.npy", []int{2}, &Files{Kind: "triples", Absent: "zero"})
	expect.Error(t, err, "x.npy: is an array, and the samples of this data set are a sparse matrix; save it by scipy.sparse.save_npz")
}

func TestColumnsBehindThoseOfEntriesAreNamed(t *testing.T) {
	t.Chdir(t.TempDir())
	fatal.If(t, os.WriteFile("w.csv", []byte("cell,g0,g1,g2\na,3,1,7\nb,1,5,8\n"), 0o600))
	for want, keys := range map[string]Files{`rows, columns and values are those of "cell", "g0", "g1"; left out: "g2"`: {}, "": {Row: "cell", Column: "g0", Value: "g1"}} {
		keys.Kind, keys.File, keys.Absent = "triples", "w.csv", "zero"
		set, err := Load(context.Background(), &keys, nil, Need{Train: true})
		fatal.If(t, err)
		if notes := strings.Join(set.Notes, "; "); !strings.Contains(notes, want) || want == "" && notes != "" {
			t.Errorf("got the notes %q, want %q", notes, want)
		}
	}
}

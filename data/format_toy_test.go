package data_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// Two formats of another module: a line of numbers for each sample, and cells between bars.
func init() {
	data.RegisterFormat(data.Format{Dataset: "npz", Sort: data.ArrayFiles, Is: func(start []byte) bool { return bytes.HasPrefix(start, []byte("#numbers")) }, Open: openNumbers})
	data.RegisterFormat(data.Format{Dataset: "csv", Sort: data.CellFiles, Is: func(start []byte) bool { return bytes.HasPrefix(start, []byte("#bars")) }, Open: openBars})
}

func openNumbers(_ context.Context, path string, _ *data.Files) (data.Opened, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return data.Opened{}, err
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")[1:]
	read := func() (values []float64, err error) {
		for _, cell := range strings.Fields(strings.Join(lines, " ")) {
			v, err := strconv.ParseFloat(cell, 64)
			if err != nil {
				return nil, err
			}
			values = append(values, v)
		}
		return values, nil
	}
	return data.OpenedArrays(data.Array{Name: "x", Dims: []int{len(lines), len(strings.Fields(lines[0]))}, Read: read}), nil
}

func openBars(_ context.Context, path string, _ *data.Files) (data.Opened, error) {
	b, err := os.ReadFile(path)
	rows := func() data.RowReader {
		_, text, _ := strings.Cut(string(b), "\n")
		r := csv.NewReader(strings.NewReader(text))
		r.Comma = '|'
		return r
	}
	names, _ := rows().Read()
	return data.OpenedTable(names, rows), err
}

func TestFormatsOfOtherModules(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		source *data.Files
		want   []float32
		labels []int
	}{
		"numbers": {"#numbers\n1 2 3\n4 5.5 6\n", &data.Files{Kind: "npz"}, []float32{1, 2, 3, 4, 5.5, 6}, nil},
		"bars":    {"#bars\nmass|kind|wing\n0.5|wren|2\n7|owl|1\n", &data.Files{Kind: "csv", Labels: "kind", Columns: data.ColumnNames{"w": {"wing"}}}, []float32{0.5, 7}, []int{1, 0}},
	} {
		c.source.File = filepath.Join(t.TempDir(), "file")
		fatal.If(t, os.WriteFile(c.source.File, []byte(c.text), 0o600))
		expect.Equal(t, data.KindOf(c.source.File), c.source.Kind, name, "the data set")
		set, err := data.Load(t.Context(), c.source, nil, data.Both)
		fatal.If(t, err, name)
		if got := set.Train.Float32(); !slices.Equal(got, c.want) || !slices.Equal(set.Train.Labels(), c.labels) || len(set.Files) != 1 {
			t.Errorf("%s: got %v, labels %v, files %v", name, got, set.Train.Labels(), set.Files)
		}
	}
	damaged := &data.Files{Kind: "npz", File: filepath.Join(t.TempDir(), "file")}
	fatal.If(t, os.WriteFile(damaged.File, []byte("#numbers\n1 2 3\n4 5\n"), 0o600))
	expect.Error(t, expect.Err(data.Load(t.Context(), damaged, nil, data.Both)), "the header says 48 bytes", "a line that is cut")
}

package data

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// A glob does not match a column that another key names exactly. An exact name may be given twice.
func TestExactNamesOfColumnsWinOverGlobs(t *testing.T) {
	file := write(t, t.TempDir(), "f.csv", "m0,m1,mask,mkind,more\n1,2,1,0,5\n3,4,0,1,6\n")
	s := &Files{Kind: "csv", File: file, Labels: "mkind", Columns: ColumnNames{ImagesColumn: {"m*"}, "mask": {"mask"}, "rest": {"m*e"}}}
	set, err := s.Load(t.Context(), nil, Need{Train: true, Columns: []string{"mask", "rest"}})
	fatal.If(t, err)
	expect.Slice(t, set.Train.Float32(), []float32{1, 2, 5, 3, 4, 6}, "values")
	all := set.Train.All()
	expect.Slice(t, all["mask"], []float32{1, 0}, all)
	expect.Slice(t, all["rest"], []float32{5, 6}, all)
	s.Columns[ImagesColumn] = []string{"m0", "mask"}
	if set, err = s.Load(t.Context(), nil, Need{Train: true}); err != nil || !slices.Equal(set.Train.Float32(), []float32{1, 1, 3, 0}) {
		t.Errorf("exact names: got %v, %v", set, err)
	}
}

func TestOneHotLeavesOutClassesBeyondTheRow(t *testing.T) {
	images, err := NewFloats([]int{1}, []float32{1, 2, 3}, []int{0, 2, -1})
	fatal.If(t, err)
	got := make([]float32, 6)
	images.OneHot(got, LabelsColumn, []int{0, 1, 2})
	expect.Slice(t, got, []float32{1, 0, 0, 0, 0, 0})
}

// A name or a glob of columns that matches nothing is an error, which names the nearest column and the others.
func TestEveryNameOfColumnsMatchesOne(t *testing.T) {
	file := write(t, t.TempDir(), "f.csv", "width,height,kind\n1,2,1\n3,4,0\n")
	const all = `want "width", "height", "kind"`
	for name, want := range map[string]string{"widht": all + `; did you mean "width"?`, "zzz": all, "z*": all} {
		for _, columns := range []ColumnNames{{ImagesColumn: {"width", name}}, {ImagesColumn: {name}}, {"target": {name}}} {
			s := &Files{Kind: "csv", File: file, Columns: columns}
			if _, err := s.Load(t.Context(), nil, Need{Train: true}); err == nil || !strings.HasSuffix(err.Error(), fmt.Sprintf("has no column %q, %s", name, want)) {
				t.Errorf("%v: got %v", columns, err)
			}
		}
	}
}

// A file for a trained model with a renamed column is an error that names both.
func TestARenamedColumnIsNamed(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "f.csv", "a,b,c\n1,2,3\n")
	write(t, dir, "renamed.csv", "a,B,c\n1,2,3\n")
	s := &Files{Kind: "csv", File: filepath.Join(dir, "f.csv"), Columns: ColumnNames{ImagesColumn: {"a", "b", "c"}}}
	_, err := ReadRows(t.Context(), filepath.Join(dir, "renamed.csv"), []int{3}, InOrder(s, []string{"a", "b", "c"}))
	expect.Error(t, err, `got 2 columns of values, want 3; missing: "b"; unknown to the training: "B"`)
}

// A file without a byte is still of the kind that its name says, and the error says that it is empty.
func TestAnEmptyFileIsSaidToBeEmpty(t *testing.T) {
	for kind, load := range map[string]func(file string) Source{
		"npz":         func(file string) Source { return &Files{Kind: "npz", File: file} },
		"safetensors": func(file string) Source { return &Files{Kind: "safetensors", File: file} },
		"npy":         func(file string) Source { return &Files{Kind: "npy", Images: file} },
		"idx":         func(file string) Source { return &Files{Kind: "idx", Images: file} },
		"csv":         func(file string) Source { return &Files{Kind: "csv", File: file} },
	} {
		file := write(t, t.TempDir(), "f."+kind, "")
		expect.Equal(t, KindOf(file), kind, file, "the kind")
		expect.Error(t, expect.Err(load(file).Load(t.Context(), nil, Both)), "is empty", kind)
	}
}

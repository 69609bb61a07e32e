package data

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A glob does not match a column that another key names exactly. An exact name may be given twice.
func TestExactNamesOfColumnsWinOverGlobs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f.csv")
	if err := os.WriteFile(file, []byte("m0,m1,mask,mkind,more\n1,2,1,0,5\n3,4,0,1,6\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &CSV{Tables: Tables{File: file, Labels: "mkind"}, Columns: ColumnNames{ImagesColumn: {"m*"}, "mask": {"mask"}, "rest": {"m*e"}}}
	set, err := s.Load(t.Context(), nil, Need{Train: true, Columns: []string{"mask", "rest"}})
	if err != nil {
		t.Fatal(err)
	}
	if want := []float32{1, 2, 5, 3, 4, 6}; !slices.Equal(set.Train.Float32(), want) {
		t.Errorf("values: got %v, want %v", set.Train.Float32(), want)
	}
	all := set.Train.All()
	if !slices.Equal(all["mask"], []float32{1, 0}) || !slices.Equal(all["rest"], []float32{5, 6}) {
		t.Errorf("got %v", all)
	}
	s.Columns[ImagesColumn] = []string{"m0", "mask"}
	if set, err = s.Load(t.Context(), nil, Need{Train: true}); err != nil || !slices.Equal(set.Train.Float32(), []float32{1, 1, 3, 0}) {
		t.Errorf("exact names: got %v, %v", set, err)
	}
}

func TestOneHotLeavesOutClassesBeyondTheRow(t *testing.T) {
	images, err := NewFloats([]int{1}, []float32{1, 2, 3}, []int{0, 2, -1})
	if err != nil {
		t.Fatal(err)
	}
	got := make([]float32, 6)
	images.OneHot(got, LabelsColumn, []int{0, 1, 2})
	if want := []float32{1, 0, 0, 0, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

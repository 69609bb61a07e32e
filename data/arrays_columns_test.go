package data

import (
	"encoding/binary"
	"fmt"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
)

func TestColumnsOfArraysAreFilesOfTheirOwn(t *testing.T) {
	dir := t.TempDir()
	file := func(name, descr, shape string, values any) string {
		return write(t, dir, name, npyBytes(descr, "False", shape, binary.LittleEndian, values))
	}
	keys := Files{
		Kind:        "npy",
		Images:      file("x.npy", "|u1", "(2, 3)", []byte{0, 255, 0, 51, 1, 2}),
		TestImages:  file("tx.npy", "|u1", "(1, 3)", []byte{1, 2, 3}),
		Columns:     ColumnNames{"tokens": {file("t.npy", "<i8", "(2, 2)", []int64{7, 1, 0, 4})}, "length": {file("n.npy", "<i4", "(2,)", []int32{1, 2})}, "unread": {"missing.npy"}},
		TestColumns: ColumnNames{"tokens": {file("tt.npy", "<i8", "(1, 2)", []int64{3, 3})}, "length": {file("tn.npy", "<i4", "(1,)", []int32{2})}, "unread": {"missing.npy"}},
	}
	for name, s := range map[string]Source{"idx": as("idx", keys), "npy": as("npy", keys)} {
		fatal.If(t, s.(interface{ Check() error }).Check())
		set, err := s.Load(t.Context(), nil, Both.WithColumns([]string{"length", "tokens"}))
		fatal.If(t, err)
		if got := fmt.Sprint(drawnOf(set.Train, "tokens", 1, 0), drawnOf(set.Train, "length", 0, 1), drawnOf(set.Test, "tokens", 0)); got != "[0 4 7 1] [1 2] [3 3]" || len(set.Files) != 6 {
			t.Errorf("%s: the columns are %s of %d files", name, got, len(set.Files))
		}
		texts := lists.Map(ColumnsOf(s, nil), func(c Column) string { return fmt.Sprint(c.Name, c.Shape, c.Type) })
		expect.Slice(t, texts, []string{"length[]whole", "tokens[2]whole", "unread[]"}, name)
	}
	for want, edit := range map[string]func(a *Files){
		"the test samples need a file of the column":         func(a *Files) { a.TestColumns = ColumnNames{"tokens": {"x"}} },
		"is no column of the training samples":               func(a *Files) { a.TestColumns = ColumnNames{"other": {"x"}} },
		"test_columns: is given without test samples":        func(a *Files) { a.TestImages, a.TestLabels = "", "" },
		"images: the file has the key images":                func(a *Files) { a.TestImages, a.TestColumns, a.Columns = "", nil, ColumnNames{"images": {"x"}} },
		"got 2 names, want that of one file":                 func(a *Files) { a.TestImages, a.TestColumns, a.Columns = "", nil, ColumnNames{"z": {"x", "y"}} },
		"observed: is the name of a column of missing or hi": func(a *Files) { a.TestImages, a.TestColumns, a.Columns = "", nil, ColumnNames{"observed": {"x"}} },
	} {
		wrong := keys
		edit(&wrong)
		expect.Error(t, wrong.Check(), want)
	}
	for want, edit := range map[string]func(a *Files){
		"want 2 samples first": func(a *Files) { a.Columns = ColumnNames{"tokens": a.TestColumns["tokens"]} },
		"missing.npy":          func(a *Files) { a.Columns = ColumnNames{"tokens": {"missing.npy"}} },
		"want whole and []": func(a *Files) {
			a.Columns = ColumnNames{"tokens": a.Columns["length"]}
		},
	} {
		wrong := keys
		edit(&wrong)
		expect.Error(t, expect.Err((as("npy", wrong)).Load(t.Context(), nil, Both.WithColumns([]string{"tokens"}))), want)
	}
}

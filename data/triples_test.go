package data

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// loadTriples loads a sparse matrix.
func loadTriples(t *testing.T, s *Files) *Images {
	t.Helper()
	set, err := Load(background, s, nil, Both)
	fatal.If(t, err)
	return set.Train
}

// entriesOf returns the entries of all rows.
func entriesOf(m *Images) (columns [][]int32, values [][]float32) {
	for i := range m.Len() {
		c, v := m.Entries(i)
		columns, values = append(columns, c), append(values, v)
	}
	return columns, values
}

// All layouts of SciPy give the same matrix. A sample is a row with missing entries.
func TestSciPysLayoutsAreOneMatrix(t *testing.T) {
	wantColumns := [][]int32{{1, 3}, {2}, {0, 2}, {1, 4}}
	wantValues := [][]float32{{1, -3}, {4}, {2, 5.25}, {6, 0.5}}
	for _, layout := range []string{"coo", "csr", "csc"} {
		s := &Files{Kind: "triples", File: "testdata/sparse_" + layout + ".npz", Empty: "refuse"}
		if shape, ok := s.Shape(nil); !ok || !reflect.DeepEqual(shape, []int{5}) {
			t.Errorf("%s: shape %v, %v", layout, shape, ok)
		}
		expect.Equal(t, KindOf(s.File), "triples", layout)
		m := loadTriples(t, s)
		columns, values := entriesOf(m)
		if !reflect.DeepEqual(columns, wantColumns) || !reflect.DeepEqual(values, wantValues) {
			t.Errorf("%s: got %v and %v", layout, columns, values)
		}
		row, mask := make([]float32, 10), make([]float32, 10)
		m.Batch(row, []int{2, 0})
		m.Gather(mask, ObservedColumn, []int{2, 0})
		if !reflect.DeepEqual(row, []float32{2, 0, 5.25, 0, 0, 0, 1, 0, -3, 0}) || !reflect.DeepEqual(mask, []float32{1, 0, 1, 0, 0, 0, 1, 0, 1, 0}) {
			t.Errorf("%s: rows %v, observed %v", layout, row, mask)
		}
		if low, high := m.Range(); low != -3 || high != 6 {
			t.Errorf("%s: range %v to %v", layout, low, high)
		}
	}
	if _, err := Load(background, &Files{Kind: "triples", File: "testdata/sparse_empty.npz", Empty: "refuse"}, nil, Both); err == nil || !strings.Contains(err.Error(), "row 1 has no entry") ||
		!strings.Contains(err.Error(), "column 0 has no entry") {
		t.Errorf("an empty row and column: %v", err)
	}
	m := loadTriples(t, &Files{Kind: "triples", File: "testdata/sparse_empty.npz", Empty: "drop"})
	columns, _ := entriesOf(m)
	if !reflect.DeepEqual(columns, [][]int32{{0}, {0, 1}}) || !reflect.DeepEqual(m.RowNames(), []string{"0", "2"}) || !reflect.DeepEqual(m.ValueNames(), []string{"1", "2"}) {
		t.Errorf("dropped: %v, %q, %q", columns, m.RowNames(), m.ValueNames())
	}
}

// Rows and columns of a .csv file may have any names in any order. Whole numbers are sorted as numbers.
func TestTriplesOfACSVFileHaveNames(t *testing.T) {
	path := write(t, t.TempDir(), "ratings.csv", "when;user;film;stars\r\n1;10;Alien;4\r\n2;9;\"Sense; Sensibility\";5\r\n3;10;Zodiac;1.5\r\n4;9;Alien; 3\r\n")
	m := loadTriples(t, &Files{Kind: "triples", File: path, Row: "user", Column: "film", Value: "stars"})
	columns, values := entriesOf(m)
	if !reflect.DeepEqual(columns, [][]int32{{0, 1}, {0, 2}}) || !reflect.DeepEqual(values, [][]float32{{3, 5}, {4, 1.5}}) {
		t.Errorf("got %v and %v", columns, values)
	}
	if !reflect.DeepEqual(m.RowNames(), []string{"9", "10"}) || !reflect.DeepEqual(m.ValueNames(), []string{"Alien", "Sense; Sensibility", "Zodiac"}) {
		t.Errorf("names %q and %q", m.RowNames(), m.ValueNames())
	}
	if sub := m.Subset([]int{1}); !reflect.DeepEqual(sub.RowNames(), []string{"10"}) {
		t.Errorf("subset: %q", sub.RowNames())
	}
	pairs := write(t, t.TempDir(), "pairs.csv", "film,user\nAlien,9\nZodiac,77\n")
	p, err := ReadPairs(background, pairs, &Files{Kind: "triples", Row: "user", Column: "film", Value: "stars"})
	if err != nil || !reflect.DeepEqual(p, &Pairs{Rows: []string{"9", "77"}, Columns: []string{"Alien", "Zodiac"}, Lines: []int{2, 3}}) {
		t.Errorf("pairs: %+v, %v", p, err)
	}
}

// Each entry is hidden with the given probability, depending on the seed. Hidden and other entries together are all entries.
func TestEntriesAreHiddenBySeed(t *testing.T) {
	const n, width = 300, 20
	starts, columns, values := []int{0}, []int32(nil), []float32(nil)
	for i := range n {
		for j := i % 2; j < width; j += 2 {
			columns, values = append(columns, int32(j)), append(values, float32(1+i*width+j))
		}
		starts = append(starts, len(columns))
	}
	m, err := NewEntries(starts, columns, values, width)
	fatal.If(t, err)
	hide := func(seed uint64) *Images { return (&Set{Train: m}).hiding(Selection{Hide: 0.25}, seed).Train }
	hidden, again, other := hide(3), hide(3), hide(4)
	held := 0
	for i := range n {
		c, v := hidden.Entries(i)
		h, w := hidden.HeldOut(i)
		all := map[int32]float32{}
		for k := range c {
			all[c[k]] = v[k]
		}
		for k := range h {
			all[h[k]] = w[k]
		}
		held += len(h)
		wantColumns, wantValues := m.Entries(i)
		if len(all) != len(wantColumns) || len(c)+len(h) != len(wantColumns) {
			t.Fatalf("row %d: %v and %v", i, c, h)
		}
		for k, j := range wantColumns {
			if all[j] != wantValues[k] {
				t.Fatalf("row %d, column %d: got %v, want %v", i, j, all[j], wantValues[k])
			}
		}
	}
	if share := float64(held) / float64(len(values)); share < 0.22 || share > 0.28 {
		t.Errorf("%v of the entries are hidden, want about 0.25", share)
	}
	if !reflect.DeepEqual(hidden.entries, again.entries) || reflect.DeepEqual(hidden.entries, other.entries) {
		t.Error("what is hidden does not depend on the seed alone")
	}
	row := map[string][]float32{}
	for _, name := range []string{ImagesColumn, ObservedColumn, HeldOutColumn, CompleteColumn} {
		row[name] = make([]float32, width)
		hidden.Gather(row[name], name, []int{7})
	}
	for j := range width {
		complete, seen, held := row[CompleteColumn][j], row[ObservedColumn][j], row[HeldOutColumn][j]
		if seen+held != float32(j%2) || row[ImagesColumn][j] != complete*seen || (complete != 0) != (j%2 == 1) {
			t.Errorf("column %d: image %v, complete %v, observed %v, held out %v", j, row[ImagesColumn][j], complete, seen, held)
		}
	}
}

// The error for an invalid file contains the location.
func TestDamagedTriplesAreRefused(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ text, want string }{
		"twice":       {"u,v,x\na,b,1\nc,b,2\na,b,3\n", `line 4: row "a", column "b" is given a second time, first in line 2`},
		"no number":   {"u,v,x\na,b,1\nc,b,two\n", `line 3: value: got "two", want a finite number`},
		"NaN":         {"u,v,x\na,b,NaN\n", `line 2: value: got "NaN"`},
		"empty cell":  {"u,v,x\na,b,1\nc,,3\n", `line 3, column "v": is empty`},
		"short line":  {"u,v,x\na,b,1\nc,b\n", "line 3 has 2 cells, want 3"},
		"two columns": {"u,v\na,b\n", "has 2 columns"},
		"no lines":    {"u,v,x\n", "has no entries"},
		"no header":   {"3,4,1\n1,2,3\n", "the first line holds numbers"},
		"empty":       {"", "is empty"},
	} {
		path := write(t, dir, "t.csv", []byte(c.text))
		_, err := Load(background, &Files{Kind: "triples", File: path}, nil, Both)
		expect.As[*Error](t, err, c.want, name)
		expect.Error(t, err, path, name)
	}
	path := write(t, dir, "named.csv", "u,v,x\na,b,1\n")
	expect.Error(t, expect.Err(Load(background, &Files{Kind: "triples", File: path, Row: "user"}, nil, Both)), `has no column "user"`, "an unknown column")
	expect.AnyError(t, (&Files{Kind: "triples", File: path, Row: "u", Column: "u"}).Check(), "one column for two roles was accepted")
	ended, cancel := context.WithCancel(background)
	cancel()
	expect.Is(t, expect.Err(Load(ended, &Files{Kind: "triples", File: path}, nil, Both)), context.Canceled, "cancelled")
}

// For every damaged .npz file, reading returns either an error or the same matrix, and never panics.
func TestDamagedSparseFilesAreRefused(t *testing.T) {
	array := func(descr string, dims string, b ...byte) []byte {
		text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n", descr, dims)
		return append(append([]byte(npyMagic+"\x01\x00"), byte(len(text)), 0), append([]byte(text), b...)...)
	}
	whole := func(values ...byte) []byte { // of int32
		b := make([]byte, 0, 4*len(values))
		for _, v := range values {
			b = append(b, v, 0, 0, 0)
		}
		return b
	}
	good := map[string][]byte{
		"format.npy": array("|S3", "()", 'c', 'o', 'o'), "shape.npy": array("<i4", "(2,)", whole(2, 3)...),
		"row.npy": array("<i4", "(3,)", whole(0, 1, 1)...), "col.npy": array("<i4", "(3,)", whole(0, 1, 2)...),
		"data.npy": array("|u1", "(3,)", 7, 8, 9),
	}
	load := func(change string, b []byte) error {
		files := map[string][]byte{}
		for name, content := range good {
			files[name] = content
		}
		files[change] = b
		if b == nil {
			delete(files, change)
		}
		var archive bytes.Buffer
		z := zip.NewWriter(&archive)
		for name, content := range files {
			w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
			if err == nil {
				_, err = w.Write(content)
			}
			fatal.If(t, err)
		}
		fatal.If(t, z.Close())
		path := write(t, t.TempDir(), "m.npz", archive.Bytes())
		_, err := Load(background, &Files{Kind: "triples", File: path, Empty: "refuse"}, nil, Both)
		return err
	}
	fatal.If(t, load("data.npy", good["data.npy"]))
	for name, c := range map[string]struct {
		change string
		b      []byte
		want   string
	}{
		"row out of range":    {"row.npy", array("<i4", "(3,)", whole(0, 2, 1)...), `array "row", entry 1: got 2, want 0 to 1`},
		"column out of range": {"col.npy", array("<i4", "(3,)", whole(0, 1, 3)...), `array "col", entry 2: got 3, want 0 to 2`},
		"given twice":         {"col.npy", array("<i4", "(3,)", whole(0, 1, 1)...), "column 2 has no entry"},
		"twice":               {"shape.npy", array("<i4", "(2,)", whole(2, 2)...), "entry 2: got 2, want 0 to 1"},
		"short":               {"row.npy", array("<i4", "(2,)", whole(0, 1)...), `array "row": got 2 numbers, want 3`},
		"no format":           {"format.npy", nil, `has no array "format"`},
		"other format":        {"format.npy", array("|S3", "()", 'd', 'i', 'a'), "want coo, csr or csc"},
		"no rows":             {"row.npy", nil, `has no array "row"`},
		"floats as indices":   {"row.npy", array("<f4", "(3,)", whole(0, 1, 1)...), `array "row": got f4`},
		"infinite":            {"data.npy", array("<f4", "(3,)", 0, 0, 0, 0, 0, 0, 0x80, 0x7f, 0, 0, 0, 0), "entry 1 (row 1, column 1): got +Inf"},
		"cut":                 {"data.npy", array("<f4", "(3,)", 0, 0, 0, 0), "the header says 12 bytes follow it, the file has 4"},
		"huge shape":          {"shape.npy", array("<i4", "(2,)", 0, 0, 0, 64, 3, 0, 0, 0), "leave out the empty rows"},
		"three axes":          {"shape.npy", array("<i4", "(3,)", whole(2, 3, 1)...), "want two numbers"},
	} {
		var bad *Error
		if err := load(c.change, c.b); !errors.As(err, &bad) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	good["col.npy"] = array("<i4", "(4,)", whole(0, 1, 2, 1)...)
	good["row.npy"] = array("<i4", "(4,)", whole(0, 1, 1, 1)...)
	expect.Error(t, load("data.npy", array("|u1", "(4,)", 7, 8, 9, 9)), "row 1, column 1 is given twice, by the entries 1 and 3", "twice")
	file, err := os.ReadFile("testdata/sparse_csr.npz")
	fatal.If(t, err)
	path := filepath.Join(t.TempDir(), "damaged.npz")
	want := loadTriples(t, &Files{Kind: "triples", File: "testdata/sparse_csr.npz"})
	for i := range file {
		for _, b := range [][]byte{file[:i], append(append(append([]byte(nil), file[:i]...), file[i]^0x41), file[i+1:]...)} {
			fatal.If(t, os.WriteFile(path, b, 0o600))
			set, err := Load(background, &Files{Kind: "triples", File: path}, nil, Both)
			if _, ok := errors.AsType[*Error](err); err != nil && !ok {
				t.Fatalf("byte %d: %v is no *Error", i, err)
			}
			if err == nil && !reflect.DeepEqual(set.Train.entries, want.entries) {
				t.Fatalf("byte %d: another matrix was read", i)
			}
		}
	}
}

// With absent = "zero" the samples are complete, rows and columns without an entry are rows and columns of zeros, and a packed
// set is equal.
func TestAbsentEntriesAreZeroIfDeclared(t *testing.T) {
	s := &Files{Kind: "triples", File: "testdata/sparse_empty.npz", Empty: refuseEmpty, Absent: absentZero}
	set, err := Load(background, s, nil, Both)
	fatal.If(t, err)
	var packed bytes.Buffer
	fatal.If(t, set.Pack(&packed))
	again, err := Unpack(packed.Bytes())
	fatal.If(t, err)
	for name, m := range map[string]*Images{"loaded": set.Train, "unpacked": again.Train, "all zeros kept": loadTriples(t, &Files{Kind: "triples", File: "testdata/sparse_empty.npz", Empty: dropEmpty}).WithZeros()} {
		if m.Holed() || !m.Zeros() {
			t.Errorf("%s: entries are missing", name)
		}
		mask := make([]float32, m.Pixels())
		m.observedRow(mask, 0)
		if slices.Contains(mask, 0) {
			t.Errorf("%s: observed %v", name, mask)
		}
		if low, _ := m.Range(); low != 0 {
			t.Errorf("%s: the least value is %v", name, low)
		}
		sums := 0.0
		m.eachValue(func(_ int, v float64) { sums++ })
		expect.Equal(t, int(sums), m.Len()*m.Pixels(), name, sums, "values")
	}
	if m := set.Train; m.Len() != 3 || m.Pixels() != 3 {
		t.Errorf("%d rows of %d values, want 3 of 3", m.Len(), m.Pixels())
	}
	if hidden := set.hiding(Selection{Hide: 0.99}, 1).Train; !hidden.Holed() || hidden.Zeros() {
		t.Error("hidden entries are not missing")
	}
}

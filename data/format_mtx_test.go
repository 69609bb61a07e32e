package data

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// The values are those of scipy.io.mmread(path).toarray().
func TestMatrixMarketFilesAreTheirMatrices(t *testing.T) {
	for text, want := range map[string][][]float32{
		"%%MatrixMarket matrix coordinate real general\n% genes\n\n2 3 4\n1 1 1.5\n2 3 -2e-3\n1 3 0.1\n2 1 7\n": {{1.5, 0, 0.1}, {7, 0, -0.002}},
		"%%MatrixMarket matrix coordinate integer symmetric\n3 3 4\n1 1 4\n2 1 -5\n3 2 6\n3 3 9\n":              {{4, -5, 0}, {-5, 0, 6}, {0, 6, 9}},
		"%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 2\n2 1\n":                                   {{0, 1}, {1, 0}},
		"%%MatrixMarket MATRIX Coordinate Real Skew-Symmetric\n2 2 1\n2 1 3\n":                                  {{0, -3}, {3, 0}},
		"%%MatrixMarket matrix coordinate double general\r\n2 3 2\r\n1 1 1\r\n2 3 6\r\n":                        {{1, 0, 0}, {0, 0, 6}},
		"%%MatrixMarket matrix coordinate integer general\n3 2 1\n2 2 12\n":                                     {{0, 0}, {0, 12}, {0, 0}},
	} {
		for name, b := range map[string][]byte{"m.mtx": []byte(text), "m.mtx.gz": gzipped(t, []byte(text))} {
			path := write(t, t.TempDir(), name, b)
			expect.Equal(t, KindOf(path), "triples", name, "the data set")
			set, err := Load(t.Context(), &Files{Kind: "triples", File: path, Absent: absentZero}, nil, Both)
			if err != nil {
				t.Errorf("%q: %v", text, err)
				continue
			}
			var got [][]float32
			for i := range set.Train.Len() {
				row := make([]float32, set.Train.Pixels())
				set.Train.Batch(row, []int{i})
				got = append(got, row)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%q: got %v, want %v", text, got, want)
			}
		}
	}
}

// The matrix of 10x, genes by cells, has the samples of scipy.io.mmread(path).T, and names from its files; another file without names has the columns in their order.
func TestNamesOfMatricesAreReadFromFiles(t *testing.T) {
	dir := t.TempDir()
	matrix := write(t, dir, "matrix.mtx", "%%MatrixMarket matrix coordinate integer general\n4 3 4\n1 1 5\n4 1 2\n2 2 3\n1 3 1\n")
	write(t, dir, "features.tsv.gz", gzipped(t, []byte("E1\tActb\tGene Expression\r\nE2\tTbce\tGene Expression\r\nE3\tXist\tGene Expression\r\nE4\tTbce\tGene Expression\r\n")))
	write(t, dir, "barcodes.tsv", "AA-1\nAC-1\nAG-1\n")
	write(t, dir, "twice.tsv", "a\nb\na\nc\n")
	write(t, dir, "blank.tsv", "a\n\nb\nc\n")
	write(t, dir, "t.csv", "r,c,v\na,b,1\n")
	of := func(genes, cells string, change func(*Files)) *Files {
		f := &Files{Kind: "triples", File: matrix, Absent: absentZero, Transpose: true, RowNames: cells, ColNames: genes}
		for _, path := range []*string{&f.RowNames, &f.ColNames} {
			if *path != "" {
				*path = filepath.Join(dir, *path)
			}
		}
		if change != nil {
			change(f)
		}
		return f
	}
	set, err := Load(t.Context(), of("features.tsv.gz", "barcodes.tsv", nil), nil, Both)
	fatal.If(t, err)
	genes := []string{"Actb", "Tbce (E2)", "Xist", "Tbce (E4)"}
	expect.Slice(t, set.Train.Float32(), []float32{5, 0, 0, 2, 0, 3, 0, 0, 1, 0, 0, 0})
	if got := set.Train.ValueNames(); !slices.Equal(got, genes) || !slices.Equal(set.Train.RowNames(), []string{"AA-1", "AC-1", "AG-1"}) || len(set.Files) != 3 {
		t.Errorf("got the names %q and %q, the files %v", got, set.Train.RowNames(), set.Files)
	}
	dropped, err := Load(t.Context(), of("features.tsv.gz", "", func(f *Files) { f.Empty = dropEmpty }), nil, Both)
	fatal.If(t, err)
	expect.Slice(t, dropped.Train.ValueNames(), []string{"Actb", "Tbce (E2)", "Tbce (E4)"}, "without the empty column")
	other := write(t, dir, "other.mtx", "%%MatrixMarket matrix coordinate integer general\n4 1 1\n3 1 7\n")
	rows, err := ReadRows(t.Context(), other, []int{4}, InOrder(of("features.tsv.gz", "barcodes.tsv", nil), genes))
	fatal.If(t, err)
	expect.Slice(t, rows.Float32(), []float32{0, 0, 7, 0}, "another file")
	for _, layout := range []string{"coo", "csr", "csc"} { // of which SciPy's m.T.toarray() is the transposed matrix
		f := &Files{Kind: "triples", File: "testdata/sparse_" + layout + ".npz", Absent: absentZero}
		plain, err := Load(t.Context(), f, nil, Both)
		fatal.If(t, err)
		f.Transpose = true
		turned, err := Load(t.Context(), f, nil, Both)
		fatal.If(t, err)
		x, y, rows, columns := plain.Train.Float32(), turned.Train.Float32(), plain.Train.Len(), plain.Train.Pixels()
		for k, v := range y {
			if i, j := k%rows, k/rows; len(y) != len(x) || v != x[i*columns+j] {
				t.Errorf("%s: row %d, column %d: got %v", layout, j, i, v)
			}
		}
	}
	for want, f := range map[string]*Files{
		"barcodes.tsv: got 3 names, want 4, one for each column of ":          of("barcodes.tsv", "", nil),
		"features.tsv.gz: got 4 names, want 3, one for each column of ":       of("features.tsv.gz", "", func(f *Files) { f.Transpose = false }),
		`twice.tsv: cannot be read: line 3: got the name "a" of line 1 again`: of("twice.tsv", "", nil),
		"blank.tsv: cannot be read: line 2: has no name":                      of("blank.tsv", "", nil),
		"none.tsv: not found": of("none.tsv", "", nil),
		"but row_names, column_names or transpose is given; leave these out": of("features.tsv.gz", "", func(f *Files) { f.File = filepath.Join(dir, "t.csv") }),
	} {
		expect.Error(t, expect.Err(Load(t.Context(), f, nil, Both)), want)
	}
}

// A further file has the columns of column_names by their names if it has as many as that file, else those of the training in their order: also
// names that are numbers, and after columns without an entry were left out.
func TestFurtherMatricesHaveTheNamesOfTheTraining(t *testing.T) {
	const head = "%%MatrixMarket matrix coordinate integer general\n"
	dir := t.TempDir()
	matrix := write(t, dir, "matrix.mtx", []byte(head+"2 4 4\n1 1 5\n1 4 2\n2 3 3\n2 1 1\n")) // column 2 is empty
	whole := write(t, dir, "whole.mtx", []byte(head+"1 4 2\n1 2 9\n1 3 7\n"))
	chosen := write(t, dir, "chosen.mtx", []byte(head+"1 3 1\n1 2 7\n"))
	for _, names := range [][]string{{"g4", "g3", "g2", "g1"}, {"4", "3", "2", "1"}, {"0", "1", "2", "3"}} {
		for _, absent := range []string{absentZero, absentMissing} {
			f := &Files{Kind: "triples", File: matrix, Absent: absent, Empty: dropEmpty, ColNames: write(t, dir, "names.txt", []byte(strings.Join(names, "\n")))}
			set, err := Load(t.Context(), f, nil, Both)
			fatal.If(t, err)
			like := InOrder(f, set.Train.ValueNames())
			for path, want := range map[string][]float32{matrix: {5, 0, 2, 1, 3, 0}, whole: {0, 7, 0}, chosen: {0, 7, 0}} {
				rows, err := ReadRows(t.Context(), path, []int{3}, like)
				if err != nil || !slices.Equal(rows.Float32(), want) {
					t.Errorf("%q, %s, %s: got %v, %v, want %v", names, absent, filepath.Base(path), rows, err, want)
					continue
				}
				if left := strings.Join(rows.Notes, "\n"); strings.Contains(left, fmt.Sprintf("left out: %q", names[1])) != (path == whole) || path != whole && left != "" {
					t.Errorf("%q, %s, %s: got the notes %q", names, absent, filepath.Base(path), left)
				}
			}
		}
	}
}

// A further matrix in another folder has the names in the files beside it, as 10x writes them: also in another order, and gzipped.
func TestNamesBesideAFurtherMatrixAreItsNames(t *testing.T) {
	const head = "%%MatrixMarket matrix coordinate integer general\n"
	training, further, bare := t.TempDir(), t.TempDir(), t.TempDir()
	f := &Files{Kind: "triples", File: write(t, training, "matrix.mtx", []byte(head+"3 2 3\n1 1 5\n2 2 2\n3 1 3\n")), Absent: absentZero, Transpose: true,
		ColNames: write(t, training, "features.tsv", "1\ta\n2\tb\n3\tc\n"), RowNames: write(t, training, "barcodes.tsv", "AA\nCC\n")}
	set, err := Load(t.Context(), f, nil, Both)
	fatal.If(t, err)
	matrix := []byte(head + "2 1 2\n1 1 7\n2 1 9\n")
	path := write(t, further, "matrix.mtx", matrix)
	write(t, further, "features.tsv.gz", gzipped(t, []byte("3\tc\n1\ta\n")))
	write(t, further, "barcodes.tsv", "GG\n")
	rows, err := ReadRows(t.Context(), path, []int{3}, InOrder(f, set.Train.ValueNames()))
	fatal.If(t, err)
	expect.Slice(t, rows.Float32(), []float32{9, 0, 7}, "a, b, c")
	expect.Slice(t, rows.Names, []string{"GG"}, "names")
	expect.Contains(t, strings.Join(rows.Notes, ""), `lacks columns of the training, which count as without entries: "b"`)
	rows, err = ReadRows(t.Context(), write(t, bare, "matrix.mtx", []byte(head+"3 1 1\n2 1 4\n")), []int{3}, InOrder(f, set.Train.ValueNames()))
	fatal.If(t, err)
	expect.Slice(t, rows.Float32(), []float32{0, 4, 0}, "in the order of the training")
	expect.Contains(t, strings.Join(rows.Notes, ""), "no file beside it, features.tsv, has their names")
	write(t, further, "features.tsv.gz", gzipped(t, []byte("3\tc\n")))
	expect.Error(t, expect.Err(ReadRows(t.Context(), path, []int{3}, InOrder(f, set.Train.ValueNames()))), "got 1 names, want 2, one for each column of ")
}

func TestDamagedMatrixMarketFilesAreRefused(t *testing.T) {
	const head = "%%MatrixMarket matrix coordinate real general\n"
	for text, want := range map[string]string{
		"%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 2 3\n": "line 1: got",
		"%%MatrixMarket vector coordinate real general\n1 1 1\n1 1 2\n":      "line 1: got",
		head + "2 2\n":                     "has no entries",
		head + "2 2 2\n1 1 1\n":            "line 4: is cut short",
		head + "2 2 1\n1 1 1\n2 2 1\n":     "line 4: has more entries than 1",
		head + "2 2 1\n0 1 1\n":            `line 3: got "0", want a whole number from 1`,
		head + "2 2 1\n1 3 1\n":            `line 3: got "1 3 1", want an entry of 2 rows and 2 columns`,
		head + "2 2 1\n1 1 NaN\n":          `line 3: value: got "NaN"`,
		head + "2 2 1\n1 1 1e60\n":         `line 3: value: got "1e60"`,
		head + "2 2 2\n1 1 1\n1 1 2\n":     "row 0, column 0 is given twice, by the entries 3 and 4",
		head + "2 2 1\n1 x 1\n":            `line 3: got "x"`,
		head + "2 2 0\n":                   "has no entries",
		head + "9 2000000000 1000000000\n": "more than the file can hold",
		head + "2 2000000000 1\n1 1 1\n":   "leave out the empty rows",
	} {
		_, err := Load(t.Context(), &Files{Kind: "triples", File: write(t, t.TempDir(), "m.mtx", text), Absent: absentZero}, nil, Both)
		expect.As[*Error](t, err, "", text)
		expect.Contains(t, fmt.Sprint(err), want, text)
	}
}

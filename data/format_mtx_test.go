package data

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
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
			if got := KindOf(path); got != "triples" {
				t.Errorf("%s: the data set is %q", name, got)
			}
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

func TestDamagedMatrixMarketFilesAreRefused(t *testing.T) {
	const head = "%%MatrixMarket matrix coordinate real general\n"
	for text, want := range map[string]string{
		"%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 2 3\n": "line 1: want",
		"%%MatrixMarket vector coordinate real general\n1 1 1\n1 1 2\n":      "line 1: want",
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
		_, err := Load(t.Context(), &Files{Kind: "triples", File: write(t, t.TempDir(), "m.mtx", []byte(text)), Absent: absentZero}, nil, Both)
		var bad *Error
		if !errors.As(err, &bad) || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

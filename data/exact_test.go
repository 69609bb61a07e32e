package data

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// peerFile is a file of another program, with the values that it reads from the file.
type peerFile struct {
	File          []byte
	Shape, Labels []int
	Values        []float64
	Within        float64 // accepted difference; 0 for the rounding to float32
}

// peerFiles reads testdata/exact.json, which testdata/exact.py writes.
func peerFiles(t *testing.T) map[string]peerFile {
	t.Helper()
	text, err := os.ReadFile("testdata/exact.json")
	fatal.If(t, err)
	files := map[string]peerFile{}
	fatal.If(t, json.Unmarshal(text, &files))
	return files
}

// NumPy, SciPy, Pillow and pandas read the same values from the files that they write.
func TestFilesOfPeersHaveTheirValues(t *testing.T) {
	for name, want := range peerFiles(t) {
		t.Run(name, func(t *testing.T) {
			path := write(t, t.TempDir(), name, want.File)
			var shape []int
			if len(want.Shape) == 4 { // in colours
				shape = want.Shape[1:]
			}
			got, err := ReadRows(t.Context(), path, shape, nil)
			fatal.If(t, err)
			if fmt.Sprint(append([]int{got.Len()}, got.Shape...)) != fmt.Sprint(want.Shape) {
				t.Fatalf("got %d rows of shape %v, want %v", got.Len(), got.Shape, want.Shape)
			}
			for i, v := range got.Float32() {
				if math.Abs(float64(v)-want.Values[i]) > max(want.Within, 1e-7*math.Abs(want.Values[i])) {
					t.Fatalf("value %d: got %v, want %v", i, v, want.Values[i])
				}
			}
			if want.Labels != nil && !slices.Equal(got.Labels(), want.Labels) {
				t.Errorf("labels: got %v, want %v", got.Labels(), want.Labels)
			}
		})
	}
}

// Northings of a survey lie close together compared with their size. Their mean is subtracted in float64.
func TestNumbersAreSubtractedBeforeTheyAreRounded(t *testing.T) {
	const n = 50
	northing, text := make([]float64, n), "northing,height\n"
	for i := range northing {
		northing[i] = 5_400_000 + 4*math.Mod(float64(i)*0.6180339887, 1)
		text += fmt.Sprintf("%.6f,%d\n", northing[i], i)
	}
	mean, squares := 0.0, 0.0
	for _, v := range northing {
		mean += v / n
	}
	for _, v := range northing {
		squares += (v - mean) * (v - mean)
	}
	dir := t.TempDir()
	path := write(t, dir, "survey.csv", text)
	for _, method := range []string{"standardise", "minmax"} {
		source := &Files{Kind: "csv", File: path, Scale: scaleNamed(method)}
		set, err := Load(t.Context(), source, Dirs{}, Both)
		fatal.If(t, err)
		splits, err := set.Split(Selection{}, 1)
		fatal.If(t, err)
		if !splits.Scaling.IsExact() {
			t.Fatalf("%s: the scaling is not exact", method)
		}
		rows, err := ReadRows(t.Context(), path, []int{2}, source) // as a later command does
		fatal.If(t, err)
		centred := rows.Centred(splits.Scaling)
		splits.Scaling.ApplyCentred(centred)
		fitted := splits.Fit.Float32()
		for i, v := range northing {
			want := (v - mean) / math.Sqrt(squares/n)
			if method == "minmax" {
				want = (v - slices.Min(northing)) / (slices.Max(northing) - slices.Min(northing))
			}
			expect.Near(t, float64(fitted[2*i]), want, 1e-6, method, "sample", i)
			expect.Equal(t, centred[2*i], fitted[2*i], method, "sample", i)
		}
		splits.Scaling.Undo(fitted)
		expect.Near(t, float64(fitted[0]), northing[0], 0.25, method)
		for _, note := range set.Notes {
			if strings.Contains(note, "northing") && strings.Contains(note, "float32") {
				t.Errorf("%s: warned of the precision although the mean is subtracted: %s", method, note)
			}
		}
	}
	set, err := Load(t.Context(), &Files{Kind: "csv", File: path}, Dirs{}, Both)
	fatal.If(t, err)
	if !slices.ContainsFunc(set.Notes, func(note string) bool {
		return strings.Contains(note, `column "northing": the numbers from 5.4e+06 to`) && strings.Contains(note, `scale = "standardise"`)
	}) {
		t.Errorf("unscaled: got the notes %q, want one about the precision of northing", set.Notes)
	}
}

// A further column has no scale that could subtract an offset.
func TestAFurtherColumnThatFloat32RoundsIsAWarning(t *testing.T) {
	const n = 50
	text := "a,when,b\n"
	var when []float64
	for i := range n {
		when = append(when, 1.7e9+100*float64(i)+0.5)
		text += fmt.Sprintf("%d,%.1f,%d.5\n", i%7, when[i], i)
	}
	dir := t.TempDir()
	path := write(t, dir, "times.csv", text)
	for column, want := range map[string]bool{"when": true, "b": false} {
		set, err := Load(t.Context(), &Files{Kind: "csv", File: path, Columns: ColumnNames{"target": {column}}}, Dirs{}, Need{Columns: []string{"target"}})
		fatal.If(t, err)
		got := slices.ContainsFunc(set.Notes, func(note string) bool {
			return strings.Contains(note, fmt.Sprintf("column %q: the numbers from", column)) && strings.Contains(note, "rounded to steps of 128") && !strings.Contains(note, "scale =")
		})
		expect.Equal(t, got, want, column, set.Notes)
	}
}

// Numbers that float32 holds well are scaled in float32, as by earlier versions.
func TestOrdinaryNumbersAreScaledInFloat32(t *testing.T) {
	path := write(t, t.TempDir(), "plain.csv", "a,b\n0.1,3\n0.7,-2\n-0.3,5\n")
	set, err := Load(t.Context(), &Files{Kind: "csv", File: path, Scale: Scale{&Standardise{Centre: true}}}, Dirs{}, Both)
	fatal.If(t, err)
	splits, err := set.Split(Selection{}, 1)
	fatal.If(t, err)
	if splits.Scaling.IsExact() || splits.Fit.wide != nil {
		t.Error("the scaling is exact, or numbers are kept in float64")
	}
}

func TestTextsThatAreNoNumbers(t *testing.T) {
	for cell, want := range map[string]float64{"1.5": 1.5, "-2e3": -2000, "True": 1, "FALSE": 0, "+.5": 0.5} {
		if v, ok := parseNumber(cell, "."); !ok || v != want {
			t.Errorf("%q: got %v, %v; want %v", cell, v, ok, want)
		}
	}
	for _, cell := range []string{"0x10", "0x1p-2", "1_000", "1,5", "inf", "NaN", "", "1e400", "١"} {
		if v, ok := parseNumber(cell, "."); ok {
			t.Errorf("%q: got %v, want no number", cell, v)
		}
	}
	for cell, want := range map[string]float64{"1,75": 1.75, "-3": -3, "1,5e2": 150} {
		if v, ok := parseNumber(cell, ","); !ok || v != want {
			t.Errorf("%q with a decimal comma: got %v, %v; want %v", cell, v, ok, want)
		}
	}
}

// A text lies near the middle of two float32 numbers: rounding it twice gives the wrong one.
func TestCellsAreRoundedOnce(t *testing.T) {
	cell := "1.00000005960464477540"
	v, _ := parseNumber(cell, ".")
	expect.Equal(t, narrow(cell, v), math.Nextafter32(1, 2))
}

func TestErrorsOfTablesNameTheCause(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"a;b\n1,75;2\n3;4\n":         `decimal = ","`,
		"a,b\r1,2\r3,4\r":            "old Macs",
		"a,b\n1e300,2\n3,4\n":        `column "a": got 1e+300, which float32 cannot hold`,
		"a,b\n0x10,2\n3,4\n":         `got "0x10", want a finite number`,
		"a\x00,\x00b\x00\n\x001\x00": "zero bytes",
	} {
		path := write(t, dir, "table.csv", text)
		expect.Error(t, expect.Err(Load(t.Context(), &Files{Kind: "csv", File: path}, Dirs{}, Both)), want, text)
	}
	path := write(t, dir, "comma.csv", "a;b\n1,75;2\n3;4\n")
	set, err := Load(t.Context(), &Files{Kind: "csv", File: path, Decimal: ","}, Dirs{}, Both)
	if err != nil || !slices.Equal(set.Train.Float32(), []float32{1.75, 2, 3, 4}) {
		t.Errorf("with a decimal comma: got %v, want 1.75, 2, 3, 4", err)
	}
}

package data

import (
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// Negative numbers in brackets are read, dates of which the order is not clear are said to be these, and texts that are alike are named, as labels and
// as columns.
func TestAccountsDatesAndTextsThatAreAlike(t *testing.T) {
	for cell, want := range map[string]float64{"(12.00)": -12, "(1,234.50)": -1234.5, "(0)": 0} {
		if v, absent, ok := cellNumber(cell, ""); v != want || absent || !ok {
			t.Errorf("%s: got %v, %v", cell, v, ok)
		}
	}
	for _, cell := range []string{"(-1)", "()", "(1", "1)", "((1))", "(a)"} {
		if v, _, ok := cellNumber(cell, ""); ok {
			t.Errorf("%s: got %v", cell, v)
		}
	}
	path := write(t, t.TempDir(), "cars.csv", "x,make,kind\n1,VW,Gas\n2,vw,gas\n3,Opel,Gas\n4,V W,gas\n")
	set, err := Load(background, &Files{Kind: "csv", File: path, Labels: "kind", Columns: ColumnNames{"make": {"make"}}}, nil, Need{Train: true, Columns: []string{"make"}})
	fatal.If(t, err)
	notes := strings.Join(set.Notes, "\n")
	expect.Contains(t, notes, `labels: texts that differ in letter case or spaces alone are different classes: "Gas", "gas"; write them alike`)
	expect.Contains(t, notes, `column "make": texts that differ in letter case or spaces alone are different classes: "V W", "VW", "vw"`)
	s, err := SketchTable(background, path)
	fatal.If(t, err)
	expect.Equal(t, strings.Join(s.Columns[1].Alike, "|"), "V W|VW|vw")
	dates := write(t, t.TempDir(), "dates.csv", "x,day\n1,12/31/2024\n2,01/02/2024\n")
	_, err = Load(background, &Files{Kind: "csv", File: dates}, nil, Both)
	expect.Error(t, err, `write dates = "month/day" in the dataset table`)
}

package data

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// Dates with slashes are those of pandas in the declared order, which a day above 12 shows; without one they are refused.
func TestDatesWithSlashesAreThoseOfPandas(t *testing.T) {
	text, err := os.ReadFile("testdata/dates.json")
	fatal.If(t, err)
	var files map[string]struct {
		Texts, Days []string
		Years       []float64
	}
	fatal.If(t, json.Unmarshal(text, &files))
	for order, want := range files {
		path := write(t, t.TempDir(), "x.csv", []byte("x,when\n1,"+strings.Join(want.Texts, "\n1,")+"\n"))
		s, err := SketchTable(t.Context(), path)
		fatal.If(t, err)
		expect.Equal(t, s.Dates, order)
		expect.Equal(t, s.Columns[1].Numeric && s.Columns[1].Dates, true, order, "are dates, which are numbers")
		source := &Files{Kind: "csv", File: path, Columns: ColumnNames{ImagesColumn: {"when"}}}
		_, err = Load(t.Context(), source, Dirs{}, Both)
		expect.Error(t, err, `write dates = "`+order+`" in the dataset table`)
		source.Dates = order
		set, err := Load(t.Context(), source, Dirs{}, Both)
		fatal.If(t, err)
		for i, v := range set.Train.Float32() {
			expect.Near(t, float64(v), want.Years[i], 1e-4, order, want.Texts[i])
		}
		list, _ := set.Describe()
		expect.Equal(t, list[1].Type, "dates")
		expect.Equal(t, list[1].First, strings.Join(want.Days[:4], " "))
		expect.Equal(t, list[1].Range, want.Days[3]+" to "+want.Days[0])
	}
	unclear := write(t, t.TempDir(), "x.csv", "x,when\n1,01/02/2024\n2,03/12/2024\n")
	s, err := SketchTable(t.Context(), unclear)
	fatal.If(t, err)
	expect.Equal(t, s.Dates == "" && s.Columns[1].Ambiguous && !s.Columns[1].Numeric, true, "no day above 12")
	source := &Files{Kind: "csv", File: unclear}
	_, err = Load(t.Context(), source, Dirs{}, Both)
	expect.Error(t, err, `line 2, column "when": got "01/02/2024"`, `write dates = "month/day" or dates = "day/month" in the dataset table`)
	source.File, source.Dates = write(t, t.TempDir(), "x.csv", "x,when\n1,01/02/2024\n2,03/14/2024\n"), dayMonth
	_, err = Load(t.Context(), source, Dirs{}, Both)
	expect.Error(t, err, `got "03/14/2024"`, "dates are declared as day/month")
	s, err = SketchTable(t.Context(), write(t, t.TempDir(), "x.csv", "x,when\n1,31/12/2024\n2,12/31/2024\n"))
	fatal.If(t, err)
	expect.Equal(t, s.Dates == "" && s.Columns[1].Ambiguous, true, "days above 12 in both places")
}

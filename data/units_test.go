package data

import (
	"cmp"
	"fmt"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
)

func TestNumbersMayHaveSignsBetweenThousands(t *testing.T) {
	for _, c := range []struct{ cell, point, comma, undeclared string }{
		{"5.068,56", "-", "5068.56", "-"},
		{"96.517", "96.517", "96517", "96.517"},
		{"0.517", "0.517", "-", "0.517"},
		{"12,345", "12345", "12.345", "-"},
		{"-1,234,567", "-1.234567e+06", "-", "-1.234567e+06"},
		{"1,234.5", "1234.5", "-", "1234.5"},
		{"1'234", "1234", "1234", "1234"},
		{"1\u00a0234,5", "-", "1234.5", "-"},
		{"12,34,567", "-", "-", "-"},
		{"1234,567.8", "-", "-", "-"},
		{"030 123 456", "-", "-", "-"},
		{"31.12.2023", "-", "-", "-"},
	} {
		for decimal, want := range map[string]string{".": c.point, ",": c.comma, "": c.undeclared} {
			got := "-"
			if v, ok := parseNumber(c.cell, decimal); ok {
				got = fmt.Sprint(v)
			}
			expect.Equal(t, got, want, c.cell, "with decimal", decimal)
		}
	}
}

func TestDatesAreYears(t *testing.T) {
	for cell, want := range map[string]float64{"2023-07-02 12:00": 2023.5, "1.1.2024": 2024, "2024-07-02": 2024.5, "2023/12/31": 2023 + 364./365} {
		if v, missing, ok := cellNumber(cell, ","); v != want || missing || !ok {
			t.Errorf("%s: got %v, %t, want %v", cell, v, ok, want)
		}
	}
	for _, cell := range []string{"02/03/2024", "12:30", "31.2.2024", "2024-1"} {
		if v, _, ok := cellNumber(cell, "."); ok {
			t.Errorf("%s: got %v, want no number", cell, v)
		}
	}
}

// messy is a table as spreadsheets of German settings save it.
const messy = "Nr;Datum;Gewicht;Preis;Zustand\r\nA 1;31.12.2023;1.347 kg;5.068,56 €;gut\r\nA 2;1.1.2024;unbekannt;€ 12,50;mäßig\r\nA 3;2.7.2024;900;-;gut\r\nA 4;;95,5 kg;7;gut\r\n"

func TestUnitsAndMissingTextsAreLeftOutOfCells(t *testing.T) {
	f := &Files{Kind: "csv", File: write(t, t.TempDir(), "x.csv", messy), Names: "Nr", Decimal: ",", Columns: ColumnNames{ImagesColumn: {"Datum", "Gewicht"}, "target": {"Preis"}}}
	fatal.If(t, cmp.Or(f.Units.FromTOML(map[string]any{"Gewicht": "kg", "Preis": "€"}), f.Missing.FromTOML([]any{"unbekannt"})))
	set, err := f.Load(t.Context(), nil, Both.WithColumns([]string{"target"}))
	fatal.If(t, err)
	expect.Equal(t, fmt.Sprint(set.Train.Raw()), "[2023.9973 1347 2024 NaN 2024.5 900 NaN 95.5]")
	expect.Equal(t, fmt.Sprint(gathered(t, set.Train, "target")), "[5068.56 12.5 0 7]")

	signs := &Files{Kind: "csv", File: write(t, t.TempDir(), "signs.csv", "a,b\n-$12.00,1\n$-3,2\n+$4.5,3\n$ 5,4\n")}
	fatal.If(t, signs.Units.FromTOML(map[string]any{"a": "$"}))
	set, err = signs.Load(t.Context(), nil, Both)
	fatal.If(t, err)
	expect.Equal(t, fmt.Sprint(set.Train.Raw()), "[-12 1 -3 2 4.5 3 5 4]")

	f.Units["Gewicht"] = "g"
	expect.Error(t, expect.Err(f.Load(t.Context(), nil, Both)), `line 2, column "Gewicht": got "1.347 kg", want a finite number; if "kg" is a unit, write units = { Gewicht = "kg" }`)
	delete(f.Units, "Gewicht")
	f.Units["Gewicht "] = "kg"
	expect.Error(t, expect.Err(f.Load(t.Context(), nil, Both)), `units: has no column "Gewicht "`)
	expect.Error(t, f.Units.FromTOML(map[string]any{"a": 3}), `want the units of columns, such as { weight = "kg" }`)
}

func TestASketchFindsUnitsMissingTextsAndTheDecimalSign(t *testing.T) {
	s, err := SketchTable(t.Context(), write(t, t.TempDir(), "x.csv", messy))
	fatal.If(t, err)
	expect.Equal(t, s.Decimal, ",")
	got := lists.Map(s.Columns, func(c ColumnSketch) string {
		return fmt.Sprintf("%s %t %q %q %t", c.Name, c.Numeric, c.Unit, c.Absent, c.Missing)
	})
	expect.Equal(t, fmt.Sprintf("%q", got), fmt.Sprintf("%q", []string{`Nr false "" [] false`, `Datum true "" [] true`, `Gewicht true "kg" ["unbekannt"] true`,
		`Preis true "€" [] true`, `Zustand false "" [] false`}))
	s, err = SketchTable(t.Context(), write(t, t.TempDir(), "signs.csv", "a,b\n-$12.00,1\n$3,2\n"))
	fatal.If(t, err)
	expect.Equal(t, s.Columns[0].Unit, "$")
	for text, want := range map[string]string{ // by the other columns, or by what separates the columns
		"a;b\n12,345;1\n7,125;2\n":     ",",
		"a,b\n\"12,345\",1\n\"7\",2\n": ".",
		"a,b\n1.5,2\n":                 "",
	} {
		s, err := SketchTable(t.Context(), write(t, t.TempDir(), "y.csv", text))
		fatal.If(t, err)
		expect.Equal(t, s.Decimal, want)
	}
}

package data

import (
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// Values that may mean a missing one are named with the key to write, which leaves them out however they are written; others are not.
func TestRepeatedValuesFarFromAllOthersAreNamed(t *testing.T) {
	for _, c := range []struct{ name, cells, want string }{
		{"far below", "21 35 -999 60 -999 44 -999.0", `column "x" has -999 3 times, the others are 21 to 60; if that means a missing entry, write missing = ["-999"]`},
		{"once", "0.5 0.25 -999 0.75 0.125", `column "x" has -999 1 time, the others are 0.125 to 0.75`},
		{"far above", "0.5 9999 0.25 9999 0.125 9999", `"x" has 9999 3 times, the others are 0.125 to 0.5`},
		{"at both ends", "3 4 5 99 99 99 -99 -99 -99", `"x" has 99 3 times, the others are 3 to 5; "x" has -99 3 times, the others are 3 to 5; if that means a missing entry, write missing = ["99", "-99"]`},
		{"-1 in amounts", "700 21 -1 300 -1 0 -1", `"x" has -1 3 times, the others are 0 to 700`},
		{"twice", "21 35 999 60 999 44", ""},
		{"classes", "-1 0 1 -1 0 1 -1 1", ""},
		{"many zeros", "0 0 0 0 500 510 520", ""},
		{"a usual value", "1 2 50 50 50 50", ""},
		{"two values", "0 1000 1000 1000 0 0", ""},
		{"brothers and sisters", "0 1 0 2 3 4 5 8 8 8 8 1 0", ""},
		{"signed", "-1 -5 -1 300 -1 20", ""},
	} {
		text := "a,x\n"
		for i, cell := range strings.Fields(c.cells) {
			text += strings.Repeat("1", i%5+1) + "," + cell + "\n"
		}
		path := write(t, t.TempDir(), "x.csv", text)
		set, err := Load(t.Context(), &Files{Kind: "csv", File: path}, Dirs{}, Both)
		fatal.If(t, err)
		named, err := Load(t.Context(), &Files{Kind: "csv", File: path, Columns: ColumnNames{ImagesColumn: {"a"}, "target": {"x"}}}, Dirs{}, Both.WithColumns([]string{"target"}))
		fatal.If(t, err)
		expect.Contains(t, strings.Join(named.Notes, "\n"), c.want, c.name, "in a target")
		s, err := SketchTable(t.Context(), path)
		fatal.If(t, err)
		notes := strings.Join(set.Notes, "\n")
		if c.want == "" {
			expect.Equal(t, strings.Contains(notes, "if that means a missing entry"), false, c.name, notes)
			expect.Equal(t, s.Sentinels, "", c.name)
			continue
		}
		expect.Contains(t, notes, c.want, c.name)
		expect.Contains(t, s.Sentinels, c.want, c.name)
	}
	path := write(t, t.TempDir(), "x.csv", "x,y\n-999.0,1\n2,-999\n3,4\n-9990,5\n")
	set, err := Load(t.Context(), &Files{Kind: "csv", File: path, Missing: Missing{"-999"}}, Dirs{}, Both)
	fatal.If(t, err)
	list, _ := set.Describe()
	expect.Equal(t, list[0].Missing, 2, "-999 and -999.0 are missing")
}

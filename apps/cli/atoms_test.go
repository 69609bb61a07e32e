package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"tessera/internal/fatal"
)

// Two groups of columns occur apart: the units are listed by use with their columns, and a unit has its samples, classes and values.
func TestAtomsSaysWhatAUnitIs(t *testing.T) {
	b := benchOf(t)
	var rows strings.Builder
	rows.WriteString("name,kind,sun,moon,salt,oil\n")
	for i := range 12 {
		if size := i + 1; i%2 == 0 {
			fmt.Fprintf(&rows, "s%d,sky,%d,%d,0,0\n", i, 3*size, 2*size)
		} else {
			fmt.Fprintf(&rows, "s%d,food,0,0,%d,%d\n", i, size, size)
		}
	}
	b.write("table.csv", rows.String())
	b.write("models.toml", `
[model.parts]
kind       = "nmf"
components = 2
dataset    = { name = "csv", file = "table.csv", columns = { names = "name", labels = "kind", images = ["*"] }, validation = 0 }
`)
	b.must(0, "train", "parts")
	b.contains("the list", b.must(0, "atoms", "runs/parts").stdout, "sun, moon", "salt, oil", "used by no sample  0")
	var list struct {
		Atoms []struct {
			Unit    int     `json:"unit"`
			Active  float64 `json:"active"`
			Columns string  `json:"columns"`
			Samples string  `json:"samples"`
		} `json:"atoms"`
	}
	fatal.If(t, json.Unmarshal([]byte(b.must(0, "atoms", "runs/parts", "--json").stdout), &list))
	if len(list.Atoms) != 2 || list.Atoms[0].Columns != "sun, moon" || list.Atoms[0].Active != 0.5 || list.Atoms[0].Samples != "s10; s8; s6" {
		t.Fatalf("got %+v, want the sky, which half of the samples use, first: its values are larger", list.Atoms)
	}
	b.must(0, "report", "runs/parts", "-o", "parts.html")
	b.contains("the page", b.read("parts.html"), "Units and the samples that use them most", "s10; s8; s6", "s11; s9; s7")
	var sky struct {
		Top     []struct{ Name, Class string }
		Classes []struct {
			Class string
			Mean  float64
		}
		Values []struct {
			Column string
			Value  float64
		}
		Near []any
	}
	fatal.If(t, json.Unmarshal([]byte(b.must(0, "atoms", "runs/parts", "--unit", fmt.Sprint(list.Atoms[0].Unit), "--json").stdout), &sky))
	if len(sky.Top) != 6 || sky.Top[0].Name != "s10" || sky.Top[0].Class != "sky" {
		t.Errorf("samples %+v, want the six of the sky, s10 first", sky.Top)
	}
	if len(sky.Classes) != 2 || sky.Classes[0].Class != "sky" || sky.Classes[1].Mean > 1e-6*sky.Classes[0].Mean {
		t.Errorf("classes %+v, want the sky alone", sky.Classes)
	}
	if len(sky.Values) < 2 || sky.Values[0].Column != "sun" || sky.Values[1].Column != "moon" || len(sky.Near) != 0 {
		t.Errorf("values %+v, near %v: want sun and moon, and no unit that is used with it", sky.Values, sky.Near)
	}
	b.contains("no such unit", b.must(2, "atoms", "runs/parts", "--unit", "2").stderr, "0 to 1")
}

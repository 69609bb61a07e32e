package table

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"tessera/config/part"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// The language of this test. Nothing in this package depends on models.

type shape interface{ Area() float64 }

type square struct {
	Side float64 `toml:"side" want:"> 0" doc:"s" required:"true"`
}

func (s *square) Area() float64 { return s.Side * s.Side }

type strip struct {
	From float64 `toml:"from" doc:"f"`
	To   float64 `toml:"to" doc:"t"`
}

func (s *strip) Area() float64 { return s.To - s.From }
func (s *strip) Check() error {
	if s.To < s.From {
		return part.KeyErrorf("to", "got %v, want >= from (%v)", s.To, s.From)
	}
	return nil
}

type ramp interface{ At(t float64) float64 }

type constant struct {
	Value float64 `toml:"value" want:">= 0" doc:"v"`
}

func (c *constant) At(float64) float64 { return c.Value }

type linear struct {
	From float64 `toml:"from" doc:"f"`
	To   float64 `toml:"to" doc:"t"`
}

func (l *linear) At(t float64) float64 { return l.From + t*(l.To-l.From) }

type piece struct {
	Kind   string `toml:"kind" doc:"k"`
	Shape  shape  `part:"kind"`
	Weight ramp   `toml:"weight" bare:"constant.value" doc:"w"`
}

func (p *piece) Defaults() { p.Weight = &constant{1} }

type wing struct {
	Pieces []piece  `toml:"piece" doc:"p"`
	Size   []int    `toml:"size" want:"> 0" doc:"s"`
	Door   *piece   `toml:"door" doc:"d"`
	Shapes []shape  `toml:"shape" doc:"s"`
	Notes  []string `toml:"notes" doc:"n"`
}

type villa struct {
	Wings  map[string]wing  `toml:"wing" doc:"tables with free names"`
	Shapes map[string]shape `toml:"shape" doc:"tables with the names of parts"`
	Raw    *Node            `toml:"raw" doc:"whatever it is"`
}

func words() *Language {
	shapes, ramps := part.New[shape]("shape"), part.New[ramp]("ramp")
	shapes.Register("square", "a", func() shape { return &square{} })
	shapes.Register("big_square", "the same struct with another default", func() shape { return &square{Side: 100} })
	shapes.Register("strip", "b", func() shape { return &strip{To: 1} })
	ramps.Register("constant", "c", func() ramp { return &constant{} })
	ramps.Register("linear", "d", func() ramp { return &linear{To: 1} })
	return &Language{Vocabularies: []*Vocabulary{Words("shapes", shapes, piece{}), Words("ramps", ramps, nil)}}
}

func read(t *testing.T, text string) (*villa, *Decoder) {
	t.Helper()
	root, found := Parse(NewSource("x.toml", text))
	if len(found) > 0 {
		t.Fatal(Report(found))
	}
	h, d := &villa{}, &Decoder{Language: words(), Subject: Subject("villa", "h"), Path: []string{"villa", "h"}}
	d.Decode(root.Child("villa").Child("h"), h, "")
	return h, d
}

const declared = `[villa.h]

[villa.h.wing.hall]
size = [3, 4]

[[villa.h.wing.hall.piece]]
kind = "square"
side = 2.0
weight = 0.5

[[villa.h.wing.hall.piece]]
kind = "big_square"
side = 100.0
weight = { kind = "linear", from = 0.0, to = 3.0 }

[villa.h.wing.hall.door]
kind = "strip"
from = 0.0
to = 2.0
weight = 1.0

[[villa.h.wing.hall.shape]]
kind = "strip"
from = 0.0
to = 1.0

[villa.h.wing."the attic"]

[villa.h.shape.big_square]
side = 5.0
`

func TestTablesOfPartsByNameAndInListsAreReadAndWritten(t *testing.T) {
	h, d := read(t, declared)
	fatal.If(t, Report(d.Found))
	want := &villa{
		Wings: map[string]wing{"the attic": {}, "hall": {
			Size:   []int{3, 4},
			Pieces: []piece{{"square", &square{2}, &constant{0.5}}, {"big_square", &square{100}, &linear{0, 3}}},
			Door:   &piece{"strip", &strip{0, 2}, &constant{1}},
			Shapes: []shape{&strip{0, 1}},
		}},
		Shapes: map[string]shape{"big_square": &square{5}},
	}
	if !reflect.DeepEqual(h, want) {
		t.Errorf("got %+v\nwant %+v", h, want)
	}
	if n, err := (&Writer{Language: d.Language, Origin: d.Origin}).Tree(h); err != nil || string(n.TOML(d.Path...)) != declared {
		t.Errorf("written as\n%s%v", n.TOML(d.Path...), err)
	}
	expect.Equal(t, d.Language.NameOf(d.Origin, "wing.hall.piece[1]", h.Wings["hall"].Pieces[1].Shape), "big_square", "a struct that is registered twice is remembered as")
	if n := d.Origin.Table("wing.hall.piece[1].weight"); n == nil || n.At.Place().Line != 14 {
		t.Errorf("the weight is at %+v", n)
	}
}

func TestErrorsInTablesByNameHaveAPlaceEach(t *testing.T) {
	_, d := read(t, `
[villa.h]
wing.hall.piece = [{ kind = "sqare", weight = -1 }, { kind = "square", weight = -1 }, { kind = "strip", to = -1, weight = true }]
wing.hall.door = 3
wing.cellar = 3
shape.cube = { side = 1 }
shape.strip = { to = -2 }
shape.square = true
[[villa.h.wing.attic.shape]]
kind = "square"
weight = { kind = "linaer" }
`)
	got := Report(d.Found)
	want := []string{
		`x.toml:3:29: villa "h": wing.hall.piece[0]: unknown kind "sqare"`,
		`x.toml:3:47: villa "h": wing.hall.piece[0]: weight: got -1, want a number >= 0`,
		`x.toml:3:62: villa "h": wing.hall.piece[1] (square): missing key "side"`,
		`x.toml:3:81: villa "h": wing.hall.piece[1] (square): weight: got -1, want a number >= 0`,
		`x.toml:3:123: villa "h": wing.hall.piece[2] (strip): weight: got true, want a number >= 0`,
		`x.toml:4:18: villa "h": wing.hall.door: got 3, want a table`,
		`x.toml:5:15: villa "h": wing.cellar: got 3, want a table`,
		`x.toml:6:7: villa "h": unknown shape "cube"`,
		`x.toml:7:22: villa "h": shape.strip: to: got -2, want >= from (0)`,
		`x.toml:8:16: villa "h": shape.square: got true, want a table`,
		`x.toml:10:8: villa "h": wing.attic.shape[0] (square): missing key "side"`,
		`x.toml:11:1: villa "h": wing.attic.shape[0] (square): unknown table "weight"`,
	}
	var all *Diagnostics
	if !errors.As(got, &all) {
		t.Fatal(got)
	}
	var lines []string
	for _, one := range all.List {
		line, _, _ := strings.Cut(one.String(), "\n")
		lines = append(lines, line)
	}
	if !reflect.DeepEqual(lines, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

func TestAKeyMayTakeWhateverStandsThere(t *testing.T) {
	h, d := read(t, "[villa.h]\nraw = { a = [1, \"x\"] }\n")
	if got := fmt.Sprint(h.Raw.Plain()); got != "map[a:[1 x]]" || len(d.Found) > 0 {
		t.Errorf("got %s, %v", got, d.Found)
	}
}

func TestChangesReachTablesByName(t *testing.T) {
	root, _ := Parse(NewSource("x.toml", declared))
	var changes []Change
	for _, argument := range []string{"wing.hall.piece.0.weight=2", "wing.hall.piece.1.weight.to=5", "shape.big_square.side=7", "wing.new.size=[1]", "wing.hall.door.kind=square", "wing.hall.door.side=1"} {
		c, err := ParseChange(argument)
		fatal.If(t, err)
		changes = append(changes, c)
	}
	all, _ := Merger{}.Combine(changes)
	var m Merger
	merged := m.Merge("", root.Child("villa").Child("h"), all)
	h, d := &villa{}, &Decoder{Language: words()}
	d.Decode(merged, h, "")
	fatal.If(t, Report(append(m.Found, d.Found...)))
	hall := h.Wings["hall"]
	if !reflect.DeepEqual(hall.Pieces[0].Weight, &constant{2}) || !reflect.DeepEqual(hall.Pieces[1].Weight, &linear{0, 5}) ||
		!reflect.DeepEqual(h.Shapes["big_square"], &square{7}) || len(h.Wings["new"].Size) != 1 || !reflect.DeepEqual(hall.Door.Shape, &square{1}) {
		t.Errorf("got %+v", h)
	}
}

// A user-defined part may report any key, also an index that its array does not have.
func TestAnyKeyOfAnErrorHasAPosition(t *testing.T) {
	root, found := Parse(NewSource("x.toml", "list = [1, 2]\n"))
	if len(found) > 0 {
		t.Fatal(found)
	}
	list := root.Child("list")
	for key, want := range map[string]*Node{"list": list, "list[1]": list.Items[1], "list[2]": list, "list[-1]": list, "list[x]": list, "list[": list, "": nil, "none[0]": nil} {
		expect.Equal(t, root.value(key), want, key)
	}
}

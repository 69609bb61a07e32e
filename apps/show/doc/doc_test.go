package doc

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// sample is a document with every kind of block.
func sample() *Document {
	t := &Table{Key: "layers", Title: "Layers", Columns: []Column{{Key: "layer", Title: "layer"}, {Key: "size", Title: "size", Right: true},
		{Key: "loss", Title: "loss", Better: Lower}, {Key: "note", Title: "note", Wrap: true}, {Title: "spare", Spare: 1}}}
	t.Row("encoder.0", 78500, Best{0.25}, "a long text of several words <b>", "only where there is place")
	t.Row("decoder.0", 1, math.NaN())
	t.Notes = []string{"below the table"}
	d := &Document{Title: "a\x1b[31m title"}
	d.Add(&Facts{Facts: []Fact{{Key: "parameters", Title: "parameters", Value: 157684}, {Key: "seconds", Title: "trained for", Value: Seconds(75)},
		{Key: "hidden", Value: []int{1}}, {Title: "words", Value: "for people <i>"}, {Key: "minor", Title: "minor", Value: true, Minor: true}}},
		&Facts{Key: "memory", Facts: []Fact{{Key: "rows", Title: "rows", Value: 3}}},
		t, &Table{Key: "empty"}, Warning("%d units are dead", 3), Remark("a note"),
		&Figure{Key: "picture", Title: "Atoms", Path: "runs/a/atoms.png"},
		&Curves{Key: "curves", Title: "Loss", X: "epoch", Y: "loss", Lines: []Line{{"train", []float64{1, 2, 3}, []float64{3, 2, 1}}}},
		&Group{Title: "Group", Blocks: []Block{&Facts{Facts: []Fact{{Key: "inner", Title: "inner", Value: 0.5}}}}})
	return d
}

func shown(t *testing.T, render func(*strings.Builder) error) string {
	t.Helper()
	var b strings.Builder
	fatal.If(t, render(&b))
	return b.String()
}

// TestOneFactEverywhere checks that a fact appears, by its one line, in all four forms.
func TestOneFactEverywhere(t *testing.T) {
	for name, text := range map[string]string{
		"text":     shown(t, func(b *strings.Builder) error { return sample().Text(b, Screen{}) }),
		"html":     shown(t, func(b *strings.Builder) error { return sample().HTML(b) }),
		"markdown": shown(t, func(b *strings.Builder) error { return sample().Markdown(b) }),
	} {
		for _, want := range []string{"parameters", "157,684", "75 s", "encoder.0", "78,500", "3 units are dead", "inner"} {
			expect.Contains(t, text, want, name)
		}
		if strings.Contains(text, "\x1b") {
			t.Errorf("%s has a control character of a value: %q", name, text)
		}
		if strings.Contains(text, "minor") == (name == "text") {
			t.Errorf("%s: a minor fact belongs to pages:\n%s", name, text)
		}
	}
}

func TestJSONHasKeysAndTypedValues(t *testing.T) {
	d := sample()
	d.Data = struct {
		Model      string `json:"model"`
		Parameters int    `json:"parameters"`
	}{"asym", 7}
	var got map[string]any
	fatal.If(t, json.Unmarshal([]byte(shown(t, func(b *strings.Builder) error { return d.JSON(b) })), &got))
	want := map[string]any{"model": "asym", "parameters": 7.0, "seconds": 75.0, "hidden": []any{1.0}, "minor": true, "memory": map[string]any{"rows": 3.0},
		"layers": []any{map[string]any{"layer": "encoder.0", "size": 78500.0, "loss": 0.25, "note": "a long text of several words <b>"},
			map[string]any{"layer": "decoder.0", "size": 1.0, "loss": nil}},
		"picture": "runs/a/atoms.png", "inner": 0.5, "notes": []any{"warning: 3 units are dead", "a note"},
		"curves": []any{map[string]any{"name": "train", "x": []any{1.0, 2.0, 3.0}, "y": []any{3.0, 2.0, 1.0}}}}
	expect.Equal(t, fmt.Sprint(got), fmt.Sprint(want))
	d.Data = []string{"<a>"}
	expect.Equal(t, shown(t, func(b *strings.Builder) error { return d.JSON(b) }), "[\n  \"<a>\"\n]\n", "a list is the whole form")
}

// TestNoLineIsWiderThanTheScreen checks every width against all words of the document.
func TestNoLineIsWiderThanTheScreen(t *testing.T) {
	for width := 30; width < 120; width++ {
		text := shown(t, func(b *strings.Builder) error { return sample().Text(b, Screen{Width: width}) })
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("width %d: a line of %d characters: %q", width, n, line)
			}
		}
		for _, word := range []string{"encoder.0", "78,500", "0.25 *", "several", "below"} {
			expect.Contains(t, text, word, "width", width)
		}
		if strings.Contains(text, "only where there is place") == strings.Contains(text, "too narrow for spare") {
			t.Errorf("width %d: a column that is left out is named:\n%s", width, text)
		}
	}
}

func TestBlocksForProgramsTakeNoPlace(t *testing.T) {
	d := &Document{Title: "tessera 1.2.3", Blocks: []Block{&Facts{Facts: []Fact{{Key: "version", Value: "1.2.3"}}}}}
	expect.Equal(t, shown(t, func(b *strings.Builder) error { return d.Text(b, Screen{}) }), "tessera 1.2.3\n")
}

func TestPartsOfATableRepeatTheColumnsThatNameARow(t *testing.T) {
	d := &Document{}
	d.Add(&Table{Heads: 2, Columns: Columns("model", "units", "mse", "sparsity"), Rows: [][]any{{"spectra", 2, 0.25, 0.5}, {"spectra", 5, 0.125, 0.75}}})
	for width, want := range map[int]string{
		25: "model    units  mse\nspectra  2      0.25\nspectra  5      0.125\n\nmodel    units  sparsity\nspectra  2      0.5\nspectra  5      0.75\n",
		20: "model    units\nspectra  2\nspectra  5\n\nmodel    mse\nspectra  0.25\nspectra  0.125\n\nmodel    sparsity\nspectra  0.5\nspectra  0.75\n",
	} {
		expect.Equal(t, shown(t, func(b *strings.Builder) error { return d.Text(b, Screen{Width: width}) }), want, "width", width)
	}
}

// What one column of long texts does not need is for the others, and long titles are folded too.
func TestLongTextsShareALine(t *testing.T) {
	d := &Document{Title: "a title that is longer than the line of a screen"}
	d.Add(&Table{Columns: []Column{{}, {Wrap: true}, {Wrap: true}}, Rows: [][]any{{"key", "a word", "a description that takes two lines at least"}}})
	want := "a title that is longer than the line of\na screen\n\nkey  a word  a description that takes\n             two lines at least\n"
	expect.Equal(t, shown(t, func(b *strings.Builder) error { return d.Text(b, Screen{Width: 40}) }), want)
}

func TestHTMLEscapesEveryText(t *testing.T) {
	if text := shown(t, func(b *strings.Builder) error { return sample().HTML(b) }); strings.Contains(text, "<b>") || strings.Contains(text, "<i>") {
		t.Errorf("a value became markup:\n%s", text)
	}
}

func TestColourOnlyWhereWanted(t *testing.T) {
	text := shown(t, func(b *strings.Builder) error { return sample().Text(b, Screen{Colour: true}) })
	for _, want := range []string{"\x1b[33mwarning", "\x1b[32m0.25 *", "\x1b[1ma\\u001b[31m title"} {
		expect.Contains(t, text, want)
	}
}

// A command that is broken into lines can't be copied.
func TestACommandStaysInOneLine(t *testing.T) {
	d := &Document{Blocks: []Block{Remark("its report says  why: `tessera report runs/spectra -o spectra.html`, or `tessera runs`, of the words")}}
	want := "its report says  why:\n`tessera report runs/spectra -o spectra.html`,\nor `tessera runs`, of\nthe words\n"
	expect.Equal(t, shown(t, func(b *strings.Builder) error { return d.Text(b, Screen{Width: 24}) }), want)
}

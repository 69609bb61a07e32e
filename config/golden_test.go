package config

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"tessera/config/part/table"
	"tessera/internal/fatal"
)

var update = flag.Bool("update", false, "write what the golden files should hold")

// golden is one case of a golden file: the text that is read, the --set arguments, and the complete output.
//
//	== name [crlf] [bom]
//	-- set PATH=VALUE
//	-- models.toml
//	...
//	-- want
//	...
type golden struct {
	title, input, want string
	sets               []string
}

func readGolden(t testing.TB, file string) []golden {
	t.Helper()
	text, err := os.ReadFile(file)
	fatal.If(t, err)
	var cases []golden
	for _, block := range strings.Split("\n"+string(text), "\n== ")[1:] {
		title, rest, _ := strings.Cut(block, "\n")
		g := golden{title: title}
		for strings.HasPrefix(rest, "-- set ") {
			var line string
			line, rest, _ = strings.Cut(rest, "\n")
			g.sets = append(g.sets, strings.TrimPrefix(line, "-- set "))
		}
		g.input, g.want, _ = strings.Cut(strings.TrimPrefix(rest, "-- models.toml\n"), "-- want\n")
		g.want = strings.TrimRight(g.want, "\n")
		cases = append(cases, g)
	}
	return cases
}

func writeGolden(t *testing.T, file string, cases []golden) {
	t.Helper()
	var b strings.Builder
	for _, g := range cases {
		fmt.Fprintf(&b, "== %s\n", g.title)
		for _, s := range g.sets {
			fmt.Fprintf(&b, "-- set %s\n", s)
		}
		fmt.Fprintf(&b, "-- models.toml\n%s-- want\n%s\n\n", g.input, g.want)
	}
	fatal.If(t, os.WriteFile(file, []byte(b.String()), 0o644))
}

// run returns the diagnostics of a case.
func (g golden) run() error {
	text := g.input
	if strings.Contains(g.title, " crlf") {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	if strings.Contains(g.title, " bom") {
		text = "\ufeff" + text
	}
	f, err := Load("models.toml", []byte(text))
	if err != nil {
		return err
	}
	if len(g.sets) == 0 {
		return f.Check()
	}
	var sets []Set
	for _, argument := range g.sets {
		s, err := ParseSet(argument)
		if err != nil {
			return err
		}
		sets = append(sets, s)
	}
	_, err = f.Model(f.Names()[0], sets...)
	return err
}

// fixVocabularies hides the parts that testdata/vocabulary.txt does not name, so that suggestions do not depend on parts that are
// registered later.
func fixVocabularies(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile("testdata/vocabulary.txt")
	fatal.If(t, err)
	for line := range strings.Lines(string(text)) {
		title, names, _ := strings.Cut(line, ":")
		i := slices.IndexFunc(language.Vocabularies, func(v *table.Vocabulary) bool { return v.Title == title })
		if i < 0 {
			t.Fatalf("no vocabulary %q", title)
		}
		v, was := language.Vocabularies[i], language.Vocabularies[i].Names
		v.Names = func() []string { return strings.Fields(names) }
		t.Cleanup(func() { v.Names = was })
	}
}

func TestDiagnosticsAreRightToTheColumn(t *testing.T) {
	fixVocabularies(t)
	files, err := filepath.Glob("testdata/*.golden")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden files", err)
	}
	total := 0
	for _, file := range files {
		cases := readGolden(t, file)
		total += len(cases)
		for i, g := range cases {
			t.Run(g.title, func(t *testing.T) {
				err := g.run()
				got := "nothing is wrong"
				if err != nil {
					got = err.Error()
					checkCarets(t, err)
				}
				if *update {
					cases[i].want = got
				} else if got != g.want {
					t.Errorf("%s: got\n%s\nwant\n%s", file, got, g.want)
				}
			})
		}
		if *update {
			writeGolden(t, file, cases)
		}
	}
	if total < 45 {
		t.Errorf("only %d cases", total)
	}
}

// checkCarets compares the printed caret lines with the positions. A caret line is indented to the column of the
// position, with tabs where the line has tabs.
func checkCarets(t *testing.T, err error) {
	t.Helper()
	var all *table.Diagnostics
	if !errors.As(err, &all) {
		t.Fatalf("got a %T", err)
	}
	last := 0
	for _, d := range all.List {
		lines := strings.Split(d.String(), "\n")
		if len(lines) < 3 || len(lines) > 3 && !strings.HasSuffix(lines[2], "; write") && !strings.HasSuffix(lines[2], "; declare it") {
			t.Fatalf("not three lines: %q", d.String())
		}
		at := d.At.Place()
		source, caret := []rune(lines[1]), []rune(lines[2])
		for i := range 4 + at.Column - 1 {
			if (source[i] == '\t') != (caret[i] == '\t') || source[i] != '\t' && caret[i] != ' ' {
				t.Errorf("the caret line %q does not follow %q", lines[2], lines[1])
			}
		}
		if marked := strings.TrimLeft(lines[2], " \t"); !strings.HasPrefix(marked, strings.Repeat("^", at.Width)) {
			t.Errorf("%q: want %d carets", lines[2], at.Width)
		}
		if d.At.Source.Set == "" && at.Line < last {
			t.Errorf("line %d is reported after line %d", at.Line, last)
		}
		last = at.Line
		if n := utf8.RuneCountInString(at.Text); at.Column-1+at.Width > max(n, 1)+1 {
			t.Errorf("columns %d to %d of a line of %d", at.Column, at.Column+at.Width, n)
		}
	}
}

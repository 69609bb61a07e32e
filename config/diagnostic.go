package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Diagnostic is one mistake of a declaration: what is wrong, where it is written, and what was probably meant.
type Diagnostic struct {
	File       string // as given to [Load]; "" when the mistake is not in a file
	Set        string // the path of the --set argument that makes the mistake; "" when the mistake is in a file
	Line       int    // from 1
	Column     int    // from 1, in characters
	Width      int    // how many characters the caret marks
	SourceLine string // the line, or the whole --set argument
	Sweep      string // the sweep that it is wrong for; "" when it is of none
	Model      string // the model that it is wrong for; "" when it is of no model
	Part       string // "encoder[0]", "optimizer", ...; "" when it is of no part
	Kind       string // the part's kind, where it has one that is known
	Problem    string // "unknown key \"unitz\""
	Suggestion string // "did you mean \"units\"?", or the valid names; "" where there is nothing to suggest
}

// String prints the mistake as `file:line:column: model "NAME": part[index] (kind): problem`, then the line, then a
// caret with the suggestion. A mistake of --set starts with `--set PATH`.
func (d Diagnostic) String() string {
	var b strings.Builder
	switch {
	case d.Set != "":
		fmt.Fprintf(&b, "--set %s: ", printable(d.Set))
	case d.File != "" && d.Line > 0:
		fmt.Fprintf(&b, "%s:%d:%d: ", d.File, d.Line, d.Column)
	case d.File != "":
		fmt.Fprintf(&b, "%s: ", d.File)
	}
	if d.Sweep != "" {
		fmt.Fprintf(&b, "sweep %q: ", d.Sweep)
	}
	if d.Model != "" {
		fmt.Fprintf(&b, "model %q: ", d.Model)
	}
	if d.Part != "" {
		b.WriteString(d.Part)
		if d.Kind != "" {
			fmt.Fprintf(&b, " (%s)", d.Kind)
		}
		b.WriteString(": ")
	}
	b.WriteString(printable(d.Problem))
	switch {
	case d.Line > 0:
		fmt.Fprintf(&b, "\n    %s\n    %s", printable(d.SourceLine), d.caret())
	case d.Suggestion != "":
		fmt.Fprintf(&b, "\n    %s", d.Suggestion)
	}
	return b.String()
}

// caret is the line that marks the mistake: tabs are copied, so that it lines up wherever they stop.
func (d Diagnostic) caret() string {
	var b strings.Builder
	for i, r := range []rune(d.SourceLine) {
		if i == d.Column-1 {
			break
		}
		if r != '\t' {
			r = ' '
		}
		b.WriteRune(r)
	}
	b.WriteString(strings.Repeat("^", max(d.Width, 1)))
	if d.Suggestion != "" {
		b.WriteString(" " + d.Suggestion)
	}
	return b.String()
}

// Diagnostics are all mistakes of a declaration, in the order of the file.
type Diagnostics struct {
	List []Diagnostic
}

// Error implements error: every mistake with its line and caret.
func (d *Diagnostics) Error() string {
	texts := make([]string, len(d.List))
	for i, one := range d.List {
		texts[i] = one.String()
	}
	return strings.Join(texts, "\n")
}

// UnknownModel is the error for a name that no model of the file has.
type UnknownModel struct {
	File  string
	Name  string
	Names []string // of the file's models
}

// Error implements error.
func (e *UnknownModel) Error() string {
	text := fmt.Sprintf("unknown model %q in %s", e.Name, e.File)
	if e.Suggests() {
		text += ": " + suggest(e.Name, e.Names)
	}
	return text
}

// Suggests reports whether the error says which model is meant, or which ones there are: it does not where none is near and more
// are there than anyone reads.
func (e *UnknownModel) Suggests() bool {
	_, near := nearest(e.Name, e.Names)
	return near || len(e.Names) > 0 && len(e.Names) <= mostListed
}

// mostListed is the most names that an error lists.
const mostListed = 12

// finding is a mistake before it is printed: a diagnostic and where it is.
type finding struct {
	at      span
	owner   string // the model in whose tables it is written
	sweep   string
	model   string
	part    string
	kind    string
	problem string
	hint    string
}

func (f finding) diagnostic() Diagnostic {
	d := Diagnostic{Sweep: f.sweep, Model: f.model, Part: f.part, Kind: f.kind, Problem: f.problem, Suggestion: f.hint}
	if f.at.src == nil {
		return d
	}
	p := f.at.position()
	d.File, d.Set = f.at.src.file, f.at.src.set
	d.Line, d.Column, d.Width, d.SourceLine = p.line, p.column, p.width, p.text
	return d
}

// diagnostics sorts findings by place (those of several sources in the order given) and drops what is said twice: a mistake that a model inherits is reported for
// the model in which it is written.
func diagnostics(found []finding, sources ...*source) *Diagnostics {
	if len(found) == 0 {
		return nil
	}
	type saying struct {
		at                                span
		sweep, model, part, kind, problem string
	}
	said := map[saying]bool{}
	for _, f := range found {
		said[saying{f.at, f.sweep, f.model, f.part, f.kind, f.problem}] = false
	}
	kept := slices.DeleteFunc(slices.Clone(found), func(f finding) bool {
		own := saying{f.at, f.sweep, f.owner, f.part, f.kind, f.problem}
		if _, ok := said[own]; ok && f.owner != f.model {
			return true
		}
		own.model = f.model
		twice := said[own]
		said[own] = true
		return twice
	})
	slices.SortStableFunc(kept, func(a, b finding) int {
		return cmp.Or(slices.Index(sources, a.at.src)-slices.Index(sources, b.at.src), a.at.start-b.at.start)
	})
	all := &Diagnostics{}
	for _, f := range kept {
		all.List = append(all.List, f.diagnostic())
	}
	return all
}

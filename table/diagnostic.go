package table

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Diagnostic is one error of a text: what is wrong, where it is written, and what was probably meant.
type Diagnostic struct {
	At         Span
	Scope      string // what the subject is part of, such as `sweep "NAME"`; "" where there is no such thing
	Subject    string // what it is wrong for, such as `model "NAME"`; "" where it is nothing with a name
	Part       string // the table inside of the subject: "encoder[0]", "optimizer", ...; "" where it is the subject's own
	Kind       string // the kind of that table, where it has one that is known
	Problem    string // "unknown key \"unitz\""
	Suggestion string // "did you mean \"units\"?", or the valid names; "" where there is nothing to suggest

	node *Node // in which it is written
}

// In returns the diagnostic as one of what is written in n, which is also its place where it has none.
func (d Diagnostic) In(n *Node) Diagnostic {
	d.node = n
	if d.At.Source == nil {
		d.At = n.At
	}
	return d
}

// Owner names the declaration in which it is written: of an error that a model inherits, the model that it extends.
func (d Diagnostic) Owner() string { return d.node.Subject() }

// String prints the error as `FILE:LINE:COLUMN: SUBJECT: PART (KIND): PROBLEM`, then the line, then a caret with the
// suggestion. An error of a --set argument starts with `--set PATH`.
func (d Diagnostic) String() string {
	var b strings.Builder
	place := d.At.Place()
	if s := d.At.Source; s != nil && s.Set != "" {
		fmt.Fprintf(&b, "--set %s: ", printable(s.Set))
	} else if s != nil {
		fmt.Fprintf(&b, "%s:%d:%d: ", s.File, place.Line, place.Column)
	}
	for _, of := range []string{d.Scope, d.Subject} {
		if of != "" {
			b.WriteString(of + ": ")
		}
	}
	switch {
	case d.Part != "" && d.Kind != "":
		fmt.Fprintf(&b, "%s (%s): ", d.Part, d.Kind)
	case d.Part != "":
		b.WriteString(d.Part + ": ")
	}
	b.WriteString(printable(d.Problem))
	switch {
	case place.Line > 0:
		fmt.Fprintf(&b, "\n    %s\n    %s", printable(place.Text), strings.TrimSuffix(place.caret()+" "+d.Suggestion, " "))
	case d.Suggestion != "":
		fmt.Fprintf(&b, "\n    %s", d.Suggestion)
	}
	return b.String()
}

// caret marks the place below its line: tabs are copied, so that it lines up wherever they stop.
func (p Place) caret() string {
	line := []rune(p.Text)[:p.Column-1]
	for i, r := range line {
		if r != '\t' {
			line[i] = ' '
		}
	}
	return string(line) + strings.Repeat("^", p.Width)
}

// Diagnostics are all errors of a text, in its order.
type Diagnostics struct {
	List []Diagnostic
}

// Error implements error: every error with its line and caret.
func (d *Diagnostics) Error() string {
	texts := make([]string, len(d.List))
	for i, one := range d.List {
		texts[i] = one.String()
	}
	return strings.Join(texts, "\n")
}

// Report sorts what was found by place, after files the sources in the order given, and drops repetitions: an error that one
// declaration inherits from another is reported for the one in which it is written. It returns nil where nothing was found.
func Report(found []Diagnostic, sources ...*Source) error {
	if len(found) == 0 {
		return nil
	}
	said := map[Diagnostic]bool{}
	key := func(d Diagnostic, subject string) Diagnostic {
		d.Subject, d.Suggestion, d.node = subject, "", nil
		return d
	}
	for _, d := range found {
		said[key(d, d.Subject)] = false
	}
	kept := slices.DeleteFunc(slices.Clone(found), func(d Diagnostic) bool {
		if owner := d.Owner(); owner != d.Subject {
			if _, ok := said[key(d, owner)]; ok {
				return true
			}
		}
		twice := said[key(d, d.Subject)]
		said[key(d, d.Subject)] = true
		return twice
	})
	slices.SortStableFunc(kept, func(a, b Diagnostic) int {
		return cmp.Or(slices.Index(sources, a.At.Source)-slices.Index(sources, b.At.Source), a.At.Start-b.At.Start)
	})
	return &Diagnostics{kept}
}

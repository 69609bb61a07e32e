package table

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
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
// suggestion. An error of a --set argument starts with `--set PATH`. What is too long to be read is shortened.
func (d Diagnostic) String() string {
	var b strings.Builder
	place := d.At.Place()
	if s := d.At.Source; s != nil && s.Set != "" {
		fmt.Fprintf(&b, "--set %s: ", shown(s.Set))
	} else if s != nil {
		fmt.Fprintf(&b, "%s:%d:%d: ", s.File, place.Line, place.Column)
	}
	part := shown(d.Part)
	if part != "" && d.Kind != "" {
		part += fmt.Sprintf(" (%s)", d.Kind)
	}
	for _, of := range []string{shown(d.Scope), shown(d.Subject), part} {
		if of != "" {
			b.WriteString(of + ": ")
		}
	}
	b.WriteString(shown(d.Problem))
	switch hint := shortened(d.Suggestion, 20*mostShown); {
	case place.Line > 0:
		text, caret := place.marked()
		fmt.Fprintf(&b, "\n    %s\n    %s", text, strings.TrimSuffix(caret+" "+hint, " "))
	case hint != "":
		fmt.Fprintf(&b, "\n    %s", hint)
	}
	return b.String()
}

// mostShown is the most characters of a name or a problem that are printed, and of a line on either side of its caret.
const mostShown = 400

// shown returns a text as it is printed.
func shown(text string) string { return printable(shortened(text, mostShown)) }

// shortened returns the first characters of a text.
func shortened(text string, most int) string {
	n := 0
	for i := range text {
		if n++; n > most {
			return text[:i] + "..."
		}
	}
	return text
}

// marked returns the line and the carets below it: tabs are copied, so that these line up wherever they stop.
func (p Place) marked() (line, caret string) {
	before := []rune(tail(p.Text[:p.from]))
	line = printable(string(before)) + shown(p.Text[p.from:])
	for i, r := range before {
		if r != '\t' {
			before[i] = ' '
		}
	}
	return line, string(before) + strings.Repeat("^", min(p.Width, mostShown))
}

// tail returns the last characters of a text.
func tail(text string) string {
	from := len(text)
	for range mostShown {
		_, size := utf8.DecodeLastRuneInString(text[:from])
		from -= size
	}
	if from > 0 {
		return "..." + text[from:]
	}
	return text
}

// Diagnostics are all errors of a text, in its order.
type Diagnostics struct {
	List []Diagnostic
}

// mostPrinted is the most errors that are printed: each takes time with the length of its line.
const mostPrinted = 1000

// Error implements error: the errors with their lines and carets.
func (d *Diagnostics) Error() string {
	var texts []string
	for _, one := range d.List[:min(len(d.List), mostPrinted)] {
		texts = append(texts, one.String())
	}
	if more := len(d.List) - mostPrinted; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more errors", more))
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

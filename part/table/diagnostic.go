package table

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Diagnostic is one error of a text: the problem, its position and a suggestion.
type Diagnostic struct {
	At         Span
	Scope      string // the declaration that contains the subject, for example `sweep "NAME"`; "" if none
	Subject    string // the declaration with the error, for example `model "NAME"`; "" if it has no name
	Part       string // the table in the subject: "encoder[0]", "optimizer", ...; "" for the subject's table
	Kind       string // the kind of that table, if known
	Problem    string // "unknown key \"unitz\""
	Suggestion string // "did you mean \"units\"?", or the valid names; the lines after the first are text to write; "" for no suggestion

	node *Node // in which it is written
}

// In returns the diagnostic as an error in n. Without a position it gets the position of n.
func (d Diagnostic) In(n *Node) Diagnostic {
	d.node = n
	if d.At.Source == nil {
		d.At = n.At
	}
	return d
}

// Owner names the declaration that contains the error: for an inherited error, the model that is extended.
func (d Diagnostic) Owner() string { return d.node.Subject() }

// String prints the error as `FILE:LINE:COLUMN: SUBJECT: PART (KIND): PROBLEM`, then the line, then a caret with the
// suggestion. An error of a --set argument starts with `--set PATH`. Long texts are shortened.
func (d Diagnostic) String() string {
	var b strings.Builder
	place := d.At.Place()
	if s := d.At.Source; s != nil && s.Set != "" {
		fmt.Fprintf(&b, "--set %s: ", shown(s.Set))
	} else if s != nil {
		fmt.Fprintf(&b, "%s:%d:%d: ", printable(s.File), place.Line, place.Column)
	}
	part := shown(d.Part)
	if part != "" && d.Kind != "" {
		part += fmt.Sprintf(" (%s)", shown(d.Kind))
	}
	for _, of := range []string{shown(d.Scope), shown(d.Subject), part} {
		if of != "" {
			b.WriteString(of + ": ")
		}
	}
	b.WriteString(shown(d.Problem))
	hint := shortened(strings.TrimSuffix(d.Suggestion, "\n"), 20*mostShown)
	if place.Line > 0 {
		text, caret := place.marked()
		b.WriteString("\n    " + text)
		hint = strings.TrimSuffix(caret+" "+hint, " ")
	}
	if hint != "" {
		for line := range strings.SplitSeq(hint, "\n") {
			b.WriteString(strings.TrimRight("\n    "+printable(line), " "))
		}
	}
	return b.String()
}

// mostShown is the maximum number of printed characters of a name or a problem, and of a line on either side of its caret.
const mostShown = 400

// shown returns a text in its printed form.
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

// marked returns the line and the carets below it. Tabs are copied to keep the carets aligned for every tab width.
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

// mostPrinted is the maximum number of printed errors: each takes time in proportion to the length of its line.
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

// Report sorts the errors by position, files before other sources, and removes duplicates: an inherited error is only
// reported for the declaration that contains it. It returns nil if there are no errors.
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

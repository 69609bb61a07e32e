package table

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"

	"tessera/internal/lists"
)

// Diagnostic is one error of a text: the problem, its position and a suggestion.
type Diagnostic struct {
	At         Span
	Scope      string // declaration that contains the subject, for example `sweep "NAME"`; "" if there is none
	Subject    string // declaration that contains the error, for example `model "NAME"`; "" if it has no name
	Part       string // table within the subject: "encoder[0]", "optimizer", ...; "" for the table of the subject
	Kind       string // kind of this table, if known
	Problem    string // "unknown key \"unitz\""
	Suggestion string // "did you mean \"units\"?", or the valid names; further lines are text to copy; "" for no suggestion

	node *Node // table or value that contains the error
}

// In returns the diagnostic as an error within n. If it has no position, it gets the position of n.
func (d Diagnostic) In(n *Node) Diagnostic {
	d.node = n
	if d.At.Source == nil {
		d.At = n.At
	}
	return d
}

// Owner returns the declaration that contains the error. For an inherited error this is the model that is extended.
func (d Diagnostic) Owner() string { return d.node.Subject() }

// String prints the error as `FILE:LINE:COLUMN: SUBJECT: PART (KIND): PROBLEM`, then the line, then a caret with the
// suggestion. An error in a --set argument starts with `--set PATH`. Long texts are shortened.
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

// mostShown is the maximum number of printed characters of a name or a problem, and of the part of a line on either
// side of its caret.
const mostShown = 400

// shown returns a text in its printed form: shortened, without invisible characters.
func shown(text string) string { return printable(shortened(text, mostShown)) }

// shortened returns the beginning of a text, with at most the given number of characters.
func shortened(text string, most int) string {
	n := 0
	for i := range text {
		if n++; n > most {
			return text[:i] + "..."
		}
	}
	return text
}

// marked returns the line of the source and the carets below it. Tabs are copied to the line of the carets, so that
// they stay aligned for every tab width.
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

// Diagnostics contains all errors of a text, in the order of the text.
type Diagnostics struct {
	List []Diagnostic
}

// mostPrinted is the maximum number of printed errors. Printing an error takes time in proportion to the length of its
// line.
const mostPrinted = 1000

// Error returns the errors with their lines and carets.
func (d *Diagnostics) Error() string {
	texts := lists.Map(d.List[:min(len(d.List), mostPrinted)], Diagnostic.String)
	if more := len(d.List) - mostPrinted; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more errors", more))
	}
	return strings.Join(texts, "\n")
}

// Report sorts the errors by position, with files before other sources, and removes duplicates: an inherited error is
// reported only for the declaration that contains it. It returns nil if there are no errors.
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

// Suggest returns a suggestion for an invalid name: the most similar valid name, or else all valid names, or the three nearest of many.
func Suggest(name string, valid []string) string { return SuggestOf(name, valid, "") }

// SuggestOf is [Suggest] with the command that lists all names, which is said where these are many; "" if there is none.
func SuggestOf(name string, valid []string, all string) string {
	if len(valid) == 0 {
		return ""
	}
	if near, ok := Nearest(name, valid); ok {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if len(valid) <= mostInline || all == "" && len(valid) <= mostListed {
		return "valid: " + Quoted(valid)
	}
	text := fmt.Sprintf("there are %d", len(valid))
	if len(name) <= mostCompared {
		a := plainName(name)
		text = "the nearest are " + Quoted(slices.SortedStableFunc(slices.Values(valid), func(v, w string) int {
			return editDistance(a, plainName(v)) - editDistance(a, plainName(w))
		})[:3])
	}
	if all != "" {
		text += "; " + all + " lists all"
	}
	return text
}

const (
	mostInline   = 12  // maximum number of names that a suggestion lists if a command lists them
	mostListed   = 24  // maximum number of names that a suggestion lists if no command does
	mostCompared = 100 // maximum length of a compared name in bytes, because the time is the product of the lengths
)

// Nearest returns the valid name with the same meaning ([synonyms]), or else the most similar one. A name is similar if
// at most one third of the letters differ, or if one name is a prefix of the other. Swapping two neighbouring letters
// counts as one difference. Case is ignored, and - equals _.
func Nearest(name string, valid []string) (string, bool) {
	best, distance := "", 0
	if len(name) > mostCompared {
		return "", false
	}
	if same, ok := byMeaning(name, valid); ok {
		return same, true
	}
	a := plainName(name)
	for _, v := range valid {
		if len(v) > mostCompared {
			continue
		}
		b := plainName(v)
		letters := max(utf8.RuneCountInString(a), utf8.RuneCountInString(b))
		limit := min(max(1, letters/3), letters-1) // a name of one letter has no similar one
		d := editDistance(a, b)
		if d > limit && min(len(a), len(b)) >= 3 && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a)) {
			d = limit
		}
		if d <= limit && (best == "" || d < distance) {
			best, distance = v, d
		}
	}
	return best, best != ""
}

// NearestPath returns the dotted path that is most similar to another one among those with the same last name; ok is false if
// there are none.
func NearestPath(path string, valid []string) (best string, ok bool) {
	last, distance := path[strings.LastIndex(path, ".")+1:], 0
	for _, v := range valid {
		if v[strings.LastIndex(v, ".")+1:] != last || len(path) > mostCompared || len(v) > mostCompared {
			continue
		}
		if d := editDistance(plainName(path), plainName(v)); best == "" || d < distance {
			best, distance = v, d
		}
	}
	return best, best != ""
}

func plainName(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), "-", "_")
}

// editDistance returns the Levenshtein distance between a and b. It is 1 if they differ only in the order of two
// neighbouring letters.
func editDistance(a, b string) int {
	if len(a) == len(b) {
		for i := 0; i+1 < len(a); i++ {
			if a[:i] == b[:i] && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:] {
				return min(1, levenshtein.ComputeDistance(a, b))
			}
		}
	}
	return levenshtein.ComputeDistance(a, b)
}

// Quoted returns the names in double quotes.
func Quoted(names []string) string {
	q := lists.Map(names, func(n string) string { return fmt.Sprintf("%q", n) })
	return strings.Join(q, ", ")
}

// Suggestions for a misspelt key, value or path.

// suggestKey returns a suggestion for an unknown key of the table n: a key of an inner table, the hint of the language,
// or one of the valid keys.
func (d *Decoder) suggestKey(key string, n *Node, valid []Field, p spot) string {
	if d.Language.Hint != nil {
		_, near := Nearest(key, keysOf(valid))
		if hint := d.Language.Hint(p.part, key, n, p.kind, near); hint != "" {
			return hint
		}
	}
	if p.part == "" {
		if path, ok := d.inside(key, n, valid); ok {
			return fmt.Sprintf("did you mean %q?", path)
		}
	}
	return d.Language.suggest("key", key, keysOf(valid))
}

// suggest is like [Suggest]. If [Language.Lacks] explains the name, it returns this explanation instead of a similar
// name.
func (l *Language) suggest(what, name string, valid []string) string {
	if _, ok := byMeaning(name, valid); !ok && l != nil && l.Lacks != nil {
		if hint := l.Lacks(what, name); hint != "" {
			return hint
		}
	}
	if l != nil {
		if i := slices.IndexFunc(l.Vocabularies, func(v *Vocabulary) bool { return v.What == what }); i >= 0 {
			return SuggestOf(name, valid, l.Vocabularies[i].lister())
		}
	}
	return Suggest(name, valid)
}

// lister returns the command that lists the names of the vocabulary.
func (v *Vocabulary) lister() string { return "`tessera list " + v.Title + "`" }

// all lists the names of the vocabulary, or the command that does if there are many. more are further valid names.
func (v *Vocabulary) all(more ...string) string {
	names := append(more, v.Names()...)
	if len(names) <= mostInline {
		return "valid: " + Quoted(names)
	}
	return v.lister() + " lists the valid ones"
}

// inside finds the key in the inner tables of a declaration n: "train.epochs" for epochs. It searches the keys of
// tables before the keys of their parts.
func (d *Decoder) inside(key string, n *Node, fields []Field) (path string, ok bool) {
	if _, ok := byMeaning(key, keysOf(fields)); ok {
		return "", false
	}
	for _, ofKind := range []bool{false, true} {
		for _, f := range fields {
			if f.Value.Kind() != reflect.Struct {
				continue
			}
			own, slot := d.Language.fieldsOf(f.Value, d.kind)
			if (slot != nil) != ofKind {
				continue
			}
			if c := n.Child(f.Key); ofKind && c != nil {
				kind, _ := c.Named(slot.selector.Key).Child(slot.selector.Key).Text()
				part, _ := slot.New(kind)
				own = append(own, Fields(part)...)
			}
			if _, ok := findField(own, key); ok {
				return f.Key + "." + key, true
			}
			if same, ok := byMeaning(key, keysOf(own)); ok {
				return f.Key + "." + same, true
			}
		}
	}
	return "", false
}

// asTable returns a suggestion to write a value as a table: a text under the only required key, or true as the table of
// defaults. It returns "" if neither applies.
func asTable(n *Node, fields []Field, p spot) string {
	required := lists.Only(fields, func(f Field) bool { return f.Required })
	text, isText := n.Text()
	switch {
	case isText && len(required) == 1 && required[0].Value.Kind() == reflect.String:
		return fmt.Sprintf("write { %s = %s }", required[0].Key, StringText(text))
	case n.Leaf == true && len(required) == 0 && !strings.HasSuffix(p.part, "]"):
		return "write {}, which has all defaults"
	}
	return ""
}

// bracketed returns a suggestion to write one value as a list, and "" if the list does not accept the value. It
// restores the quotes of texts in brackets, which a shell usually removes.
func bracketed(n *Node, f Field) string {
	text, isText := n.Text()
	element := reflect.New(f.Value.Type().Elem()).Elem()
	switch {
	case isText && element.Kind() == reflect.String:
		items := []string{text}
		if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
			items = strings.Split(strings.Trim(text, "[]"), ",")
		}
		for i, item := range items {
			items[i] = StringText(strings.Trim(item, ` '"`))
		}
		return "write [" + strings.Join(items, ", ") + "]"
	case f.Key == "seeds": // which may be meant as their number
		return "write the seeds themselves, such as [1, 2, 3]"
	case n.Leaf != nil && element.Kind() != reflect.String && element.Kind() != reflect.Bool && (Field{f.column, element}).SetNumber(n.Leaf):
		return "write [" + n.Describe() + "]"
	}
	return ""
}

// below returns the path without the name of the declaration, if a --set path begins with this name as headers in a
// file do.
func (d *Decoder) below(key string, n *Node, p spot) (path string, ok bool) {
	if p.part != "" || !n.path || len(n.Keys) == 0 || len(d.Path) != 2 {
		return "", false
	}
	if key == d.Path[0] {
		key, n = n.Keys[0], n.table[0]
	}
	if key != d.Path[1] || !n.path || len(n.Keys) == 0 {
		return "", false
	}
	return pathText(Change{Root: n}.Path()), true
}

// noElements reports the indices in a --set path that index an empty list.
func (d *Decoder) noElements(n *Node, key string, tables bool, p spot) {
	hint := fmt.Sprintf(`write the whole list: %s=["..."]`, key)
	if tables {
		hint = fmt.Sprintf("write the whole list: %s=[{ ... }]", key)
	}
	for i, k := range n.Keys {
		_, err := strconv.ParseUint(k, 10, 31)
		d.report(p, n.table[i].Key, n, key+": "+badIndex(k, err == nil, 0), hint)
	}
}

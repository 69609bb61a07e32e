package table

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/BurntSushi/toml"

	"tessera/internal/lists"
)

// Parse reads a source into a tree of values and positions. Values come from BurntSushi/toml, positions from a second
// parser; see [places]. For a syntax error the tree is nil. Duplicate keys are errors, too, and the tree does not
// contain them.
func Parse(src *Source) (*Node, []Diagnostic) {
	if i := invalidUTF8(src.Text); i >= 0 {
		return nil, []Diagnostic{{At: Span{src, i, i + 1}, Problem: "not valid UTF-8"}}
	}
	p := readPlaces(src, false)
	if p.syntax != nil {
		return nil, []Diagnostic{*p.syntax}
	}
	var values map[string]any
	_, err := toml.Decode(p.masked(), &values)
	if err != nil {
		return nil, append(p.duplicates(), valueError(src, err))
	}
	fill(p.root, values)
	return p.root, p.duplicates()
}

// ParseValid is like Parse, for a text that Parse is known to read without errors, as a test of an embedded file can show. It takes
// the values from the parser of positions too, which is less than half of the work.
func ParseValid(src *Source) (*Node, []Diagnostic) {
	if p := readPlaces(src, true); p.syntax == nil && len(p.twice) == 0 && !p.unread {
		return p.root, nil
	}
	return Parse(src)
}

// fill sets the scalars of a tree from the decoded value, which has the same structure.
func fill(n *Node, value any) {
	switch v := value.(type) {
	case map[string]any:
		for i, k := range n.Keys {
			if x, ok := v[k]; ok {
				fill(n.table[i], x)
			}
		}
	case []map[string]any:
		for i := range min(len(v), len(n.Items)) {
			fill(n.Items[i], v[i])
		}
	case []any:
		for i := range min(len(v), len(n.Items)) {
			fill(n.Items[i], v[i])
		}
	default:
		n.Leaf = value
	}
}

func valueError(src *Source, err error) Diagnostic {
	d := Diagnostic{At: Span{src, 0, 0}, Problem: err.Error()}
	if value, ok := errors.AsType[toml.ParseError](err); ok {
		at := min(max(value.Position.Start, 0), len(src.Text))
		d.Problem, d.At = value.Message, Span{src, at, min(at+max(value.Position.Len, 1), len(src.Text))}
	}
	return d
}

var (
	decimalComma = regexp.MustCompile(`^[-+]?[0-9]+,[0-9]+$`)
	yaml         = regexp.MustCompile(`^\s*(- )?[A-Za-z_][A-Za-z0-9_-]*\s*:(\s|$)`)
	call         = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*\(`)
	bareWord     = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*$`)
)

// foreign maps words of other languages to TOML. No key without a value is null.
var foreign = map[string]string{"True": "write true", "False": "write false", "None": "leave the key out", "null": "leave the key out", "nil": "leave the key out",
	"yes": "write true", "no": "write false", "NaN": "write nan", "Infinity": "write inf"}

// typo returns a suggestion for the most common errors of a text: another language, a text without quotes, or a decimal comma.
func typo(text string, at int) string {
	line := text[strings.LastIndexByte(text[:at], '\n')+1:]
	line, _, _ = strings.Cut(line, "\n")
	name, value, set := strings.Cut(line, "=")
	name = strings.TrimSpace(name)
	switch value = strings.TrimSpace(value); {
	case strings.HasPrefix(strings.TrimSpace(text), "{"):
		return "this is JSON: in TOML a table begins with its header, [model.NAME], and keys have no quotes: key = value"
	case strings.HasPrefix(name, "//") || strings.Contains(value, "//"):
		return "a comment begins with #"
	case at < len(text) && strings.ContainsAny(text[at:min(len(text), at+3)], "“”„‘’"):
		return "write straight quotes: \""
	case at < len(text) && call.MatchString(text[at:]):
		return "a part is a table: { kind = \"" + strings.ToLower(wordAt(text, at)) + "\", ... }"
	case at < len(text) && text[at] >= utf8.RuneSelf && strings.Count(text[strings.LastIndexByte(text[:at], '\n')+1:at], `"`)%2 == 0:
		return `a name with other characters than A-Z, a-z, 0-9, - and _ is put in quotes, as in [model."größe"]`
	case strings.HasPrefix(name, "[") && strings.ContainsAny(strings.Trim(name, "[]"), " \t"):
		return `put a name with a space in quotes, as in [model."my model"], or write - in place of the space`
	case !set && yaml.MatchString(line):
		return "this is YAML: in TOML a table begins with its header, [model.NAME], and keys are set by =: key = value"
	case at < len(text) && text[at] == ':':
		return "keys have no quotes and are set by =: { key = value }"
	case foreignWord(text, at, value) != "":
		return foreignWord(text, at, value)
	case decimalComma.MatchString(value):
		return "numbers have a decimal point"
	case set && strings.Count(line, `"`)%2 == 1:
		return "the closing quote is missing"
	case bareWord.MatchString(value), strings.HasSuffix(strings.TrimRight(text[:at], " "), "=") && bareWord.MatchString(wordAt(text, at)):
		return "put text in quotes"
	}
	return ""
}

// foreignWord returns the TOML for a word of another language: the value of a key, or the word at a position, as in a table within a line.
func foreignWord(text string, at int, value string) string {
	return cmp.Or(foreign[strings.TrimRight(value, " ,]}")], foreign[wordAt(text, at)])
}

func wordAt(text string, at int) string {
	isEnd := func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	word := text[strings.LastIndexFunc(text[:at], isEnd)+1:]
	if end := strings.IndexFunc(word, isEnd); end >= 0 {
		word = word[:end]
	}
	return word
}

// index matches the index of an element, also with leading zeros.
var index = regexp.MustCompile(`\[([0-9]+)\]`)

// Change is one change of a table: --set PATH=VALUE.
type Change struct {
	Source *Source
	Root   *Node
	At     Span // position of the whole change
}

// ParseChange reads PATH=VALUE. PATH is any key of a table; elements of lists have indices from 0 (loss.1.weight).
// VALUE is a TOML value, or a string if it is not valid TOML. The error is a [*Diagnostics].
func ParseChange(argument string) (Change, error) {
	path, value, ok := strings.Cut(argument, "=")
	src := newSource("", argument)
	src.Set = strings.TrimSpace(path)
	whole := Span{src, 0, len(argument)}
	fail := func(problem string) (Change, error) {
		d := Diagnostic{At: whole, Problem: problem}
		if dotted := index.ReplaceAllString(src.Set, ".$1"); dotted != src.Set && !strings.ContainsAny(dotted, "\r\n") {
			d.Suggestion = "write " + dotted
		}
		return Change{}, Report([]Diagnostic{d})
	}
	switch {
	case invalidUTF8(argument) >= 0:
		return fail("not valid UTF-8")
	case !ok || src.Set == "":
		src.Set = strings.TrimSpace(argument)
		return fail("want PATH=VALUE, for example train.batch=64")
	case strings.ContainsAny(path, "[]{}#\r\n"):
		return fail("not a path of keys, such as train.batch or loss.1.weight")
	}
	if root, found := Parse(src); root != nil && len(found) == 0 && root.single() {
		root.path = true
		return Change{src, root, whole}, nil
	}
	text := *src
	text.Text = path + `=""`
	root, found := Parse(&text)
	if root == nil || len(found) > 0 || !root.single() {
		return fail("not a path of keys, such as train.batch or loss.1.weight")
	}
	root.path = true
	n := root
	for n.IsTable() {
		n = n.table[0]
		n.Key.Source = src
		n.At = n.Key
	}
	n.Leaf, n.At = value, Span{src, len(argument) - len(value), len(argument)}
	return Change{src, root, whole}, nil
}

// single reports whether a tree contains only one path. An argument with line breaks may contain more.
func (n *Node) single() bool {
	for n.IsTable() && (n.path || n.parent == nil) {
		if len(n.Keys) != 1 {
			return false
		}
		n = n.table[0]
	}
	return true
}

// NewChange returns the change that sets the key at a path of names to the value n. The spans are the positions of the
// names.
func NewChange(path []string, at []Span, n *Node) Change {
	value := *n
	value.Key = at[len(at)-1]
	last := &value
	for i := len(path) - 1; i >= 0; i-- {
		t := &Node{form: table, path: true, parent: n.parent, name: n.name}
		if i > 0 {
			t.Key, t.At = at[i-1], at[i-1]
		}
		t.Put(path[i], last)
		last = t
	}
	return Change{n.At.Source, last, n.At}
}

// Path returns the names on the path to the changed key.
func (c Change) Path() []string {
	var path []string
	for n := c.Root; n != nil && n.path && len(n.Keys) == 1; n = n.table[0] {
		path = append(path, n.Keys[0])
	}
	return path
}

// pathText returns a dotted path, with names in quotes where necessary.
func pathText(path []string) string {
	texts := lists.Map(path, KeyText)
	return strings.Join(texts, ".")
}

func badIndex(key string, number bool, n int) string {
	switch {
	case !number:
		return fmt.Sprintf("got %q, want an index: 0 is the first element", key)
	case n == 0:
		return fmt.Sprintf("index %s is out of range: there are no elements", key)
	}
	return fmt.Sprintf("index %s is out of range: the elements are 0 to %d", key, n-1)
}

// Source is an input text: a file or one --set argument.
type Source struct {
	File   string // name of the file for messages; "" for a --set argument
	Set    string // path of a --set argument; "" for a file
	Text   string
	starts []int // offset of each line
}

// NewSource returns the source for the text of a file. It removes a byte order mark.
func NewSource(file, text string) *Source {
	return newSource(file, strings.TrimPrefix(text, "\ufeff"))
}

func newSource(file, text string) *Source {
	s := &Source{File: file, Text: text, starts: []int{0}}
	for i := range len(s.Text) {
		if s.Text[i] == '\n' {
			s.starts = append(s.starts, i+1)
		}
	}
	return s
}

// Span is a range of bytes of a source. The zero span has no position.
type Span struct {
	Source     *Source
	Start, End int
}

// Place is the position of a span as line and column, both from 1. Columns count characters.
type Place struct {
	Line, Column int
	Width        int    // number of characters, at most to the end of the first line
	Text         string // text of the line
	from         int    // offset of the span in Text, in bytes
}

// Place returns the place of the start of the span. It returns the zero place for a span without position.
func (s Span) Place() Place {
	if s.Source == nil {
		return Place{}
	}
	starts := s.Source.starts
	line := sort.SearchInts(starts, s.Start+1) - 1
	end := len(s.Source.Text)
	if line+1 < len(starts) {
		end = starts[line+1] - 1
	}
	text := strings.TrimSuffix(s.Source.Text[starts[line]:end], "\r")
	from := min(s.Start-starts[line], len(text))
	to := min(max(s.End-starts[line], from), len(text))
	return Place{
		Line:   line + 1,
		Column: utf8.RuneCountInString(text[:from]) + 1,
		Width:  max(utf8.RuneCountInString(strings.TrimRight(text[from:to], " \t")), 1),
		Text:   text,
		from:   from,
	}
}

// invalidUTF8 returns the offset of the first byte that is not UTF-8, or -1.
func invalidUTF8(text string) int {
	for i, r := range text {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(text[i:]); size == 1 {
				return i
			}
		}
	}
	return -1
}

// printable replaces each control character or other invisible character by one visible character, so that carets stay
// in place.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

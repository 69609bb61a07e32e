package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
	"github.com/pelletier/go-toml/v2/unstable"
)

// parse reads a source into a tree of values and places. Values come from BurntSushi/toml; places from the syntax tree
// of go-toml, because BurntSushi's keep one place per dotted path and thus not that of the second element of an array
// of tables. The findings are syntax errors, after which the tree is nil, and duplicates, which are left out of it.
func parse(src *source) (*node, []finding) {
	p := &placer{src: src, root: newTable()}
	p.current = p.root
	p.parser.Reset([]byte(src.text))
	for p.parser.NextExpression() {
		p.expression(p.parser.Expression())
	}
	if err := p.parser.Error(); err != nil {
		return nil, []finding{p.syntaxError(err)}
	}
	p.endSection(len(src.text))
	var values map[string]any
	if _, err := toml.Decode(p.masked(), &values); err != nil {
		p.attribute()
		return nil, append(p.found, valueError(src, err))
	}
	fill(p.root, values)
	p.attribute()
	return p.root, p.found
}

// fill sets the scalars of a tree from the decoded values, which have the same structure.
func fill(n *node, value any) {
	switch v := value.(type) {
	case map[string]any:
		for k, x := range v {
			if c := n.child(k); c != nil {
				fill(c, x)
			}
		}
	case []map[string]any:
		for i := range min(len(v), len(n.items)) {
			fill(n.items[i], v[i])
		}
	case []any:
		for i := range min(len(v), len(n.items)) {
			fill(n.items[i], v[i])
		}
	default:
		n.leaf = value
	}
}

func (p *placer) syntaxError(err error) finding {
	f := finding{at: span{p.src, len(p.src.text), len(p.src.text)}, problem: err.Error()}
	var syntax *unstable.ParserError
	if errors.As(err, &syntax) {
		f.problem = syntax.Message
		f.at = p.span(p.parser.Range(syntax.Highlight))
	}
	f.hint = p.slip(f.at.start)
	// The parser counts in bytes: name the whole character.
	if r, size := utf8.DecodeRuneInString(p.src.text[f.at.start:]); size > 1 {
		f.problem = strings.ReplaceAll(f.problem, fmt.Sprintf("%#U", p.src.text[f.at.start]), fmt.Sprintf("%#U", r))
		f.at.end = max(f.at.end, f.at.start+size)
	}
	return f
}

// slip says what to do about the commonest slips in a value: a text without quotes, a decimal comma.
func (p *placer) slip(at int) string {
	text := p.src.text
	line := text[strings.LastIndexByte(text[:at], '\n')+1:]
	line, _, _ = strings.Cut(line, "\n")
	_, value, ok := strings.Cut(line, "=")
	value = strings.TrimSpace(value)
	switch {
	case !ok:
		return ""
	case decimalComma.MatchString(value):
		return "numbers have a decimal point"
	case bareWord.MatchString(value):
		return "put text in quotes"
	}
	return ""
}

var (
	decimalComma = regexp.MustCompile(`^[-+]?[0-9]+,[0-9]+$`)
	bareWord     = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*$`)
)

func valueError(src *source, err error) finding {
	f := finding{at: span{src, 0, 0}, problem: err.Error()}
	var value toml.ParseError
	if errors.As(err, &value) {
		f.problem = value.Message
		at := min(max(value.Position.Start, 0), len(src.text))
		f.at = span{src, at, min(at+max(value.Position.Len, 1), len(src.text))}
	}
	return f
}

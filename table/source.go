package table

import (
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Source is a text that is read: a file, or one --set argument.
type Source struct {
	File   string // its name in messages; "" for a --set argument
	Set    string // the path of a --set argument; "" for a file
	Text   string
	starts []int // offset of each line
}

// NewSource returns the text of a file, without a byte order mark.
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

// Span is a range of bytes of a source. The zero span is nowhere.
type Span struct {
	Source     *Source
	Start, End int
}

// Place is a span as people count: lines and columns from 1, columns in characters.
type Place struct {
	Line, Column int
	Width        int    // in characters; a span of several lines ends with its first
	Text         string // of the line
	from         int    // in bytes of Text
}

// Place returns the place of the span's first line, the zero place of a span that is nowhere.
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

// printable replaces control and other invisible characters, one for one, so that a caret stays in place.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

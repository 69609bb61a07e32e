package config

import (
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// source is a text that declares something: a file, or one --set argument.
type source struct {
	file   string
	set    string // the path of a --set argument; "" for a file
	text   string
	starts []int // offset of each line
}

func newSource(file, text string) *source {
	s := &source{file: file, text: text, starts: []int{0}}
	for i := range len(text) {
		if text[i] == '\n' {
			s.starts = append(s.starts, i+1)
		}
	}
	return s
}

// span is a range of bytes of a source. The zero span is nowhere.
type span struct {
	src        *source
	start, end int
}

// line returns the number of the line, from 0, that holds an offset.
func (s *source) line(offset int) int {
	return sort.SearchInts(s.starts, offset+1) - 1
}

// lineText returns a line without its end.
func (s *source) lineText(line int) string {
	end := len(s.text)
	if line+1 < len(s.starts) {
		end = s.starts[line+1] - 1
	}
	return strings.TrimSuffix(s.text[s.starts[line]:end], "\r")
}

// position is a span as people count: lines and columns from 1, columns in characters.
type position struct {
	line, column int
	text         string // of the line
	width        int    // in characters; a span of several lines ends with its first
}

func (p span) position() position {
	line := p.src.line(p.start)
	text := p.src.lineText(line)
	from := min(p.start-p.src.starts[line], len(text))
	to := min(max(p.end-p.src.starts[line], from), len(text))
	return position{
		line:   line + 1,
		column: utf8.RuneCountInString(text[:from]) + 1,
		text:   text,
		width:  max(utf8.RuneCountInString(strings.TrimRight(text[from:to], " \t")), 1),
	}
}

// printable replaces what a terminal would obey or not show, one character for one, so that a caret stays in place.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

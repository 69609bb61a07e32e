package data

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Vectors of words in the formats of word2vec, which fastText and gensim write too: a line with the numbers of words and of values, then every word,
// a space and its values: numbers in the rest of a line, or 32-bit floats, after which a newline may follow. A text without the first line is one of
// GloVe. They are read as a table with the column name and the columns 0, 1, ....
func init() {
	RegisterFormat(Format{Dataset: "csv", Sort: CellFiles, Suffixes: []string{".vec", ".bin", ".vec.gz", ".bin.gz"}, Is: isVectors, Open: openVectors})
}

var (
	vectorSizes = regexp.MustCompile(`^([0-9]+) ([0-9]+) ?\r?\n`)
	ofFastText  = begins("\xba\x16\x4f\x2f")
)

// vectorLine is the size of the longest line or word that is read.
const vectorLine = 1 << 22

func isVectors(start []byte) bool {
	if vectorSizes.Match(start) || ofFastText(start) {
		return true
	}
	first, _, whole := bytes.Cut(start, []byte("\n"))
	cells := strings.Split(strings.TrimRight(string(first), " \r"), " ")
	if !whole { // the last number is cut
		cells = cells[:len(cells)-1]
	}
	return len(cells) > 2 && len(cells[0]) > 0 && !areFloats(cells[:1]) && areFloats(cells[1:]) // numbers alone are no words
}

func areFloats(cells []string) bool {
	for _, cell := range cells {
		if _, err := strconv.ParseFloat(cell, 32); err != nil {
			return false
		}
	}
	return true
}

func openVectors(ctx context.Context, path string, _ *Files) (o Opened, err error) {
	if o.contents, err = openContents(path); err != nil {
		return o, err
	}
	rows, err := beginVectors(ctx, o.contents)
	if err != nil {
		return o, err
	}
	o.csv = &csvFile{header: rows.names, rows: func(do func(tableRow) error) (string, error) {
		again, err := beginVectors(ctx, o.contents)
		if err == nil {
			err = eachOf(again.next, do)
		}
		return "", err
	}}
	return o, nil
}

type vectorRows struct {
	from   *bufio.Reader
	names  []string // of the columns
	words  int      // number that the first line says; -1 without it
	binary bool
	line   int // of the last word, for texts without the first line and for others
	read   int // number of words
	cells  []string
	buffer []byte
}

func beginVectors(ctx context.Context, c *contents) (*vectorRows, error) {
	s, err := c.stream(ctx)
	if err != nil {
		return nil, err
	}
	r := &vectorRows{from: bufio.NewReaderSize(s.text(), vectorLine), words: -1, names: []string{nameColumn}}
	start, _ := r.from.Peek(vectorLine) // a short file is enough
	if ofFastText(start) {
		return nil, errors.New("is a model of fastText: want its vectors, which fastText writes next to it as .vec")
	}
	width, first := 0, start
	if sizes := vectorSizes.FindSubmatch(start); sizes != nil {
		n, err1 := strconv.Atoi(string(sizes[1]))
		d, err2 := strconv.Atoi(string(sizes[2]))
		if err1 != nil || err2 != nil || n < 1 || n > mostRows || d < 1 || d > vectorLine/8 {
			return nil, fmt.Errorf("line 1: got %.40q, want the numbers of words and of values", bytes.TrimSpace(sizes[0]))
		}
		r.words, r.line, width, first = n, 1, d, start[len(sizes[0]):]
		_, _ = r.from.Discard(len(sizes[0])) // which were read
	}
	line, _, _ := bytes.Cut(first, []byte("\n"))
	cells := strings.Split(strings.TrimRight(string(line), " \r"), " ")
	if width == 0 {
		width = len(cells) - 1
	}
	r.binary = r.words >= 0 && (len(cells) <= width || !areFloats(cells[len(cells)-width:]))
	r.buffer = make([]byte, 4*width)
	for j := range width {
		r.names = append(r.names, strconv.Itoa(j))
	}
	return r, nil
}

func (r *vectorRows) next() (row tableRow, err error) {
	word, values, err := r.word()
	switch {
	case err == io.EOF && r.read < r.words:
		return row, fmt.Errorf("has %d words, but its first line says %d", r.read, r.words)
	case err == bufio.ErrBufferFull:
		return row, fmt.Errorf("line %d: has more than %d bytes", r.line, vectorLine)
	case err != nil:
		return row, err
	case r.words >= 0 && r.read > r.words:
		return row, fmt.Errorf("has more words than the %d that its first line says", r.words)
	}
	r.cells = append(append(r.cells[:0], strings.ToValidUTF8(word, "\uFFFD")), values...)
	return tableRow{cells: r.cells, line: r.line}, nil
}

// word returns the next word with its values.
func (r *vectorRows) word() (word string, values []string, err error) {
	width := len(r.names) - 1
	sign := byte('\n')
	if r.binary {
		sign = ' '
	}
	r.line++
	part, err := r.from.ReadSlice(sign)
	text := strings.Trim(string(part), "\r\n")
	for !r.binary && text == "" && err == nil { // an empty line, such as the last one
		r.line++
		part, err = r.from.ReadSlice(sign)
		text = strings.Trim(string(part), "\r\n")
	}
	if text = strings.TrimSuffix(text, " "); text == "" && err == io.EOF || err != nil && err != io.EOF {
		return "", nil, err
	}
	r.read++
	if r.binary {
		if _, err := io.ReadFull(r.from, r.buffer); err != nil {
			return "", nil, fmt.Errorf("word %d: %w", r.read, io.ErrUnexpectedEOF)
		}
		for j := range width {
			v := math.Float32frombits(binary.LittleEndian.Uint32(r.buffer[4*j:]))
			values = append(values, strconv.FormatFloat(float64(v), 'g', -1, 32))
		}
		return text, values, nil
	}
	cells := strings.Split(text, " ")
	at := len(cells) - width
	if at < 1 {
		return "", nil, fmt.Errorf("line %d: got %d values, want a word and %d values", r.line, len(cells)-1, width)
	}
	return strings.Join(cells[:at], " "), cells[at:], nil
}

package data

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// Bounds for a compressed text: it may have textFrom bytes, or textRatio times as many as its file.
const (
	textFrom  = 256 << 20
	textRatio = 64
)

// openedText is an opened file of text.
type openedText struct {
	*stream
	most int64 // bytes that the text may have
}

// openText opens a file of text. The caller closes it.
func openText(ctx context.Context, path string) (*openedText, error) {
	s, err := openStream(ctx, path)
	if err != nil {
		return nil, err
	}
	return s.text(), nil
}

// text bounds what is read of a compressed file.
func (s *stream) text() *openedText {
	t := &openedText{s, s.info.Size()}
	if s.packed {
		t.most = max(textFrom, textRatio*t.most)
		s.r = &bounded{s.r, t.most, errors.New("its text is more than 64 times as long as the compressed file: unpack it first if it is sound")}
	}
	return t
}

// bounded reads at most left bytes. More are the error.
type bounded struct {
	r    io.Reader
	left int64
	err  error
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, b.err
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// utf8Mark is the byte order mark of a text in UTF-8.
const utf8Mark = "\xef\xbb\xbf"

// decoded returns a text as UTF-8, without a byte order mark. UTF-16 is recognised by its mark.
func decoded(r io.Reader) *bufio.Reader {
	text := bufio.NewReaderSize(r, 1<<18)
	switch start, _ := text.Peek(len(utf8Mark)); {
	case string(start) == utf8Mark:
		_, _ = text.Discard(len(start))
	case bytes.HasPrefix(start, []byte("\xff\xfe")), bytes.HasPrefix(start, []byte("\xfe\xff")):
		return bufio.NewReaderSize(transform.NewReader(text, unicode.BOMOverride(transform.Nop)), 1<<18)
	}
	return text
}

// Sound returns an error with the place of the first byte of a text that is zero or not UTF-8; nil for none.
func Sound(text string) error { return sound(text, 1, 0) }

// sound is Sound for a text that begins in this line, after these bytes of it.
func sound(text string, line, column int) error {
	at, what := strings.IndexByte(text, 0), "a zero byte: it is no text, or one in UTF-16 or UTF-32 without a byte order mark; save it as UTF-8"
	if bad := notUTF8At(text); bad >= 0 && (at < 0 || bad < at) {
		at, what = bad, notUTF8(text)
	}
	if at < 0 {
		return nil
	}
	if lines := strings.Count(text[:at], "\n"); lines > 0 {
		line, column = line+lines, -strings.LastIndexByte(text[:at], '\n')-1
	}
	return fmt.Errorf("line %d, byte %d: got %s", line, column+at+1, what)
}

// notUTF8 describes the first byte of a text that is not UTF-8, and what to do.
func notUTF8(text string) string {
	return fmt.Sprintf("the byte %#x, which is not UTF-8: convert it, for example with iconv -f cp1252 -t utf8", text[notUTF8At(text)])
}

// notUTF8At returns the place of the first byte that is not UTF-8, -1 for none.
func notUTF8At(text string) int {
	if utf8.ValidString(text) {
		return -1
	}
	for i, r := range text {
		if _, size := utf8.DecodeRuneInString(text[i:]); r == utf8.RuneError && size == 1 {
			return i
		}
	}
	return -1
}

// separator returns the sign between the cells of a text, and how many bytes before the line of names declare it, as Excel does with
// "sep=;". Without a declaration it is the comma, the semicolon or the tab, whichever is most frequent in the first line.
func separator(start []byte) (comma rune, skip int) {
	first, _, _ := bytes.Cut(start, []byte("\n"))
	line := strings.TrimRight(string(first), "\r")
	if sign, ok := strings.CutPrefix(line, "sep="); ok && len(sign) == 1 && strings.Contains(",;\t|", sign) {
		return rune(sign[0]), len(first) + 1
	}
	return slices.MaxFunc([]rune{',', ';', '\t', '|'}, func(x, y rune) int {
		return cmp.Compare(strings.Count(line, string(x)), strings.Count(line, string(y)))
	}), 0
}

// TableStyle is how a text separates cells and fractions.
type TableStyle struct {
	Separator rune   // 0 for a file that is no table of texts
	Decimal   string // "," or "."; "" for a point that was not declared
}

// StyleOf returns the style of a table that is read by the keys of a source.
func StyleOf(ctx context.Context, path string, like Source) (s TableStyle) {
	l, _ := likeOf(like)
	if of := formatNamed(path); of == nil || of.fill == nil || of.Sort != CellFiles {
		return s
	}
	o, err := openColumns(ctx, path, nil)
	defer o.close()
	if err != nil { // the reader of the samples says it
		return s
	}
	return TableStyle{o.csv.comma, l.r.Decimal}
}

// namesIn returns the names in the first line of a text, without spaces around them.
func namesIn(cells []string) ([]string, error) {
	names := make([]string, len(cells))
	for i, cell := range cells {
		if names[i] = strings.Clone(strings.TrimSpace(cell)); strings.ContainsRune(names[i], '\r') {
			return nil, errors.New("its lines end in a carriage return alone, as on old Macs: save it with line feeds")
		}
		if strings.ContainsRune(names[i], 0) {
			return nil, errors.New("the first line contains zero bytes: it is not a text, or one in UTF-16 or UTF-32 without a byte order mark; save it as UTF-8")
		}
	}
	if !isHeader(names) {
		return nil, errors.New("the first line holds numbers: write a first line with the names of the columns")
	}
	return names, nil
}

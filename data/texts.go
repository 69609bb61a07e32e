package data

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"tessera/internal/tokens"
)

// FileReader is a source that reads further files by what was fitted, such as texts by their vocabulary; [ReadRows] calls it.
type FileReader interface {
	Source
	// ReadsFile reports whether the samples of a file are read by ReadFile.
	ReadsFile(path string) bool
	// ReadFile reads the samples of a file like the training samples, with labels that number these classes; nil for the classes of the file. It
	// returns an error before it was fitted.
	ReadFile(ctx context.Context, path string, classes []string) (*Rows, error)
	// Fitted returns the source with the vocabulary of a model.
	Fitted(t *tokens.Tokenizer) Source
}

// TextReader is a [FileReader] that also reads texts from memory.
type TextReader interface {
	FileReader
	// ReadTexts returns the samples of texts, one for each. It returns an error before it was fitted.
	ReadTexts(ctx context.Context, texts []string) (*Images, error)
}

// WithVocabulary returns a source that reads further files by the vocabulary of a model; s itself if the vocabulary is nil.
func WithVocabulary(s Source, t *tokens.Tokenizer) Source {
	if of, ok := s.(FileReader); ok && t != nil {
		return of.Fitted(t)
	}
	return s
}

// WithBlanks returns a source that reads <mask> in further texts as a word to predict; s itself if it cannot.
func WithBlanks(s Source) Source {
	if of, ok := s.(interface{ WithBlanks() Source }); ok {
		return of.WithBlanks()
	}
	return s
}

// NewCounts returns complete samples of a sparse matrix, like [NewEntries] followed by [Images.WithZeros], with the names of its rows (nil for
// numbers) and columns, and with labels (nil for none).
func NewCounts(starts []int, columns []int32, values []float32, rowNames, columnNames []string, labels []int) (*Images, error) {
	m, err := NewEntries(starts, columns, values, len(columnNames))
	if err == nil && (rowNames != nil && len(rowNames) != m.n || labels != nil && len(labels) != m.n) {
		err = errors.New("data: names or labels are of another number of rows")
	}
	if err != nil {
		return nil, err
	}
	m = m.WithZeros()
	m.entries.rowNames, m.columns, m.labels = rowNames, slices.Clone(columnNames), labels
	return m, nil
}

// EachLine calls do with the cells of every line of a table after the first one, which has the names of its columns; place is the number of the
// line. Cells are valid only during the call.
// Rows that where does not keep are left out.
func EachLine(ctx context.Context, path string, where Where, do func(names, cells []string, place int) error) (file File, kept string, err error) {
	o, err := reading{Files: Files{File: path, Where: where, Decimal: "."}}.openTable(ctx)
	defer o.close()
	if err != nil {
		return file, "", err
	}
	sum, err := o.csv.eachRow(func(row tableRow) error { return do(o.csv.header, row.cells, row.line) })
	if len(where) > 0 && err == nil {
		kept = o.csv.keptRows(where)
	}
	if err != nil || sum != "" {
		return File{Path: path, SHA256: sum}, kept, FileError("", path, err)
	}
	file, err = o.checksum(ctx)
	return file, kept, FileError("", path, err)
}

// ReadText reads a file of text: see [EachPiece].
func ReadText(ctx context.Context, path string) (string, error) {
	var all strings.Builder
	err := EachPiece(ctx, path, func(piece string) { all.WriteString(piece) })
	return all.String(), err
}

// EachPiece reads a file of text, gzipped or not, as UTF-8 (UTF-16 is recognised by its byte order mark). It calls do for pieces, which joined are the
// text. A piece begins with a space, or the end of a line, after another sign: no tokens join the two. Bytes that are zero or not UTF-8 are an
// error with their place.
func EachPiece(ctx context.Context, path string, do func(piece string)) error {
	f, err := openText(ctx, path)
	if err != nil {
		return FileError("", path, err)
	}
	defer f.Close()
	r, b, n := decoded(f), make([]byte, 1<<17), 0
	line, column := 1, 0
	for err == nil {
		if n == len(b) {
			b = slices.Grow(b, n)[:2*n]
		}
		var k int
		k, err = io.ReadFull(r, b[n:])
		n += k
		if err == io.ErrUnexpectedEOF { // of a short last block, or of a file that is cut short
			_, err = r.Peek(1)
		}
		end := n
		if err == nil {
			if end = pieceEnd(b[:n]); end == 0 {
				continue
			}
		} else if err != io.EOF {
			return FileError("", path, err)
		}
		piece := string(b[:end])
		if err := sound(piece, line, column); err != nil {
			return FileError("", path, err)
		}
		if lines := strings.Count(piece, "\n"); lines > 0 {
			line, column = line+lines, -strings.LastIndexByte(piece, '\n')-1
		}
		if column += end; end > 0 {
			do(piece)
		}
		n = copy(b, b[end:n])
	}
	return nil
}

// pieceEnd returns the last place of a space or an end of a line after another sign, 0 for none. Zero bytes, which no text has, end it.
func pieceEnd(b []byte) int {
	for i := len(b) - 1; i > 0; i-- {
		if b[i] != ' ' && b[i] != '\n' && b[i] != '\r' {
			continue
		}
		if before, _ := utf8.DecodeLastRune(b[:i]); !unicode.IsSpace(before) {
			return i
		}
	}
	if bytes.IndexByte(b, 0) >= 0 {
		return len(b)
	}
	return 0
}

// kinds lists what other packages say about paths; see [RegisterKind].
var kinds []func(path string, exists, isDir bool) string

// RegisterKind adds a function that returns the name of the data set that reads a file or folder, "" if it does not know it. It is asked before
// the formats; of a path that does not exist only its name is known.
func RegisterKind(of func(path string, exists, isDir bool) string) { kinds = append(kinds, of) }

// IsUnknownLabel reports whether a cell of labels means an unknown class.
func IsUnknownLabel(cell string) bool { return isUnknown(strings.TrimSpace(cell)) }

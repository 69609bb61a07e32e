package export

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

func init() {
	Registry.Register("vec", "vectors of words, in the text format of word2vec and fastText", func() Format {
		return Format{Extension: ".vec", Parts: parts("words"), Write: writeVec}
	})
}

// writeVec writes a line with the numbers of words and values, and one for each word, the most frequent first: the word and its values, separated by
// spaces. A space in a token becomes "_"; what is not printed, such as a newline or a part of a character, is escaped as in Go (\n, \xe4).
func writeVec(w io.Writer, r *Run, _ string) error {
	vectors, width, err := r.WordVectors()
	if err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%d %d\n", len(vectors)/width, width) // an error stays until Flush
	var line []byte
	for i := range len(vectors) / width {
		line = append(line[:0], wordOf(r.Tokens.Name(int32(i)))...)
		for _, v := range vectors[i*width : (i+1)*width] {
			line = strconv.AppendFloat(append(line, ' '), float64(v), 'g', -1, 32)
		}
		_, _ = b.Write(append(line, '\n'))
	}
	return b.Flush()
}

// wordOf returns a token as a word of a line.
func wordOf(token string) string {
	if !utf8.ValidString(token) || strings.ContainsFunc(token, func(r rune) bool { return !unicode.IsPrint(r) }) {
		token = strconv.Quote(token)
		token = token[1 : len(token)-1]
	}
	return strings.ReplaceAll(token, " ", "_")
}

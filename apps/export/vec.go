package export

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

func init() {
	Registry.Register("vec", "vectors of words, in the text format of word2vec and fastText", func() Format {
		return Format{Extension: ".vec", Parts: parts("words"), Write: writeVec}
	})
}

// writeVec writes a line with the numbers of words and values, and one for each word, the most frequent first: the word and its values, separated by
// spaces. A space in a token becomes "_".
func writeVec(w io.Writer, r *Run, _ string) error {
	vectors, width, err := r.WordVectors()
	if err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%d %d\n", len(vectors)/width, width) // an error stays until Flush
	var line []byte
	for i := range len(vectors) / width {
		line = append(line[:0], strings.ReplaceAll(r.Tokens.Name(int32(i)), " ", "_")...)
		for _, v := range vectors[i*width : (i+1)*width] {
			line = strconv.AppendFloat(append(line, ' '), float64(v), 'g', -1, 32)
		}
		_, _ = b.Write(append(line, '\n'))
	}
	return b.Flush()
}

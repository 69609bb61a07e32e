package export

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"
)

func init() {
	Registry.Register("vec", "vectors of words, in the text format of word2vec and fastText", func() Format {
		return Format{Extension: ".vec", Parts: parts("words"), Write: func(w io.Writer, r *Run, _ string) error { return writeVectors(w, r, appendText) }}
	})
	Registry.Register("bin", "vectors of words, in the binary format of word2vec", func() Format {
		return Format{Extension: ".bin", Parts: parts("words"), Write: func(w io.Writer, r *Run, _ string) error { return writeVectors(w, r, appendFloats) }}
	})
}

// writeVectors writes a line with the numbers of words and values, and one for each word, the most frequent first: the word and its values.
func writeVectors(w io.Writer, r *Run, add func(line []byte, values []float32) []byte) error {
	vectors, width, err := r.WordVectors()
	if err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%d %d\n", len(vectors)/width, width) // an error stays until Flush
	var line []byte
	for i := range len(vectors) / width {
		line = add(append(line[:0], r.Tokens.Word(int32(i))...), vectors[i*width:(i+1)*width])
		_, _ = b.Write(append(line, '\n'))
	}
	return b.Flush()
}

// appendText appends the shortest texts of the values, each after a space.
func appendText(line []byte, values []float32) []byte {
	for _, v := range values {
		line = strconv.AppendFloat(append(line, ' '), float64(v), 'g', -1, 32)
	}
	return line
}

// appendFloats appends a space and the values as 32-bit floats, little-endian.
func appendFloats(line []byte, values []float32) []byte {
	line = append(line, ' ')
	for _, v := range values {
		line = binary.LittleEndian.AppendUint32(line, math.Float32bits(v))
	}
	return line
}

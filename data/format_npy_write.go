package data

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"
)

// npyTexts returns texts of size bytes each, padded with zeros: UTF-32 (kind U) or bytes (kind S).
func npyTexts(b []byte, size int, kind byte, order binary.ByteOrder, n int) []string {
	texts := make([]string, n)
	for i := range texts {
		one := b[i*size : (i+1)*size]
		if kind == 'S' {
			texts[i] = strings.TrimRight(string(one), "\x00")
			continue
		}
		var text strings.Builder
		for at := 0; at < size; at += 4 {
			if r := order.Uint32(one[at:]); r != 0 {
				text.WriteRune(rune(min(r, utf8.MaxRune+1))) // what is not a character is written as U+FFFD
			}
		}
		texts[i] = text.String()
	}
	return texts
}

// npyHeaderOf returns the header of an array, NPY version 1.
func npyHeaderOf(descr string, dims []int) []byte {
	var shape strings.Builder
	for _, d := range dims {
		fmt.Fprintf(&shape, "%d, ", d) // Python takes a last comma, and needs it for one axis
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, strings.TrimSuffix(shape.String(), " "))
	const align = 64 // where NumPy wants the values to start
	padding := align - (len(npyMagic)+4+len(text)+1)%align
	text += strings.Repeat(" ", padding) + "\n"
	header := append([]byte(npyMagic), 1, 0)
	header = binary.LittleEndian.AppendUint16(header, uint16(len(text)))
	return append(header, text...)
}

// writeNPY writes float32 values, row-major, as NPY version 1.
func writeNPY(w io.Writer, dims []int, values []float32) error {
	if _, err := w.Write(npyHeaderOf("<f4", dims)); err != nil {
		return err
	}
	return inPieces(w, len(values), 4, func(b []byte, i int) []byte {
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(values[i]))
	})
}

// writeNPYInts writes integers as int64.
func writeNPYInts(w io.Writer, values []int) error {
	if _, err := w.Write(npyHeaderOf("<i8", []int{len(values)})); err != nil {
		return err
	}
	return inPieces(w, len(values), 8, func(b []byte, i int) []byte {
		return binary.LittleEndian.AppendUint64(b, uint64(values[i]))
	})
}

// writeNPYTexts writes texts as UTF-32, padded with zeros to the longest.
func writeNPYTexts(w io.Writer, texts []string) error {
	longest := 1
	for _, t := range texts {
		longest = max(longest, utf8.RuneCountInString(t))
	}
	if _, err := w.Write(npyHeaderOf(fmt.Sprintf("<U%d", longest), []int{len(texts)})); err != nil {
		return err
	}
	return inPieces(w, len(texts), 4*longest, func(b []byte, i int) []byte {
		n := 0
		for _, r := range texts[i] {
			b = binary.LittleEndian.AppendUint32(b, uint32(r))
			n++
		}
		return append(b, make([]byte, 4*(longest-n))...)
	})
}

// inPieces writes n values of that many bytes, some at a time.
func inPieces(w io.Writer, n, size int, add func(b []byte, i int) []byte) error {
	each := max(1, (1<<15)/size)
	buf := make([]byte, 0, each*size)
	for i := 0; i < n; {
		buf = buf[:0]
		for end := min(n, i+each); i < end; i++ {
			buf = add(buf, i)
		}
		if _, err := w.Write(buf); err != nil {
			return err
		}
	}
	return nil
}

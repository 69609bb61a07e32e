package export_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tessera/apps/export"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// Every word has the line of its vector, from which float32 numbers are read exactly, for tables and for atoms.
func TestVecHoldsTheVectorsOfWords(t *testing.T) {
	for _, model := range []string{"skip-gram", "ppmi-nmf"} {
		r := trained(t, model, "dataset.grammar=500")
		lines := strings.Split(strings.TrimSuffix(string(written(t, r, "vec", "")), "\n"), "\n")
		vectors, width, err := r.WordVectors()
		fatal.If(t, err)
		names := r.Tokens.Names
		if want := fmt.Sprint(len(names), " ", width); len(lines) != len(names)+1 || lines[0] != want {
			t.Fatalf("%s: got %d lines and the first %q, want %q", model, len(lines), lines[0], want)
		}
		for i, line := range lines[1:] {
			cells := strings.Split(line, " ")
			var values []float32
			for _, cell := range cells[1:] {
				v, err := strconv.ParseFloat(cell, 32)
				fatal.If(t, err)
				values = append(values, float32(v))
			}
			expect.Equal(t, cells[0], names[i], model, line)
			expect.Slice(t, values, vectors[i*width:(i+1)*width], model, line)
		}
	}
	if err := export.Write(&strings.Builder{}, trained(t, "swimmer-parts", "train.epochs=1"), "vec", ""); err == nil || !strings.Contains(err.Error(), "its samples are no texts") {
		t.Errorf("a model of images: got %v", err)
	}
}

// A token of bytes may be a newline or a part of a character: each still has one line, and its own word.
func TestVecEscapesTokensThatAreNoWords(t *testing.T) {
	r := trained(t, "gpt-grammar", "dataset.grammar=20", "dataset.tokens=bytes", "encoder.0.vocabulary=260", "head.next.layers.0.units=260", "train.epochs=1")
	_, width, err := r.WordVectors()
	fatal.If(t, err)
	lines, seen := strings.Split(strings.TrimSuffix(string(written(t, r, "vec", "")), "\n"), "\n"), map[string]int{}
	if len(lines) != 257 {
		t.Fatalf("%d lines, want the first and 256", len(lines))
	}
	for _, line := range lines[1:] {
		cells := strings.Fields(line)
		expect.Equal(t, len(cells), width+1, line, "has", len(cells), "cells")
		seen[cells[0]]++
	}
	if len(seen) != 256 || seen["▁"] != 1 || seen["_"] != 1 || seen[`\n`] != 1 || seen[`\xe4`] != 1 || seen["a"] != 1 {
		t.Errorf("%d words: %v", len(seen), seen)
	}
}

// Exported vectors, as text and as floats, are those with which a model of the same words begins.
func TestExportedVectorsAreAStart(t *testing.T) {
	for model, sets := range map[string][]string{
		"skip-gram":   {"dataset.grammar=100", "encoder.0.units=3", "head.score.layers.0.units=3"},
		"gpt-grammar": {"dataset.grammar=20", "dataset.tokens=bytes", "encoder.0.vocabulary=260", "head.next.layers.0.units=260"},
	} {
		sets = append(sets, "train.epochs=0")
		r := trained(t, model, sets...)
		want, width, err := r.WordVectors()
		fatal.If(t, err)
		for _, format := range []string{"vec", "bin"} {
			file := filepath.Join(t.TempDir(), "words."+format)
			fatal.If(t, os.WriteFile(file, written(t, r, format, ""), 0o600))
			got, _, err := trained(t, model, append(sets, "train.seed=7", "start="+strconv.Quote(filepath.ToSlash(file)))...).WordVectors()
			fatal.If(t, err)
			for i := range len(want) / width {
				if !slices.Equal(got[i*width:(i+1)*width], want[i*width:(i+1)*width]) {
					t.Errorf("%s, %s: another vector of %q", model, format, r.Tokens.Name(int32(i)))
				}
			}
		}
	}
}

package data

import (
	"encoding/binary"
	"io"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// New samples have no labels, and their further columns are those of the training, in whatever type they are saved.
func TestNewSamplesOfArraysAreReadAsTheTraining(t *testing.T) {
	array := func(name, descr, shape string, values any) namedArray {
		return namedArray{name, func(w io.Writer) error {
			return expect.Err(w.Write(npyBytes(descr, "False", shape, binary.LittleEndian, values)))
		}}
	}
	x := array("x", "<f4", "(2, 2)", []float32{1, 2, 3, 4})
	keys := &Files{Kind: "npz", Tensor: "x", Labels: "kind", Columns: ColumnNames{"n": {"n"}, "v": {"v"}, "b": {"b"}}}
	training := []Column{{Name: "n", Type: Whole}, {Name: "v", Shape: []int{2}, Type: Float32}, {Name: "b", Type: Bytes}}
	n, v, b := array("n", "|u1", "(2,)", []byte{7, 200}), array("v", "<i4", "(2, 2)", []int32{5, 6, 7, 300}), array("b", "<f4", "(2,)", []float32{0.2, 1})
	read := func(like Source, arrays ...namedArray) (*Rows, error) {
		return ReadRows(t.Context(), npzFile(t, "new.npz", append(arrays, x)...), []int{2}, like)
	}

	rows, err := read(Reading(keys, training...), n, v, b)
	fatal.If(t, err)
	expect.Slice(t, drawnOf(rows.Images, "n", 0, 1), []float32{7, 200}, "whole numbers that are saved as bytes")
	expect.Slice(t, drawnOf(rows.Images, "v", 0, 1), []float32{5, 6, 7, 300})
	expect.Slice(t, drawnOf(rows.Images, "b", 0, 1), []float32{0.2, 1}, "floats as bytes that are divided by 255")
	expect.Equal(t, len(rows.Labels()), 0)

	rows, err = read(keys, array("labels", "<i8", "(2,)", []int64{1, 0}))
	fatal.If(t, err)
	expect.Slice(t, rows.Labels(), []int{1, 0}, "labels under their usual name")
	rows, err = read(Reading(keys, Column{Name: LabelsColumn, Type: Whole, Names: []string{"cat", "dog"}}), array("labels", "<i8", "(2,)", []int64{1, 0}))
	fatal.If(t, err)
	expect.Slice(t, rows.Labels(), []int{1, 0})
	expect.Contains(t, strings.Join(rows.Notes, ""), `the labels are numbers, and count as the places, from 0, of the classes "cat", "dog"`)
	expect.Error(t, expect.Err(read(Reading(keys, Column{Name: LabelsColumn, Type: Whole}))), `has no column "labels", from which the value is computed`)

	for want, other := range map[string][]namedArray{
		`column "v": the array holds uint8, which is divided by 255`:                       {n, array("v", "|u1", "(2, 2)", []byte{5, 6, 7, 8}), b},
		`column "v": got 3 numbers of a sample, want 2`:                                    {n, array("v", "<f4", "(2, 3)", make([]float32, 6)), b},
		`column "b": the array of the training holds uint8, which is divided by 255: save`: {n, v, array("b", "<f4", "(2,)", []float32{0.2, 51})},
		`uint8, or as floats from 0 to 1`:                                                  {n, v, array("b", "<i8", "(2,)", []int64{0, 1})},
	} {
		expect.Error(t, expect.Err(read(Reading(keys, training...), other...)), want)
	}
	rows, err = read(Measuring(keys, training...), n, array("v", "<f4", "(2, 3)", make([]float32, 6)), b)
	fatal.If(t, err)
	_, there := rows.Column("v")
	expect.Equal(t, there, false, "a measure does without a column of another size")
}

// As in tables, labels that are exactly -1 and 1 are names of two classes: of the samples of the training, of the test and of later files.
func TestTheSignsOfArraysAreTwoClasses(t *testing.T) {
	two := npzFile(t, "two.npz", samplesArray("x", 1, 2, 3), intsArray("labels", -1, 1, -1))
	test := npzFile(t, "test.npz", samplesArray("x", 4, 5), intsArray("labels", -1, -1))
	keys := &Files{Kind: "npz", File: two, Test: test, Tensor: "x"}
	set, err := Load(t.Context(), keys, Dirs{}, Both)
	fatal.If(t, err)
	expect.Slice(t, set.Classes, []string{"-1", "1"})
	expect.Slice(t, set.Train.Labels(), []int{0, 1, 0})
	expect.Slice(t, set.Test.Labels(), []int{0, 0})
	rows, err := ReadRows(t.Context(), npzFile(t, "new.npz", samplesArray("x", 4, 5), intsArray("labels", 1, -1)), set.Shape,
		Reading(keys, Column{Name: LabelsColumn, Type: Whole, Names: set.Classes}))
	fatal.If(t, err)
	expect.Slice(t, rows.Labels(), []int{1, 0})
}

package data

import (
	"bytes"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// samplesArray returns an array of samples of one value.
func samplesArray(name string, values ...float32) namedArray {
	return namedArray{name, func(w io.Writer) error { return WriteNPY(w, []int{len(values), 1}, values) }}
}

func intsArray(name string, values ...int) namedArray {
	return namedArray{name, func(w io.Writer) error { return writeNPYInts(w, values) }}
}

func textsArray(name string, values ...string) namedArray {
	return namedArray{name, func(w io.Writer) error { return writeNPYTexts(w, values) }}
}

func npzFile(t *testing.T, name string, arrays ...namedArray) string {
	t.Helper()
	var b bytes.Buffer
	fatal.If(t, writeNPZ(&b, arrays))
	return write(t, t.TempDir(), name, b.Bytes())
}

func TestTestSamplesInTheSameFileHaveTheirOwnLabels(t *testing.T) {
	path := npzFile(t, "x.npz", samplesArray("x_train", 1, 2), samplesArray("x_test", 3, 4), samplesArray("x_more", 5),
		intsArray("labels", 0, 1), intsArray("t", 1, 0), textsArray("names", "a", "b"))
	for name, c := range map[string]struct {
		labels string
		named  Files
		file   string
		want   []int
	}{
		"another array":              {"labels", Files{Tensor: "x_train", TestTensor: "x_test"}, "", nil},
		"the same, named":            {"labels", Files{Tensor: "x_train", TestTensor: "x_test"}, path, nil},
		"the same, spelt otherwise":  {"labels", Files{Tensor: "x_train", TestTensor: "x_test"}, filepath.Dir(path) + "/./x.npz", nil},
		"usual labels":               {"", Files{Tensor: "x_train", TestTensor: "x_test"}, "", nil},
		"of another number":          {"labels", Files{Tensor: "x_train", TestTensor: "x_more"}, "", nil},
		"labels that are named":      {"labels", Files{Tensor: "x_train", TestTensor: "x_test", TestLabels: "t"}, "", []int{1, 0}},
		"the labels of the training": {"labels", Files{Tensor: "x_train", TestTensor: "x_test", TestLabels: "labels"}, "", []int{0, 1}},
		"the same array":             {"labels", Files{Tensor: "x_train", TestTensor: "x_train"}, "", []int{0, 1}},
	} {
		source := as("npz", c.named)
		source.Images, source.TestImages, source.Labels = path, c.file, c.labels
		set, err := source.Load(background, nil, Both)
		if err != nil || !slices.Equal(set.Train.Labels(), []int{0, 1}) || !slices.Equal(set.Test.Labels(), c.want) {
			t.Errorf("%s: %+v, %v", name, set, err)
		}
	}
}

func TestTheTextsMinusOneAndOneAreTwoClasses(t *testing.T) {
	path := npzFile(t, "x.npz", samplesArray("x", 1, 2), textsArray("labels", "-1", "1"))
	set, err := (&Files{Kind: "npz", Images: path}).Load(background, nil, Both)
	if err != nil || !slices.Equal(set.Classes, []string{"-1", "1"}) || !slices.Equal(set.Train.Labels(), []int{0, 1}) {
		t.Errorf("got %+v, %v", set, err)
	}
}

func TestLabelsOfColumnsAreNumbersOrNamesAsInTheTraining(t *testing.T) {
	for name, c := range map[string]struct {
		train, test string // one letter or digit for each sample
		classes     []string
		fitted      []int
		tested      []int
		problem     string
	}{
		"numbers":              {"1 0 2", "2 1", nil, []int{1, 0, 2}, []int{2, 1}, ""},
		"unknown numbers":      {"0 -1 1 _", "-1 1 _", nil, []int{0, -1, 1, -1}, []int{-1, 1, -1}, ""},
		"only unknown numbers": {"-1 -1", "-1", nil, []int{-1, -1}, []int{-1}, ""},
		"names":                {"b a _ -1", "-1 _ b", []string{"a", "b"}, []int{1, 0, -1, -1}, []int{-1, -1, 1}, ""},
		"numbers and a name":   {"1 2 3 other", "1 2 3", []string{"1", "2", "3", "other"}, []int{0, 1, 2, 3}, []int{0, 1, 2}, ""},
		"signs":                {"1 -1 _", "-1 1 -1", []string{"-1", "1"}, []int{1, 0, -1}, []int{0, 1, 0}, ""},
		"one sign is tested":   {"+1 -1", "-1", []string{"+1", "-1"}, []int{0, 1}, []int{1}, ""},
		"not quite signs":      {"0 1 -1", "1 -1", nil, []int{0, 1, -1}, []int{1, -1}, ""},
		"a name like a number": {"0 1 x", "0.0", nil, nil, nil, `the class "0.0", which no training sample has (0, 1, x)`},
		"a name for a number":  {"0 1", "x", nil, nil, nil, `the class "x", and the classes of the training samples are whole numbers from 0`},
	} {
		dir := t.TempDir()
		source := &Files{Kind: "csv", Images: labelFile(t, dir, "train.csv", c.train), TestImages: labelFile(t, dir, "test.csv", c.test)}
		set, err := source.Load(background, nil, Both)
		if c.problem != "" {
			expect.Error(t, err, c.problem, name)
		} else if err != nil || !slices.Equal(set.Classes, c.classes) || !slices.Equal(set.Train.Labels(), c.fitted) || !slices.Equal(set.Test.Labels(), c.tested) {
			t.Errorf("%s: %+v, %v", name, set, err)
		}
	}
}

// labelFile writes a table of samples with labels, which are separated by spaces; _ is an empty cell. It returns the path.
func labelFile(t *testing.T, dir, name, labels string) string {
	t.Helper()
	text := "label,a\n"
	for _, label := range strings.Fields(labels) {
		text += strings.Trim(label, "_") + ",1\n"
	}
	return write(t, dir, name, text)
}

func TestNumbersOfTestSamplesCountTheClassesOfTheirFile(t *testing.T) {
	train := npzFile(t, "train.npz", samplesArray("x", 1, 2), intsArray("labels", 2, 1), textsArray("classes", "bee", "ant", "cat"))
	for name, c := range map[string]struct {
		test    []namedArray
		want    []int
		problem string
	}{
		"the same classes": {[]namedArray{intsArray("labels", 2, 1), textsArray("classes", "bee", "ant", "cat")}, []int{2, 1}, ""},
		"fewer classes":    {[]namedArray{intsArray("labels", 1, -1), textsArray("classes", "ant", "cat")}, []int{2, -1}, ""},
		"names":            {[]namedArray{textsArray("labels", "cat", "bee")}, []int{2, 0}, ""},
		"no classes":       {[]namedArray{intsArray("labels", 1, 2)}, []int{1, 2}, ""},
		"an unknown class": {[]namedArray{intsArray("labels", 0, 1), textsArray("classes", "ant", "dog")}, nil, `the class "dog", which no training sample has`},
		"no such class":    {[]namedArray{intsArray("labels", 0, 2), textsArray("classes", "ant", "cat")}, nil, "sample 1 has the label 2, but the array classes has 2 names"},
	} {
		source := &Files{Kind: "npz", Images: train, TestImages: npzFile(t, "test.npz", append(c.test, samplesArray("x", 3, 4))...)}
		set, err := source.Load(background, nil, Both)
		if c.problem != "" {
			expect.Error(t, err, c.problem, name)
		} else if err != nil || len(set.Classes) != 3 || !slices.Equal(set.Train.Labels(), []int{2, 1}) || !slices.Equal(set.Test.Labels(), c.want) {
			t.Errorf("%s: %+v, %v", name, set, err)
		}
	}
}

package data

import (
	"bytes"
	"io"
	"slices"
	"testing"
)

// samplesArray is an array of samples of one value.
func samplesArray(name string, values ...float32) namedArray {
	return namedArray{name, func(w io.Writer) error { return writeNPY(w, []int{len(values), 1}, values) }}
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
	if err := writeNPZ(&b, arrays); err != nil {
		t.Fatal(err)
	}
	return write(t, t.TempDir(), name, b.Bytes())
}

func TestTestSamplesInTheSameFileHaveTheirOwnLabels(t *testing.T) {
	path := npzFile(t, "x.npz", samplesArray("x_train", 1, 2), samplesArray("x_test", 3, 4), samplesArray("x_more", 5),
		intsArray("labels", 0, 1), intsArray("t", 1, 0), textsArray("names", "a", "b"))
	for name, c := range map[string]struct {
		labels string
		named  Named
		file   string
		want   []int
	}{
		"another array":              {"labels", Named{Tensor: "x_train", TestTensor: "x_test"}, "", nil},
		"the same, named":            {"labels", Named{Tensor: "x_train", TestTensor: "x_test"}, path, nil},
		"usual labels":               {"", Named{Tensor: "x_train", TestTensor: "x_test"}, "", nil},
		"of another number":          {"labels", Named{Tensor: "x_train", TestTensor: "x_more"}, "", nil},
		"labels that are named":      {"labels", Named{Tensor: "x_train", TestTensor: "x_test", TestLabels: "t"}, "", []int{1, 0}},
		"the labels of the training": {"labels", Named{Tensor: "x_train", TestTensor: "x_test", TestLabels: "labels"}, "", []int{0, 1}},
		"the same array":             {"labels", Named{Tensor: "x_train", TestTensor: "x_train"}, "", []int{0, 1}},
	} {
		source := &NPZ{Tables{Images: path, TestImages: c.file, Labels: c.labels}, c.named}
		set, err := source.Load(background, nil, Both)
		if err != nil || !slices.Equal(set.Train.Labels(), []int{0, 1}) || !slices.Equal(set.Test.Labels(), c.want) {
			t.Errorf("%s: %+v, %v", name, set, err)
		}
	}
}

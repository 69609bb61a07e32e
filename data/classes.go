package data

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// countLabels turns labels that are all whole numbers of 0 or more, or empty for an unknown class, into numbers.
func (t *table) countLabels() {
	labels := make([]int, len(t.texts))
	for i, text := range t.texts {
		n, err := strconv.Atoi(text)
		switch {
		case text == "":
			n = UnknownLabel
		case err != nil || n < 0:
			return
		}
		labels[i] = n
	}
	if len(t.texts) > 0 {
		t.labels, t.texts = labels, nil
	}
}

// resolve turns labels that are names of classes into numbers, which count the names: those in classes or, of the first samples
// that are read, their own names in order. It returns the names.
func (t *table) resolve(classes []string, first bool) ([]string, error) {
	if t.texts == nil {
		return t.classes, nil
	}
	if first {
		classes = slices.Compact(slices.Sorted(slices.Values(t.texts)))
		classes = slices.DeleteFunc(classes, func(name string) bool { return name == "" })
	}
	t.labels = make([]int, len(t.texts))
	for i, name := range t.texts {
		at, ok := slices.BinarySearch(classes, name)
		switch {
		case name == "":
			at = UnknownLabel
		case !ok:
			return nil, fmt.Errorf("sample %d has the class %.40q, which no training sample has (%.200s)", i, name, strings.Join(classes, ", "))
		}
		t.labels[i] = at
	}
	return classes, nil
}

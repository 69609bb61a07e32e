package data

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// isUnknown reports whether the text of a label stands for an unknown class.
func isUnknown(label string) bool { return label == "" || label == strconv.Itoa(UnknownLabel) }

// countLabels reads labels that are all whole numbers of 0 or more, or unknown, as numbers. The texts stay: they are names of classes
// after all if those of the training samples are.
func (t *table) countLabels() {
	labels := make([]int, len(t.texts))
	for i, text := range t.texts {
		n, err := strconv.Atoi(text)
		switch {
		case isUnknown(text):
			n = UnknownLabel
		case err != nil || n < 0:
			return
		}
		labels[i] = n
	}
	if len(t.texts) > 0 {
		t.labels = labels
	}
}

// signs reports whether the texts of the labels are -1 and 1, both of them and no others: names of two classes.
func (t *table) signs() bool {
	minus, plus := false, false
	for _, text := range t.texts {
		n, err := strconv.Atoi(text)
		switch {
		case text == "":
		case text == strconv.Itoa(UnknownLabel):
			minus = true
		case err == nil && n == 1:
			plus = true
		default:
			return false
		}
	}
	return minus && plus
}

// resolve turns labels that are names of classes into numbers, which count the names: those in classes or, of the first samples
// that are read, their own names in order. It returns the names. Numbers count the names that the file has; where these are others
// than classes, the numbers become those of the same names in classes.
func (t *table) resolve(classes []string, first bool) ([]string, error) {
	if t.texts == nil && t.labels != nil && t.classes != nil && classes != nil && !slices.Equal(t.classes, classes) {
		if err := t.nameLabels(); err != nil {
			return nil, err
		}
	}
	numbers := t.labels != nil && (first && !t.signs() || !first && classes == nil)
	if t.texts == nil || numbers {
		return t.classes, nil
	}
	if first {
		classes = t.classNames()
	}
	number := make(map[string]int, len(classes))
	for i, name := range slices.Backward(classes) { // of equal names the first counts
		number[name] = i
	}
	t.labels = make([]int, len(t.texts))
	for i, name := range t.texts {
		at, ok := number[name]
		switch {
		case !ok && isUnknown(name):
			at = UnknownLabel
		case !ok:
			return nil, fmt.Errorf("sample %d has the class %.40q, which no training sample has (%.200s)", i, name, strings.Join(classes, ", "))
		}
		t.labels[i] = at
	}
	return classes, nil
}

// nameLabels makes labels that are numbers the names that the file has for them.
func (t *table) nameLabels() error {
	t.texts = make([]string, len(t.labels))
	for i, label := range t.labels {
		switch {
		case label >= len(t.classes):
			return fmt.Errorf("sample %d has the label %d, but the array classes has %d names", i, label, len(t.classes))
		case label >= 0:
			t.texts[i] = t.classes[label]
		}
	}
	return nil
}

// classNames are the names of the classes that the labels have, sorted.
func (t *table) classNames() []string {
	signs := t.signs()
	names := slices.Compact(slices.Sorted(slices.Values(t.texts)))
	return slices.DeleteFunc(names, func(name string) bool { return name == "" || isUnknown(name) && !signs })
}

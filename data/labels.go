package data

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"tessera/config/part"
	"tessera/internal/random"
)

// UnknownLabel is the label of an image of an unknown class. Every negative label has this meaning.
const UnknownLabel = -1

// Classed is implemented by sources that can determine the number of classes without reading pixels.
type Classed interface {
	// Classes returns the number of classes. ok is false if there are no labels, or if the number depends on files that are
	// missing.
	Classes(dirs Dirs) (n int, ok bool)
}

// Unlabelled is implemented by sources that can determine, without reading pixels, that their images have no labels.
type Unlabelled interface{ Unlabelled() bool }

// IsUnlabelled reports whether a source with these keys is known to have no labels.
func IsUnlabelled(s Source) bool {
	u, ok := s.(Unlabelled)
	return ok && u.Unlabelled()
}

// Predicted is implemented by sources whose labels may be the predictions of a model. Predictor returns its run, "" if the
// labels are true.
type Predicted interface{ Predictor() string }

// PredictorOf returns the run whose predictions are the labels of a source, "" for true labels.
func PredictorOf(s Source) string {
	if p, ok := s.(Predicted); ok {
		return p.Predictor()
	}
	return ""
}

func (*Swimmer) Unlabelled() bool { return true }

func (*Bars) Unlabelled() bool { return true }

func (*Hierarchy) Unlabelled() bool { return true }

func (*LinearRules) Unlabelled() bool { return true }

func (*Notes) Unlabelled() bool { return true }

func (*Shapes) Unlabelled() bool { return true }

func (*Superposition) Unlabelled() bool { return true }

func (*Topics) Unlabelled() bool { return true }

// Unlabelled implements [Unlabelled]: it reports true if the images are in this process and all labels of the training images
// are unknown.
func (m *Memory) Unlabelled() bool {
	return m != nil && m.train != nil && classesOf(m.train.labels) == 0
}

// Classes returns the number n of classes of a source with these keys, without reading any pixels; labels are 0 to n-1. ok
// is false if the source has no labels or the number is not known yet.
func Classes(s Source, dirs Dirs) (n int, ok bool) {
	if c, is := s.(Classed); is {
		return c.Classes(dirs)
	}
	return 0, false
}

// WhyNoClasses explains why the number of classes of a source is unknown, for example because files are missing; "" if it is
// known.
func WhyNoClasses(s Source, dirs Dirs) string {
	return why(s, dirs, Need{Train: true, Test: HasTest(s)}, func(set *Set) error {
		if _, ok := set.ClassCount(); ok {
			return nil
		}
		return &Error{Dataset: set.Name, Problem: "its samples have no labels", Hint: "name them with the key labels, or put the images of each class into a folder"}
	})
}

// WhyNoColumn explains why the size of a declared column is unknown: it returns the error of the files as text, "" if they are
// readable.
func WhyNoColumn(s Source, dirs Dirs, column string) string {
	need := Need{Train: true, Columns: []string{column}}
	return why(s, dirs, need, func(*Set) error { return nil })
}

// why returns the error of the files of the user, or of what they hold.
func why(s Source, dirs Dirs, need Need, check func(*Set) error) string {
	if !IsOwn(s) {
		return ""
	}
	set, err := s.Load(context.Background(), dirs, need)
	if err == nil {
		err = check(set)
	}
	if err == nil {
		return ""
	}
	return err.Error()
}

// ClassCount returns the number of classes of a loaded set: the number of class names if they are known, otherwise the
// largest label plus one. ok is false if no label is known.
func (s *Set) ClassCount() (n int, ok bool) {
	if len(s.Classes) > 0 {
		return len(s.Classes), true
	}
	for _, images := range []*Images{s.Train, s.Test} {
		if images != nil {
			n = max(n, classesOf(images.Labels()))
		}
	}
	return n, n > 0
}

// classesOf returns the largest label plus one, 0 if all are unknown.
func classesOf(labels []int) int {
	if len(labels) == 0 {
		return 0
	}
	return max(min(slices.Max(labels), math.MaxInt-1)+1, 0)
}

func (p *published) Classes(Dirs) (int, bool) { return len(p.classes), true }

func (m *Memory) Classes(Dirs) (n int, ok bool) {
	if m == nil {
		return 0, false
	}
	for _, images := range []*Images{m.train, m.test} {
		if images != nil {
			n = max(n, classesOf(images.labels))
		}
	}
	return n, n > 0
}

// hideLabels keeps the labels of a fraction of the fitted images and sets the others to [UnknownLabel]. In each class, the
// fraction (rounded, at least one image) keeps its label. The choice depends only on the seed.
func (s *Splits) hideLabels(fraction float64, seed uint64) error {
	labels := s.Fit.Labels()
	if classesOf(labels) == 0 {
		return part.KeyErrorf("labelled", "got %g, but the fitted images have no labels; leave it out", fraction)
	}
	left := map[int]int{} // how many images of each class may keep their label
	for _, label := range labels {
		left[label]++
	}
	for label, n := range left {
		left[label] = max(1, int(math.Round(fraction*float64(n))))
	}
	for _, i := range random.Stream(seed, "labelled", 0).Perm(len(labels)) {
		if label := labels[i]; label < 0 || left[label] == 0 {
			labels[i] = UnknownLabel
		} else {
			left[label]--
		}
	}
	s.Fit = s.Fit.WithLabels(labels)
	return nil
}

// WithLabels returns the same images with other labels, one per image. It panics, like indexing, if there are more.
func (m *Images) WithLabels(labels []int) *Images {
	other := *m
	other.labels = scattered(m, labels, 1, UnknownLabel)
	return &other
}

// scattered returns values for all rows in memory, given size values per image. The values of rows that are not among the
// images are none.
func scattered[T any](m *Images, values []T, size int, none T) []T {
	if m.rows == nil {
		return values
	}
	all := slices.Repeat([]T{none}, m.stock()*size)
	for i, row := range m.rows {
		copy(all[row*size:(row+1)*size], values[i*size:(i+1)*size])
	}
	return all
}

// isUnknown reports whether the text of a label means an unknown class: it is empty, -1, or one of the words for a missing value that
// no class has as its name.
func isUnknown(label string) bool {
	return slices.Contains([]string{"", "-1", "nan", "na", "n/a", "null", "?"}, strings.ToLower(label))
}

// scattered numbers are names of classes: they begin at mostCounted, and fewer than half of the numbers up to the largest occur.
const mostCounted = 100

func areScattered(labels []int) bool {
	distinct := map[int]bool{}
	for _, label := range labels {
		if label >= 0 {
			distinct[label] = true
		}
	}
	n := classesOf(labels)
	return n > mostCounted && n > 2*len(distinct)
}

// labelNotes returns warnings about the labels of samples from path: those that are unknown, and numbers of classes without a sample.
func (t *table) labelNotes(path string, classes int) (notes []string) {
	unknown, minus, counts := 0, 0, map[int]int{}
	for i, label := range t.labels {
		if counts[label]++; label < 0 {
			unknown++
			if t.texts == nil || t.texts[i] == "-1" {
				minus++
			}
		}
	}
	if unknown > 0 {
		what := fmt.Sprintf("%d of %d samples have no class: their labels are empty or mean a missing value", unknown, len(t.labels))
		if minus == unknown {
			what = fmt.Sprintf("%d of %d labels are -1 and count as unknown: if -1 is a class, write a name or a number from 0 in its place", unknown, len(t.labels))
		}
		notes = append(notes, fmt.Sprintf("%s: %s", inLine(path), what))
	}
	var empty []string
	for class := range classes {
		if counts[class] == 0 {
			empty = append(empty, strconv.Itoa(class))
		}
	}
	if n := len(empty); n > 0 && t.classes == nil {
		if n > 5 {
			empty = append(empty[:5], "...")
		}
		notes = append(notes, fmt.Sprintf("%s: the labels are numbers of %d classes, from 0 to %d, but %d of them have no sample: %s", inLine(path), classes, classes-1, n, strings.Join(empty, ", ")))
	}
	return notes
}

// countLabels converts labels to numbers if all of them are whole numbers of 0 or more, or unknown. It does not delete the
// texts: if the labels of the training samples are names of classes, these labels are names, too.
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

// areSigns reports whether the labels are exactly -1 and 1.
func areSigns(labels []int) bool {
	others := slices.ContainsFunc(labels, func(label int) bool { return label != -1 && label != 1 })
	return !others && slices.Contains(labels, -1) && slices.Contains(labels, 1)
}

// signs reports whether the texts of the labels are exactly -1 and 1. They are then names of two classes.
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

// resolve converts labels that are names of classes to numbers, and returns the names. The numbers are indices into classes.
// For the first samples (first is true) there are no classes yet: their names become the classes, in order. Labels that are
// numbers are indices into the names in the file; if these differ from classes, each number becomes the index of the same name
// in classes.
func (t *table) resolve(classes []string, first bool) ([]string, error) {
	renamed := t.classes != nil && len(classes) > 0 && !counts(classes) && !slices.Equal(t.classes, classes)
	signed := first && areSigns(t.labels) || !first && slices.Equal(classes, []string{"-1", "1"})
	numbered := t.classes == nil && (signed || first && areScattered(t.labels) || !first && AreNumbers(classes))
	if t.texts == nil && t.labels != nil && (renamed || numbered) {
		if err := t.nameLabels(signed); err != nil {
			return nil, err
		}
	}
	numbers := t.labels != nil && (first && !t.signs() && !areScattered(t.labels) || !first && classes == nil)
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
		case !ok && len(classes) == 0:
			return nil, fmt.Errorf("%s has the class %.40q, and the classes of the training samples are whole numbers from 0: write these", t.lines.place(i), name)
		case !ok:
			return nil, fmt.Errorf("%s has the class %.40q, which no training sample has (%.200s)", t.lines.place(i), name, strings.Join(classes, ", "))
		}
		t.labels[i] = at
	}
	return classes, nil
}

// nameLabels makes texts of labels that are numbers; signed says that -1 is a class.
func (t *table) nameLabels(signed bool) error {
	t.texts = make([]string, len(t.labels))
	for i, label := range t.labels {
		switch {
		case label < 0 && !(signed && label == UnknownLabel): // unknown
		case t.classes == nil:
			t.texts[i] = strconv.Itoa(label)
		case label < len(t.classes):
			t.texts[i] = t.classes[label]
		default:
			return fmt.Errorf("sample %d has the label %d, but the array classes has %d names", i, label, len(t.classes))
		}
	}
	return nil
}

// classNames returns the names of the classes that occur in the labels, sorted.
func (t *table) classNames() []string {
	signs := t.signs()
	names := slices.Compact(slices.Sorted(slices.Values(t.texts)))
	names = slices.DeleteFunc(names, func(name string) bool { return isUnknown(name) && !(signs && name == "-1") })
	if AreNumbers(names) && !signs {
		slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	}
	return names
}

// AreNumbers reports whether all names are whole numbers from 0.
func AreNumbers(names []string) bool {
	for _, name := range names {
		if n, err := strconv.Atoi(name); err != nil || n < 0 || strconv.Itoa(n) != name {
			return false
		}
	}
	return len(names) > 0
}

// alike returns texts that differ in letter case and spaces alone, those that are like each other one after the other.
func alike(texts []string) (list []string) {
	groups := map[string][]string{}
	for _, text := range texts {
		key := strings.ToLower(strings.Join(strings.Fields(text), ""))
		groups[key] = append(groups[key], text)
	}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		if len(groups[key]) > 1 {
			list = append(list, groups[key]...)
		}
	}
	return list
}

// alikeNote warns of classes that are probably the same, "" for none.
func alikeNote(path, column string, classes []string) []string {
	list := alike(classes)
	if list == nil {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s: texts that differ in letter case or spaces alone are different classes: %s; write them alike", inLine(path), column, nameList(list))}
}

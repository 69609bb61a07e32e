package data

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tessera/internal/lists"
	"tessera/internal/numeral"
)

// Names of numeric columns that often are not values.
var (
	idNames     = []string{"", "id", "index", "idx", "nr", "no", "number", "row", "#", "unnamed: 0"}
	targetNames = []string{"target", "y", "label", "labels", "class", "species"}
)

// isID reports whether a name is usual for a number that identifies a sample: id, sample_id, userId.
func isID(name string) bool {
	lower := strings.ToLower(strings.TrimSpace(name))
	return slices.Contains(idNames, lower) || strings.HasSuffix(lower, "_id") || strings.HasSuffix(lower, " id") || strings.HasSuffix(name, "Id") || strings.HasSuffix(name, "ID")
}

const (
	fewRows        = 5   // minimum number of rows for a guess
	mostClasses    = 20  // maximum number of distinct whole numbers in a column of classes
	mostDeviations = 100 // accepted ratio between the standard deviations of columns
)

// columnStatistics contains statistics of one column of values, for guessing its meaning.
type columnStatistics struct {
	counts    bool      // every value is the previous one plus one
	whole     bool      // all are whole numbers
	classes   []float32 // then the distinct values, at most mostClasses and one more
	count     float64   // number of values that are not missing
	deviation float64

	last          float32
	mean, squares float64 // mean and sum of squares by Welford's recurrence
	ends
}

// notes returns warnings about columns of values that probably are not values, and about columns with very different standard
// deviations. It does not warn about columns that the key columns names.
func (t *table) notes(path string, r reading, scale Scale) (notes []string) {
	seen := map[string]bool{}
	for _, name := range t.columns {
		if seen[name] {
			notes = append(notes, fmt.Sprintf("%s: several columns of values have the name %.60q: later files are matched by name; rename them", inLine(path), name))
		}
		seen[name] = true
	}
	if len(t.columns) == 0 || t.values.dims[0] < fewRows {
		return notes
	}
	least, most := -1, -1
	var constant []string
	all := t.statistics()
	names, numbers := slices.Clone(t.columns), lists.Map(all, func(s columnStatistics) ends { return s.ends })
	for _, v := range t.further {
		if v.Names == nil { // not of texts
			names, numbers = append(names, v.names()...), append(numbers, v.ends()...)
		}
	}
	if t.namedBySample(all) {
		notes = append(notes, fmt.Sprintf("%s: the names of the columns of values are numbers like their values (%s): if the first line is a sample, write a line of names before it",
			inLine(path), nameList(t.columns)))
	}
	if note := sentinelNote(names, numbers, r.Missing); note != "" {
		notes = append(notes, inLine(path)+": "+note+" in the dataset table")
	}
	for i, name := range t.columns {
		s := &all[i]
		if s.deviation > 0 && (least < 0 || s.deviation < all[least].deviation) {
			least = i
		}
		if s.deviation > 0 && (most < 0 || s.deviation > all[most].deviation) {
			most = i
		}
		if slices.Contains(r.Columns[ImagesColumn], name) {
			continue
		}
		if s.deviation == 0 && s.count > 0 && !t.values.spans.differ(i) {
			constant = append(constant, name)
		}
		is := func(names []string) bool { return slices.Contains(names, strings.ToLower(strings.TrimSpace(name))) }
		what, key := "", "names"
		switch {
		case is(targetNames) && s.isClass() && len(s.classes) > 1:
			what, key = fmt.Sprintf("has %d different whole numbers", len(s.classes)), "labels"
		case s.counts && s.deviation > 0:
			what = "counts up by one"
		case name == "":
			what = "has no name"
		case is(idNames), isID(name) && s.whole && !s.isClass():
			what = "looks like a number of the sample"
		default:
			continue
		}
		notes = append(notes, fmt.Sprintf("%s: column %.60q %s, but is used as a value: write %s = %.60q in the dataset table, or choose the columns of values with the key columns",
			inLine(path), name, what, key, name))
	}
	if n := len(constant); n > 0 && n < len(all) {
		notes = append(notes, fmt.Sprintf("%s: %s with the same value in all rows, from which nothing can be learned: %s; choose the columns of values with the key columns",
			inLine(path), numeral.Of(n, "column"), nameList(constant)))
	}
	if len(scale) == 0 && most >= 0 && all[most].deviation > mostDeviations*all[least].deviation {
		notes = append(notes, fmt.Sprintf("%s: the standard deviation of column %.60q is %.3g, that of %.60q is %.3g: the first one dominates all errors; "+
			"scale = \"standardise\" in the dataset table gives all columns the same weight, or \"minmax\" if the model is one of non-negative parts", inLine(path), t.columns[most], all[most].deviation, t.columns[least], all[least].deviation))
	}
	return notes
}

// namedBySample reports whether the line of names looks like a sample: numbers within the ranges of their columns, and no count.
func (t *table) namedBySample(all []columnStatistics) bool {
	last, counts := math.Inf(-1), true
	for i, name := range t.columns {
		v, err := strconv.ParseFloat(name, 64)
		if err != nil || v < all[i].low.value || v > -all[i].high.value {
			return false
		}
		counts, last = counts && v == math.Trunc(v) && v > last, v
	}
	return len(t.columns) > 1 && !counts
}

// statistics returns those of all columns, in one pass over the rows.
func (t *table) statistics() []columnStatistics {
	n, width := t.values.dims[0], t.values.dims[1]
	all, row := make([]columnStatistics, width), make([]float32, width)
	for k := range all {
		all[k] = columnStatistics{counts: true, whole: true, ends: newEnds()}
	}
	for i := range n {
		if t.values.disk != nil {
			t.values.disk.copyRow(row, i)
		} else {
			row = t.values.floats[i*width : (i+1)*width]
		}
		for k, v := range row {
			all[k].add(v, i == 0)
		}
	}
	for k := range all {
		all[k].deviation = math.Sqrt(all[k].squares / max(1, all[k].count))
	}
	return all
}

func (s *columnStatistics) add(v float32, first bool) {
	last := s.last
	if s.last = v; v != v { // missing
		s.counts = false
		return
	}
	s.count++
	s.ends.add(float64(v))
	s.counts = s.counts && (first || v == last+1)
	if s.whole = s.whole && v == float32(math.Floor(float64(v))); !s.whole {
		s.classes = nil
	} else if len(s.classes) <= mostClasses && !slices.Contains(s.classes, v) {
		s.classes = append(s.classes, v)
	}
	d := float64(v) - s.mean
	s.mean += d / s.count
	s.squares += d * (float64(v) - s.mean)
}

// isClass reports whether the values may be numbers of classes: few different whole numbers.
func (s *columnStatistics) isClass() bool { return len(s.classes) > 0 && len(s.classes) <= mostClasses }

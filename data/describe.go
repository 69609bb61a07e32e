package data

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"tessera/internal/numeral"
)

// mostDescribed is the largest number of columns of a table that are described one by one.
const mostDescribed = 12

// Described is what was read of a column, for a user who compares it with the file.
type Described struct {
	Name    string // "" for all values of the samples
	Type    string
	Range   string // smallest and largest value
	Missing int
	First   string // first values
}

// Describe returns what was read of the training samples: of all values, of the first values that have names, and of all further
// columns; and the number of values with names that it leaves out.
func (s *Set) Describe() (list []Described, others int) {
	m := s.Train
	if m == nil || m.n == 0 {
		return nil, 0
	}
	named := m.columns
	if m.Sparse() {
		named = nil
	}
	all := m.describe(ImagesColumn, map[bool]string{true: "bytes / 255", false: "numbers"}[m.isBytes()])
	all.Name = ""
	if named != nil || m.Sparse() {
		all.First = ""
	}
	list = append(list, all)
	if shown := named[:min(len(named), mostDescribed)]; len(shown) > 0 {
		list = append(list, m.describeValues(shown)...)
	}
	for _, v := range m.further {
		list = append(list, m.describe(v.Name, v.Type.Plural()))
	}
	return list, max(len(named)-mostDescribed, 0)
}

// DescribeClasses lists the classes of the training samples with their numbers of samples, and counts the samples without a class;
// "" if there are no labels.
func (s *Set) DescribeClasses() string {
	m := s.Train
	if m == nil || m.labels == nil {
		return ""
	}
	classes, n := slices.Clone(s.Classes), classesOf(m.labels)
	if n > mostCounted && len(classes) == 0 {
		return fmt.Sprintf("labels from %d to %d", slices.Min(m.labels), n-1)
	}
	for k := len(classes); k < n && k <= mostCounted; k++ {
		classes = append(classes, strconv.Itoa(k))
	}
	return classText(classes, m.Labels())
}

func (m *Images) describe(column, kind string) Described {
	low, high, missing := m.span(column)
	return Described{Name: column, Type: kind, Range: numeral.Float(low) + " to " + numeral.Float(high), Missing: missing, First: m.firstValues(column)}
}

// classText lists classes with their numbers of samples, and the number of samples without one.
func classText(classes []string, labels []int) string {
	const most = 6
	counts, unknown := make([]int, len(classes)), 0
	for _, label := range labels {
		if label >= 0 && label < len(classes) {
			counts[label]++
		} else {
			unknown++
		}
	}
	var texts []string
	for i, name := range classes[:min(len(classes), most)] {
		texts = append(texts, fmt.Sprintf("%.40s: %d", name, counts[i]))
	}
	if len(classes) > most {
		texts = append(texts, "...")
	}
	text := fmt.Sprintf("%s (%s)", numeral.Of(len(classes), "class"), strings.Join(texts, ", "))
	if unknown > 0 {
		text += fmt.Sprintf(", %d without a class", unknown)
	}
	return inLine(text)
}

// span returns the range of a column, and the number of its missing entries.
func (m *Images) span(column string) (low, high float64, missing int) {
	low, high = math.Inf(1), math.Inf(-1)
	v := m.column(column)
	classes := v != nil && v.Names != nil
	add := func(v float64) {
		if v != v || classes && v < 0 {
			missing++
			return
		}
		low, high = min(low, v), max(high, v)
	}
	if v != nil {
		size := v.Size()
		for i := range m.n {
			for k := range size {
				add(float64(v.at(m.row(i)*size + k)))
			}
		}
		return low, high, missing
	}
	if m.disk != nil || m.floats != nil && m.wide == nil && m.scaling == nil && !m.Holed() { // none are missing
		least, most := m.Range()
		return float64(least), float64(most), 0
	}
	seen := 0
	m.eachValue(func(_ int, v float64) { seen++; add(v) })
	return low, high, m.n*m.pixels - seen
}

// describeValues describes the first values of the samples, as they are in the file.
func (m *Images) describeValues(names []string) []Described {
	const most = 4
	type seen struct {
		low, high float64
		missing   int
		part      bool // of a number
		first     []string
	}
	all, row := make([]seen, len(names)), make([]float32, m.pixels)
	for i := range all {
		all[i].low, all[i].high = math.Inf(1), math.Inf(-1)
	}
	for k := range m.n {
		if m.disk != nil {
			m.disk.copyRow(row, m.row(k))
		} else {
			row = m.floats[m.row(k)*m.pixels:]
		}
		for i := range all {
			s, v := &all[i], float64(row[i])
			if v != v {
				s.missing++
				continue
			}
			s.low, s.high, s.part = min(s.low, v), max(s.high, v), s.part || v != math.Trunc(v)
			if len(s.first) < most {
				s.first = append(s.first, m.valueText(i, v))
			}
		}
	}
	list := make([]Described, len(names))
	for i, s := range all {
		kind := map[bool]string{false: "whole numbers", true: "numbers"}[s.part]
		if m.isDate(i) {
			kind = "dates"
		}
		list[i] = Described{Name: inLine(fmt.Sprintf("%.60s", names[i])), Type: kind,
			Range: m.valueText(i, s.low) + " to " + m.valueText(i, s.high), Missing: s.missing, First: strings.Join(s.first, " ")}
	}
	return list
}

func (m *Images) isDate(value int) bool { return value < len(m.dates) && m.dates[value] }

// valueText returns a value as text: of a date, which is a float32 of years to half an hour, the day.
func (m *Images) valueText(value int, v float64) string {
	if !m.isDate(value) {
		return numeral.Float(v)
	}
	begin := time.Date(int(v), 1, 1, 0, 32, 0, 0, time.UTC)
	return begin.Add(time.Duration((v - math.Trunc(v)) * float64(begin.AddDate(1, 0, 0).Sub(begin)))).Format(time.DateOnly)
}

func (m *Images) firstValues(column string) string {
	const most = 4
	c, _ := m.Column(column)
	values := make([]float32, max(1, c.Size()))
	var texts []string
	for i := 0; i < m.n && len(texts) < most; i++ {
		m.Gather(values, column, []int{i})
		for _, v := range values[:min(len(values), most-len(texts))] {
			if k := int(v); c.Names != nil && k >= 0 && k < len(c.Names) {
				texts = append(texts, fmt.Sprintf("%.40s", c.Names[k]))
			} else if c.Names == nil {
				texts = append(texts, numeral.Float(float64(v)))
			}
		}
	}
	return strings.Join(texts, " ")
}

// allEqual returns a warning if all samples have the same values, "" otherwise.
func (m *Images) allEqual() string {
	if m == nil || m.n < 3 || m.Sparse() {
		return ""
	}
	first, row := make([]float32, m.pixels), make([]float32, m.pixels)
	m.copyRow(first, 0)
	for i := 1; i < m.n; i++ {
		if m.copyRow(row, i); !slices.Equal(first, row) {
			return ""
		}
	}
	text := fmt.Sprintf("all %d samples are equal", m.n)
	if low, high := slices.Min(first), slices.Max(first); low == high {
		text += fmt.Sprintf(": every value is %s", numeral.Float(float64(low)))
	}
	return text + "; nothing can be learned from them"
}

// mixed returns a warning if either the training or the test samples are bytes, and the others no pixels.
func (s *Set) mixed() string {
	if s.Train == nil || s.Test == nil || s.Train.isBytes() == s.Test.isBytes() {
		return ""
	}
	bytes, others, whose := s.Train, s.Test, "the test samples"
	if s.Test.isBytes() {
		bytes, others, whose = s.Test, s.Train, "the training samples"
	}
	low, high := others.Scaled(nil).Range()
	return otherUnit(bytes.isBytes(), low, high, whose)
}

// Limits of the samples that known compares: a second or two, and 40 MB.
const (
	mostCompared     = 1 << 28 // values
	mostComparedRows = 1 << 20
)

// known returns a warning if test samples are training samples: a tenth of them or more, where training samples seldom repeat each other.
func (s *Set) known() string {
	if s.Train == nil || s.Test == nil || s.Train.n+s.Test.n > mostComparedRows || (s.Train.n+s.Test.n)*s.Train.pixels > mostCompared {
		return ""
	}
	seen, repeated, known := map[uint64]bool{}, 0, 0
	s.Train.EachRow(func(columns []int32, values []float32) {
		key := rowKey(columns, values)
		if seen[key] {
			repeated++
		}
		seen[key] = true
	})
	s.Test.EachRow(func(columns []int32, values []float32) {
		if seen[rowKey(columns, values)] {
			known++
		}
	})
	if share := float64(known) / float64(s.Test.n); known < 2 || share < 0.1 || share < 2*float64(repeated)/float64(s.Train.n) {
		return ""
	}
	return fmt.Sprintf("%d of %d test samples are equal to training samples: measured on them, a model that has learned them by heart looks good; keep them apart (test)", known, s.Test.n)
}

// rowKey returns a hash of a row (FNV-1a of 64 bits, over words).
func rowKey(columns []int32, values []float32) uint64 {
	key := uint64(14695981039346656037)
	add := func(word uint32) { key = (key ^ uint64(word)) * 1099511628211 }
	for _, c := range columns {
		add(uint32(c))
	}
	for _, v := range values {
		add(math.Float32bits(v))
	}
	return key
}

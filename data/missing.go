package data

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tessera/config/part"
	"tessera/internal/random"
)

// Columns for missing entries. A data set with the key missing = "nan" may contain NaN, or empty cells of a .csv file: they
// remain NaN in memory and are read as 0 after any scaling. Entries may also be hidden deliberately (the key hide of every
// data set), so that their reconstruction can be measured. The columns below distinguish missing, hidden and observed entries.
// They take no memory.
const (
	// ObservedColumn contains the mask of the images: 1 for an observed entry, 0 for a missing or hidden one.
	ObservedColumn = "observed"
	// HeldOutColumn contains 1 for an entry that was hidden deliberately, 0 for others.
	HeldOutColumn = "held_out"
	// CompleteColumn contains the images with the true values of deliberately hidden entries; missing entries are 0.
	CompleteColumn = "complete"
	// ObservedSuffix is the suffix of the name of another column's mask: the mask of `target` is `target.observed`.
	ObservedSuffix = ".observed"
)

// Missing is the key `missing`: texts of cells that are missing entries. NaN, empty cells and the usual texts are, too, unless the list is empty.
type Missing []string

// missingNaN is the key `missing` without further texts.
const missingNaN = "nan"

// FromTOML sets m from a TOML value.
func (m *Missing) FromTOML(value any) error {
	list, ok := value.([]any)
	if !ok {
		if value != any(missingNaN) {
			return fmt.Errorf("got %s, want %q: NaN and empty cells are missing entries; or a list of further texts, such as [\"unknown\"]", valueText(value), missingNaN)
		}
		list = []any{value}
	}
	*m = Missing{}
	for _, one := range list {
		text, ok := one.(string)
		if !ok {
			return fmt.Errorf("got %s, want a text", valueText(one))
		}
		*m = append(*m, text)
	}
	if len(list) == 0 {
		*m = Missing{missingNaN}
	}
	return nil
}

// TOML returns the value in a declaration.
func (m Missing) TOML() any {
	switch {
	case len(m) == 0:
		return nil
	case len(m) == 1 && m[0] == missingNaN:
		return missingNaN
	}
	return []string(m)
}

// checkMissing returns an error for columns with the names of the masks.
func checkMissing(columns ColumnNames) error {
	for _, name := range []string{ObservedColumn, HeldOutColumn, CompleteColumn} {
		if columns[name] != nil {
			return part.KeyErrorf("columns", "%s: is the name of a column of missing or hidden entries: give another one", name)
		}
	}
	return nil
}

// HasMissing reports whether the keys of a source allow missing entries in its samples.
func HasMissing(s Source) bool {
	m, ok := s.(interface{ hasMissing() bool })
	return ok && m.hasMissing()
}

// missingHint is the advice for a missing value that is not declared.
const missingHint = `write missing = "nan" in the dataset table if it is a missing entry`

// Holed reports whether entries of the images may be missing or hidden.
func (m *Images) Holed() bool { return m.missing || m.hides() }

// hides reports whether entries may be hidden.
func (m *Images) hides() bool { return m.hidden != nil || m.entries != nil && m.entries.hidden != nil }

// observed reports whether a value is neither missing nor hidden; k counts the values of all rows.
func (m *Images) observed(k int) bool {
	if m.entries != nil {
		return m.entries.observedAt(k/m.pixels, k%m.pixels)
	}
	return (m.hidden == nil || m.hidden[k] == 0) && (m.floats == nil || m.floats[k] == m.floats[k])
}

// fillRow sets the missing and hidden entries of a row to 0, or to the value that the model's scaling maps to 0; see [Images.Scaled].
func (m *Images) fillRow(dst []float32, row int) {
	if !m.Holed() {
		return
	}
	for k := range dst {
		if m.observed(row*m.pixels + k) {
			continue
		}
		if dst[k] = 0; m.vacant != nil {
			dst[k] = m.vacant[k]
		}
	}
}

// mask returns a column of missing or hidden entries, which takes no memory; see [Images.find].
func (m *Images) mask(name string) (c Column, read func(dst []float32, i int), ok bool) {
	c = Column{Name: name, Shape: m.Shape, Type: Whole}
	switch name {
	case ObservedColumn:
		return c, m.observedRow, m.Holed()
	case HeldOutColumn:
		return c, m.heldOutRow, m.hides()
	case CompleteColumn:
		c.Type = Float32
		return c, m.unhidden().copyRow, m.hides()
	}
	masked, ok := strings.CutSuffix(name, ObservedSuffix)
	of := m.column(masked)
	if !ok || of == nil || !of.Missing {
		return c, nil, false
	}
	c.Shape = of.Shape
	return c, func(dst []float32, i int) {
		for k, v := range of.floats[m.row(i)*len(dst):][:len(dst)] {
			dst[k] = flag(v == v)
		}
	}, true
}

func flag(is bool) float32 {
	if is {
		return 1
	}
	return 0
}

// observedRow writes 1 for the values of sample i that are neither missing nor hidden.
func (m *Images) observedRow(dst []float32, i int) {
	row := m.row(i)
	if m.entries == nil {
		for k := range dst {
			dst[k] = flag(m.observed(row*len(dst) + k))
		}
		return
	}
	for k := range dst {
		dst[k] = flag(m.entries.zeros)
	}
	columns, _ := m.entries.row(row)
	for _, c := range columns {
		dst[c] = 1
	}
	held, _ := m.entries.held(row)
	for _, c := range held {
		dst[c] = 0
	}
}

// heldOutRow writes 1 for the values of sample i that are hidden.
func (m *Images) heldOutRow(dst []float32, i int) {
	row := m.row(i)
	if m.entries == nil {
		for k := range dst {
			at := row*len(dst) + k
			dst[k] = flag(m.hidden[at] != 0 && (m.floats == nil || m.floats[at] == m.floats[at]))
		}
		return
	}
	clear(dst)
	held, _ := m.entries.held(row)
	for _, c := range held {
		dst[c] = 1
	}
}

// unhidden returns the samples with the values of hidden entries.
func (m *Images) unhidden() *Images {
	other := *m
	if other.hidden = nil; m.entries != nil {
		e := *m.entries
		e.hidden = nil
		other.entries = &e
	}
	return &other
}

// Raw returns all images, one after the other, as they were read: unscaled, with NaN for missing and hidden entries.
func (m *Images) Raw() []float32 {
	m = m.Scaled(nil)
	if !m.Holed() {
		return m.Float32()
	}
	all := slices.Clone(m.Float32())
	for i := range m.n {
		m.markMissing(all[i*m.pixels:(i+1)*m.pixels], i)
	}
	return all
}

// markMissing sets the missing and hidden values of sample i to NaN.
func (m *Images) markMissing(values []float32, i int) {
	for k := range values {
		if m.Holed() && !m.observed(m.row(i)*m.pixels+k) {
			values[k] = float32(math.NaN())
		}
	}
}

// hiding returns the set with hidden entries: each with the probability Hide of the selection, or Leave entries of each sample. They depend
// on the seed and the position in the file. A set that already has hidden entries is returned unchanged.
func (s *Set) hiding(sel Selection, seed uint64) *Set {
	if !sel.Hides() || s.Train.OnDisk() || s.Test.OnDisk() {
		return s
	}
	other := *s
	for split, images := range []**Images{&other.Train, &other.Test} {
		hides := random.Stream(seed, "hide", uint64(split))
		choose := func(chosen []bool) {
			for k := range chosen {
				chosen[k] = hides.Float64() < sel.Hide
			}
		}
		if sel.Leave > 0 {
			leaves := random.Stream(seed, "leave", uint64(split))
			choose = func(chosen []bool) {
				clear(chosen)
				if len(chosen) > sel.Leave {
					for _, k := range leaves.Perm(len(chosen))[:sel.Leave] {
						chosen[k] = true
					}
				}
			}
		}
		*images = (*images).hide(choose, sel.Leave > 0)
	}
	return &other
}

// hide hides the entries of each row in memory that choose sets; choose gets one element for each entry, of a matrix that is not sparse also
// for missing ones unless observed is true.
func (m *Images) hide(choose func(chosen []bool), observed bool) *Images {
	if m == nil || m.hides() {
		return m
	}
	if m.entries != nil {
		return m.hideEntries(choose)
	}
	other := *m
	other.hidden = make([]byte, m.stock()*m.pixels)
	places, chosen := make([]int, 0, m.pixels), make([]bool, m.pixels)
	for from := 0; from < len(other.hidden); from += m.pixels {
		places = places[:0]
		for k := from; k < from+m.pixels; k++ {
			if !observed || m.observed(k) {
				places = append(places, k)
			}
		}
		choose(chosen[:len(places)])
		for i, k := range places {
			if chosen[i] {
				other.hidden[k] = 1
			}
		}
	}
	return &other
}

// Fewer returns the number of samples with at most n entries that are there, and the place of the first of them, -1 for none.
func (m *Images) Fewer(n int) (count, first int) {
	first = -1
	m = m.unhidden()
	row := make([]float32, m.pixels)
	for i := range m.n {
		there := float32(m.pixels)
		switch {
		case m.entries != nil:
			columns, _ := m.entries.row(m.row(i))
			there = float32(len(columns))
		case m.missing:
			m.observedRow(row, i)
			there = 0
			for _, is := range row {
				there += is
			}
		}
		if there > float32(n) {
			continue
		}
		if count++; first < 0 {
			first = i
		}
	}
	return count, first
}

// NoneObserved returns an error for a value that is missing in all samples, because a model cannot learn it.
func (m *Images) NoneObserved() error {
	if m == nil || !m.missing {
		return nil
	}
	seen := make([]bool, m.pixels)
	m.Scaled(nil).eachValue(func(k int, _ float64) { seen[k] = true })
	k := slices.Index(seen, false)
	if k < 0 {
		return nil
	}
	return fmt.Errorf("%s is missing in all fitted samples: leave it out", valueName(m.columns, k))
}

// NothingKnown returns the place of the first sample of which all values are missing, as text; "" if there is none. Hidden
// entries are known.
func (m *Images) NothingKnown() string {
	if m == nil || !m.missing || m.floats == nil {
		return ""
	}
	for i := range m.n {
		row := m.floats[m.row(i)*m.pixels:][:m.pixels]
		if !slices.ContainsFunc(row, func(v float32) bool { return v == v }) {
			return m.placeOf(i)
		}
	}
	return ""
}

// WithMissing returns the same images with NaN as missing entries.
func (m *Images) WithMissing() *Images {
	other := *m
	other.missing = true
	return &other
}

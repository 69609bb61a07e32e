package data

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"tessera/internal/lists"
	"tessera/internal/numeral"
)

// csvValues collects the cells of one further column. Its values are whole numbers if all cells are whole numbers, classes if
// it consists of a single column with text, and floats otherwise.
type csvValues struct {
	csvColumn
	floats  []float32
	texts   []string // cells of a single column with text
	unseen  string   // warning of texts that no training sample has
	whole   bool     // all cells so far are whole numbers
	number  bool     // all cells so far are numbers
	bad     string   // first cell that is not a number
	text    string   // the same, unless it is a truth value
	allows  bool     // empty cells are missing entries instead of errors
	reading reading
	holes   bool     // some entries are missing
	in      []string // names of the columns of the file
	spans   *spans
}

// collectors returns the collectors for the requested further columns.
func (f *csvFile) collectors(c csvColumns, r reading) (list []*csvValues) {
	for _, one := range c.further {
		i := slices.IndexFunc(r.known, func(c Column) bool { return c.Name == one.name })
		if r.optional && i >= 0 && len(one.at) != r.known[i].Size() {
			continue
		}
		if slices.Contains(r.need, one.name) {
			allows := r.Missing != nil || i >= 0 && r.known[i].Names != nil // else an unknown class
			list = append(list, &csvValues{csvColumn: one, whole: true, number: true, allows: allows, reading: r, in: f.names(one.at), spans: newSpans(len(one.at))})
		}
	}
	return list
}

func (c *csvValues) add(header, cells []string, line int) error {
	for k, i := range c.at {
		cell := strings.TrimSpace(cells[i])
		v, absent, ok := cellNumber(cell, c.reading.Decimal)
		if absent && c.allows {
			c.holes = true
			c.floats = append(c.floats, float32(math.NaN()))
			if len(c.at) == 1 {
				c.texts = append(c.texts, "")
			}
			continue
		}
		if absent {
			return fmt.Errorf("line %d, column %.60q: is empty or NA, but the model reads it; %s, remove these rows, or fill the cells in", line, header[i], missingHint)
		}
		classes := len(c.at) == 1 && isBool(cell) // two of them, as texts
		if !ok || classes || math.IsInf(float64(float32(v)), 0) {
			if c.number {
				c.bad = c.notNumber(header[i], cells[i], line)
			}
			if c.text == "" && !isBool(cell) {
				c.text = c.notNumber(header[i], cells[i], line)
			}
			c.number, v = false, 0
		}
		c.whole = c.whole && v == math.Trunc(v) && math.Abs(v) < wholeBound
		c.spans.add(k, v)
		c.floats = append(c.floats, narrow(cell, v))
		if len(c.at) == 1 {
			c.texts = append(c.texts, strings.Clone(cell))
		}
	}
	return nil
}

func (c *csvValues) notNumber(column, cell string, line int) string {
	text := fmt.Sprintf("line %d, column %.60q: got %.40q, want a finite number", line, column, cell)
	if hint := c.reading.decimalHint(strings.TrimSpace(cell)); hint != "" {
		text += "; " + hint
	}
	return text
}

// title names the column as its file does.
func (c *csvValues) title() string {
	if len(c.in) == 1 {
		return fmt.Sprintf("column %.60q", c.in[0])
	}
	return fmt.Sprintf("column %.60q", c.name)
}

// finish returns the column. Test samples get the type and the classes of the training samples, if known.
func (c *csvValues) finish(known []Column, lines *rowLines) (*Values, error) {
	var shape []int
	if len(c.at) > 1 {
		shape = []int{len(c.at)}
	}
	var want Column
	if i := slices.IndexFunc(known, func(k Column) bool { return k.Name == c.name }); i >= 0 {
		want = known[i]
	}
	switch {
	case want.Names != nil || !c.number && len(c.at) == 1 && want.Type == "":
		return c.classes(want.Names, lines)
	case !c.number:
		return nil, errors.New(c.bad)
	case want.Type == Whole && c.holes:
		return nil, fmt.Errorf("%s has empty cells, but those of the training samples are whole numbers without any", c.title())
	case want.Type == Whole && !c.whole:
		return nil, fmt.Errorf("%s has values that are not whole numbers, but those of the training samples are", c.title())
	case want.Type == Float32 || !c.whole || c.holes:
		v := FloatColumn(c.name, shape, c.floats)
		v.Missing, v.In, v.spans = c.allows, c.in, c.spans
		return v, nil
	}
	whole := lists.Map(c.floats, func(v float32) int32 { return int32(v) })
	v := WholeColumn(c.name, shape, whole)
	v.In = c.in
	return v, nil
}

// classes converts text to indices into names, or by default into all texts in alphabetical order. An empty cell, and a text that is
// not among the names, is an unknown class.
func (c *csvValues) classes(names []string, lines *rowLines) (*Values, error) {
	if names == nil {
		names = slices.Compact(slices.Sorted(slices.Values(c.texts)))
		if c.holes && len(names) > 0 && names[0] == "" {
			names = names[1:]
		}
	}
	whole, unseen := make([]int32, len(c.texts)), 0
	for i, text := range c.texts {
		if whole[i] = UnknownLabel; c.holes && text == "" {
			continue
		}
		if at, ok := slices.BinarySearch(names, text); ok {
			whole[i] = int32(at)
		} else if unseen++; unseen == 1 {
			c.unseen = fmt.Sprintf("%s: %s has %.40q, which no training sample has (%.200s)", c.title(), lines.place(i), text, strings.Join(names, ", "))
		}
	}
	if unseen > 0 {
		c.unseen += fmt.Sprintf("; %s of this kind: an unknown class, as an empty cell", numeral.Of(unseen, "sample"))
	}
	v := WholeColumn(c.name, nil, whole)
	v.Names, v.Text = names, c.text
	return v, nil
}

// describeColumn reads one further column to determine its type.
func (f *csvFile) describeColumn(name string, r reading) Column {
	r.need = []string{name}
	unknown := Column{Name: name} // with an error that Load reports
	c, err := f.columns(r)
	if err != nil {
		return unknown
	}
	list := f.collectors(c, r)
	_, err = f.eachRow(func(row tableRow) error { return addRow(list, f.header, row) })
	if err != nil || len(list) == 0 {
		return unknown
	}
	v, err := list[0].finish(nil, nil)
	if err != nil {
		return unknown
	}
	return v.Column
}

// addRow adds the cells of a row to further columns.
func addRow(list []*csvValues, header []string, row tableRow) error {
	for _, one := range list {
		if err := one.add(header, row.cells, row.line); err != nil {
			return err
		}
	}
	return nil
}

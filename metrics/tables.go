package metrics

import (
	"encoding/json"
	"fmt"
	"math"
)

// Table contains the numbers of a metric for each class, or for each group, of the samples.
type Table struct {
	Name    string     // "classes"; "HEAD.classes" if several heads are measured
	Of      string     // meaning of a row: "class"
	Columns []string   // names of the numbers
	Rows    []TableRow // rows in the order of the classes
	Notes   []string   // caveats, one sentence each
}

// TableRow is one row of a [Table].
type TableRow struct {
	Name    string
	Numbers []float64 // one per column of the table; NaN if not applicable
}

// Tabled is implemented by meters that have tables in addition to their values. Tables is called after Values.
type Tabled interface {
	Meter
	Tables() []*Table
}

// Number returns a number by the names of its row and column; ok is false if there is none or it is not applicable.
func (t *Table) Number(row, column string) (number float64, ok bool) {
	for _, r := range t.Rows {
		for j, c := range t.Columns {
			if r.Name == row && c == column {
				return r.Numbers[j], !math.IsNaN(r.Numbers[j])
			}
		}
	}
	return 0, false
}

// UnmarshalJSON reads the output of MarshalJSON. Of is the first member of the rows.
func (t *Table) UnmarshalJSON(text []byte) error {
	var read struct {
		Rows  []json.RawMessage
		Notes []string
	}
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	*t = Table{Notes: read.Notes}
	for i, raw := range read.Rows {
		var row TableRow
		err := eachMember(raw, func(name string, raw json.RawMessage) error {
			if t.Of == "" || t.Of == name {
				t.Of = name
				return json.Unmarshal(raw, &row.Name)
			}
			if i == 0 {
				t.Columns = append(t.Columns, name)
			}
			number := math.NaN() // stays for null
			err := json.Unmarshal(raw, &number)
			row.Numbers = append(row.Numbers, number)
			return err
		})
		if err != nil {
			return err
		}
		if len(row.Numbers) != len(t.Columns) {
			return fmt.Errorf("metrics: row %q of a table has %d numbers, want %d", row.Name, len(row.Numbers), len(t.Columns))
		}
		t.Rows = append(t.Rows, row)
	}
	return nil
}

// MarshalJSON writes {"rows": [{"class": NAME, COLUMN: number, ...}, ...], "notes": [...]}, with null for a number that is not applicable.
func (t *Table) MarshalJSON() ([]byte, error) {
	var rows []json.RawMessage
	for _, r := range t.Rows {
		var o object
		o.member(t.Of, r.Name)
		for j, c := range t.Columns {
			if v := r.Numbers[j]; math.IsNaN(v) {
				o.member(c, nil)
			} else {
				o.member(c, v)
			}
		}
		text, err := o.bytes()
		if err != nil {
			return nil, err
		}
		rows = append(rows, text)
	}
	var o object
	o.member("rows", rows)
	if len(t.Notes) > 0 {
		o.member("notes", t.Notes)
	}
	return o.bytes()
}

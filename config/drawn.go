package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tessera/data"
	"tessera/losses"
	"tessera/part/table"
)

// Drawn declares a column whose values are drawn from the seed in every step: noise, masks, negative samples. It is
// read by its name like a column of the data set.
type Drawn struct {
	Kind string    `toml:"kind" doc:"how it is drawn"`
	Draw data.Draw `part:"kind"`
}

// drawnPart returns the location of a drawn column in the declaration.
func drawnPart(name string) string { return "column." + table.KeyText(name) }

// allDrawn returns the drawn columns, sorted by name.
func (m *Model) allDrawn() (list []data.Drawn) {
	for _, name := range slices.Sorted(maps.Keys(m.Drawn)) {
		if d := m.Drawn[name].Draw; !isNil(d) {
			list = append(list, data.Drawn{Name: name, Draw: d})
		}
	}
	return list
}

// allColumns describes the columns other than images and labels: first those of the data set, if known, then the drawn
// ones. A drawn column with an error, or one that depends on an unknown column, has no type.
func (m *Model) allColumns(input []int) []data.Column {
	if len(m.Drawn) == 0 {
		return m.columns
	}
	list := slices.Clone(m.columns)
	for _, d := range m.allDrawn() {
		c, err := d.Draw.Column(m.besideDrawn(input))
		if err != nil {
			c = data.Column{}
		}
		list = append(list, d.Described(c))
	}
	return list
}

// besideDrawn returns a function that describes a column of the data set by its name. It does not know drawn columns.
func (m *Model) besideDrawn(input []int) func(name string) (data.Column, bool) {
	return (&Layout{Input: input, Columns: m.columns, Holed: m.Holed()}).Column
}

// readByDraws lists the columns that the drawn column with the given name reads.
func (m *Model) readByDraws(name string) []string {
	if r, ok := m.Drawn[name].Draw.(data.DrawReader); ok {
		return r.Reads()
	}
	return nil
}

// BehindDrawn returns columns with each drawn column replaced by the columns from which it is drawn. The result is what
// the data must contain.
func (m *Model) BehindDrawn(columns []data.Column) (list []data.Column) {
	add := func(c data.Column) {
		if !slices.ContainsFunc(list, func(o data.Column) bool { return o.Name == c.Name }) {
			list = append(list, c)
		}
	}
	for _, c := range columns {
		if !c.Drawn {
			add(c)
			continue
		}
		for _, name := range m.readByDraws(c.Name) {
			if of, ok := m.besideDrawn(m.shape)(name); ok {
				add(of)
			}
		}
	}
	return list
}

// drawnColumns checks the drawn columns: their names, the columns that they read, and that each of them is read.
func (w *walk) drawnColumns() {
	m := w.model
	if m.inDoubt("column") || m.Dataset.Source == nil {
		return
	}
	read := m.namesRead()
	for _, d := range m.allDrawn() {
		part, kind := drawnPart(d.Name), m.Drawn[d.Name].Kind
		if m.origin.Doubt(part) != nil {
			continue
		}
		problem := ""
		switch {
		case d.Name == "" || strings.ContainsAny(d.Name, `./*?[]\ `):
			problem = "it must not be empty and not contain . / * ? [ ] \\ or spaces"
		case slices.Contains(reservedColumns, d.Name):
			problem = "the name is reserved"
		case m.hasColumn(d.Name):
			problem = "the data set has a column of this name"
		}
		if problem != "" {
			w.report(part, kind, "", fmt.Sprintf("invalid name %q of a drawn column: %s", d.Name, problem), "")
			continue
		}
		if _, err := d.Draw.Column(m.besideDrawn(w.layout.Input)); err != nil {
			w.report(part, kind, table.KeyOf(err), err.Error(), "there are "+w.existing())
			continue
		}
		if of := w.withHoles(d.Name); of != "" {
			w.report(part, kind, "of", fmt.Sprintf("of: %q has missing or hidden entries, which a column of other samples cannot leave out", of), "draw a column without missing entries")
			continue
		}
		if !slices.Contains(read, d.Name) && !m.inDoubt("loss") && !m.inDoubt("head") && !m.inDoubt("encoder") && !m.inDoubt("decoder") {
			w.report(part, kind, "", fmt.Sprintf("nothing reads the drawn column %q", d.Name), "name it in from of a head or a layer, or in against, mask or sample_weight of a loss")
		}
	}
}

// withHoles returns the first column with missing or hidden entries that a drawn column reads, or "".
func (w *walk) withHoles(drawn string) string {
	for _, name := range w.model.readByDraws(drawn) {
		if c, ok := w.layout.Column(name); ok && (c.Missing || name == losses.Images && w.layout.Holed) {
			return name
		}
	}
	return ""
}

// reservedColumns lists the names that a drawn column must not have.
var reservedColumns = []string{losses.Code, losses.Output, losses.Atoms, losses.Images, losses.Labels, "views", "loss", "names", Previous,
	data.ObservedColumn, data.HeldOutColumn, data.CompleteColumn}

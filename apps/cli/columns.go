package cli

import (
	"io"

	"tessera/apps/show"
	"tessera/apps/show/doc"
	"tessera/metrics"
)

// columns prints rows in aligned columns.
type columns struct {
	out   io.Writer
	table doc.Table
}

func newTable(out io.Writer) *columns { return &columns{out: out} }

// row adds one row.
func (t *columns) row(cells ...any) {
	t.table.Row(cells...)
	for len(t.table.Columns) < len(cells) {
		t.table.Columns = append(t.table.Columns, doc.Column{})
	}
}

// flush prints the rows.
func (t *columns) flush() error {
	return (&doc.Document{Blocks: []doc.Block{&t.table}}).Text(t.out, screenOf(t.out))
}

// printJSON prints one document.
func printJSON(out io.Writer, v any) error { return (&doc.Document{Data: v}).JSON(out) }

// valueText prints the named value, "-" if it is not applicable or was not measured.
func valueText(values metrics.Values, name string) string { return doc.Text(show.Value(values, name)) }

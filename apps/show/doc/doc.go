// Package doc holds what a command reports: one [Document] with a title and blocks of typed values, and four ways to show it:
// [Document.Text] for a terminal, [Document.HTML] for a page, [Document.JSON] for programs and [Document.Markdown].
//
//	d := &doc.Document{Title: "asym: parts of digits"}
//	d.Add(
//		&doc.Facts{Facts: []doc.Fact{
//			{Key: "parameters", Title: "parameters", Value: 157684},      // 157,684 for people, 157684 in JSON
//			{Key: "seconds", Title: "trained for", Value: doc.Seconds(75)},
//		}},
//		&doc.Table{Key: "layers", Columns: doc.Columns("layer", "kind", "parameters"), Rows: [][]any{{"encoder.0", "dense", 78500}}},
//		doc.Warning("%d of %d units are dead", 3, 20),
//	)
//	err := d.Text(os.Stdout, doc.Screen{Width: 80})
//
// A value has its Go type until it is shown: an int is a count, a float64 has four significant digits, [Percent], [P], [Seconds], [Bytes],
// [Spread] and [Interval] say how a number is read, nil and NaN are "-". [Shown] gives a value a text of its own. Package numeral
// writes the digits.
//
// In JSON a document is one object. Facts with a key are its members, a table with a key is a list of objects with the keys of
// its columns, a figure is its path, notes are the list "notes". A block or a fact without a key is for people only; a fact without a
// title is for programs only. Data, a struct or a map whose form is documented already, gives the first members, and blocks add only
// the keys that it lacks; a list as Data is the whole form.
package doc

import (
	"fmt"
	"slices"

	"tessera/internal/lists"
)

// Document is what a command reports.
type Document struct {
	Title  string
	Data   any // the documented JSON form, nil if the blocks are all of it
	Blocks []Block
}

// Add appends blocks and leaves out nil ones and tables without rows.
func (d *Document) Add(blocks ...Block) {
	for _, b := range blocks {
		if t, ok := b.(*Table); b == nil || ok && (t == nil || len(t.Rows) == 0) {
			continue
		}
		d.Blocks = append(d.Blocks, b)
	}
}

// Block is a part of a document: [*Facts], [*Table], [*Note], [*Figure], [*Gallery], [*Curves] or [*Group].
type Block interface {
	text(*screen)
	html(*page)
	markdown(*markdown)
	json(*members) error
}

var _ = []Block{(*Facts)(nil), (*Table)(nil), (*Note)(nil), (*Figure)(nil), (*Gallery)(nil), (*Curves)(nil), (*Group)(nil)}

// Facts are keys with values, one on each line.
type Facts struct {
	Key, Title string // with a key the facts are one object of this name in JSON
	Facts      []Fact
}

// Fact is a value with its name.
type Fact struct {
	Key   string // member in JSON, "" for none
	Title string // name for people, "" for none
	Value any    // nil leaves the fact out for people; JSON has null
	About string // what it is, for pages
	Minor bool   // pages and JSON only
}

// Add appends a fact, unless its value is nil or "".
func (f *Facts) Add(key, title string, value any) {
	if value != nil && value != "" {
		f.Facts = append(f.Facts, Fact{Key: key, Title: title, Value: value})
	}
}

// Better is the direction of a measure.
type Better string

// The directions; "" for neither.
const (
	Higher Better = "higher"
	Lower  Better = "lower"
)

// Column describes a column of a [Table].
type Column struct {
	Key    string // member of each row in JSON, "" for none
	Title  string // "" in all columns leaves out the head for people
	Unit   string // follows the title in brackets
	Right  bool   // aligned on the right
	Better Better // direction of the measure
	Wrap   bool   // a long text, which fills what is left of a line
	Spare  int    // where a line is too narrow, columns with the largest number are left out first; 0 for never
	Minor  bool   // pages and Markdown only
	About  string // what it is, for pages
}

// Columns returns columns whose keys are their titles.
func Columns(titles ...string) []Column {
	return lists.Map(titles, func(title string) Column { return Column{Key: title, Title: title} })
}

// Table has one row for each thing.
type Table struct {
	Key, Title string
	Columns    []Column
	Rows       [][]any  // a row may be shorter than the columns
	Heads      int      // leading columns that name a row: those that the parts of a table too wide for a line repeat; 0 means 1
	Notes      []string // remarks below the table
	Folded     bool     // a page shows it when its title is selected
}

// Row appends a row.
func (t *Table) Row(cells ...any) { t.Rows = append(t.Rows, cells) }

// Level is the weight of a [Note].
type Level string

// The levels.
const (
	Info    Level = "info"
	Hint    Level = "hint"
	Warn    Level = "warning"
	Failure Level = "error"
)

// Note is a sentence for the reader.
type Note struct {
	Level Level
	Text  string
}

// Remark is a note without a word in front.
func Remark(format string, args ...any) *Note { return &Note{Info, fmt.Sprintf(format, args...)} }

// Advice is a note that begins with "hint".
func Advice(format string, args ...any) *Note { return &Note{Hint, fmt.Sprintf(format, args...)} }

// Warning is a note that begins with "warning".
func Warning(format string, args ...any) *Note { return &Note{Warn, fmt.Sprintf(format, args...)} }

// Figure is a picture.
type Figure struct {
	Key, Title, About string
	Path              string // file of the picture, "" for none
	PNG               []byte // the picture on pages; nil for none
}

// Gallery shows small pictures side by side, on pages only.
type Gallery struct {
	Style    string   // class of the gallery in the style sheet of pages
	Names    []string // names of the columns of pictures of vectors
	Pictures []Picture
}

// Picture is a picture of a [Gallery]. A table may have a []Picture as a cell.
type Picture struct {
	PNG     []string // pictures side by side, in base64
	Caption string
	About   string // for readers who do not see it
	Unit    string // the number of the unit that scripts of pages open; "" for none
	Faint   bool
}

// Curves are lines over a common axis.
type Curves struct {
	Key, Title, About string
	X, Y              string // names of the axes
	Log               bool   // the x axis is logarithmic
	Lines             []Line
}

// Line is a named line of [Curves], of equal numbers of finite X and Y.
type Line struct {
	Name string    `json:"name"`
	X    []float64 `json:"x"`
	Y    []float64 `json:"y"`
}

// Group is a section with a title of several blocks. Its keys are those of the document.
type Group struct {
	Title  string
	Blocks []Block
}

// Find returns the fact with a key, in the order of the blocks; false if there is none.
func (d *Document) Find(key string) (Fact, bool) { return find(d.Blocks, key) }

func find(blocks []Block, key string) (Fact, bool) {
	for _, b := range blocks {
		switch b := b.(type) {
		case *Group:
			if f, ok := find(b.Blocks, key); ok {
				return f, true
			}
		case *Facts:
			if i := slices.IndexFunc(b.Facts, func(f Fact) bool { return f.Key == key }); i >= 0 {
				return b.Facts[i], true
			}
		}
	}
	return Fact{}, false
}

package cli

import (
	"bytes"
	_ "embed"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"tessera/config/part/table"
	"tessera/data"
)

// ownModels is the template of the file that init writes for data of the user.
//
//go:embed init_table.toml
var ownModels string

// foundData is what init guesses of a table or a folder of pictures.
type foundData struct {
	Path, Name string // file or folder, and the name of its model
	Dataset    string // table of TOML
	Units      int
	Ladder     string
	Rate       float64
	said       []string // the guesses, for the user
}

// modelsOf returns a file of models for the data at a path, and the guesses.
func modelsOf(path string) (text []byte, said []string, err error) {
	own := &foundData{Path: path, Name: modelName(path), Rate: 0.01, Units: 10}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, nil, &data.Error{Path: path, Problem: data.NotFound}
	case info.IsDir():
		own.Units, own.Rate = 20, 0.001 // where many values are above 0, larger steps leave dead units
		own.Dataset = fmt.Sprintf("{ name = \"images\", images = %s, size = 32 }", table.StringText(path))
		own.say("pictures are scaled to 32 x 32 pixels (size)")
	case strings.EqualFold(filepath.Ext(path), ".csv"):
		if err := own.read(); err != nil {
			return nil, nil, err
		}
	default:
		return nil, nil, usagef("init: %s: got a file that is no .csv, want a table or a folder of pictures; docs/data.md has the tables of other formats", path)
	}
	var ladder []string
	for _, n := range ladderOf(own.Units) {
		ladder = append(ladder, strconv.Itoa(n))
	}
	own.Ladder = "[" + strings.Join(ladder, ", ") + "]"
	var b bytes.Buffer
	err = template.Must(template.New("models").Parse(ownModels)).Execute(&b, own)
	return b.Bytes(), own.said, err
}

// ladderOf returns the numbers of units of the sweep.
func ladderOf(units int) []int { return ladder(units, math.MaxInt) }

// modelName returns the name of a file or folder as the name of a model.
func modelName(path string) string {
	base := filepath.Base(filepath.Clean(path))
	name := strings.Trim(strings.Map(func(r rune) rune {
		if r < 128 && strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-_", r) {
			return r
		}
		return '-'
	}, strings.ToLower(strings.TrimSuffix(base, filepath.Ext(base)))), "-")
	if name == "" {
		return "own"
	}
	return name
}

func (o *foundData) say(format string, args ...any) {
	o.said = append(o.said, fmt.Sprintf(format, args...))
}

// looked is the number of rows that init reads of a table.
const looked = 1000

// read guesses the columns of a table from its head and its first rows.
func (o *foundData) read() error {
	f, err := os.Open(o.Path)
	if err != nil {
		return &data.Error{Path: o.Path, Problem: err.Error()}
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.FieldsPerRecord, r.LazyQuotes = -1, true
	var rows [][]string
	for len(rows) <= looked {
		row, err := r.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return &data.Error{Path: o.Path, Problem: err.Error()}
		}
		rows = append(rows, row)
	}
	if len(rows) < 2 {
		return &data.Error{Path: o.Path, Problem: fmt.Sprintf("got %d lines, want a line of names and a line for each sample", len(rows))}
	}
	rows[0][0] = strings.TrimPrefix(rows[0][0], "\ufeff")
	o.guess(rows[0], rows[1:])
	return nil
}

// guess fills in the table of the data set: a column of texts that differ in every row has the names of samples, the first other column of
// texts, or one with the name of a label, the labels. All columns of numbers are values.
func (o *foundData) guess(head []string, rows [][]string) {
	var names, labels string
	var values, ignored []string
	low, high, missing := math.Inf(1), math.Inf(-1), false
	for i, name := range head {
		c := columnOf(rows, i)
		named := slices.Contains([]string{"label", "class", "target", "species", "type", "group"}, strings.ToLower(name)) && c.different <= 50
		switch {
		case names == "" && c.different == len(rows) && (!c.numeric || name == "" || strings.EqualFold(name, "id") || strings.EqualFold(name, "index")):
			names = name
		case labels == "" && (named || !c.numeric && 2*c.different <= len(rows)):
			labels = name
		case !c.numeric:
			ignored = append(ignored, name)
		default:
			values = append(values, table.StringText(name))
			low, high, missing = min(low, c.low), max(high, c.high), missing || c.missing
		}
	}
	text := "{ name = \"csv\", file = " + table.StringText(o.Path)
	for _, guessed := range []struct{ key, column string }{{"labels", labels}, {"names", names}} {
		if guessed.column != "" {
			text += fmt.Sprintf(", %s = %s", guessed.key, table.StringText(guessed.column))
			o.say("%s: column %q", guessed.key, guessed.column)
		}
	}
	if ignored != nil {
		text += ", columns = [" + strings.Join(values, ", ") + "]"
		o.say("not read, because they are texts: %s", strings.Join(ignored, ", "))
	}
	if missing {
		text += ", missing = \"nan\""
		o.say("empty cells are missing entries (missing)")
	}
	if low < 0 || high > 2 { // parts that only add, and the rate of learning, suit values from 0 to 1
		text += ", scale = \"minmax\""
		o.say("values from %g to %g are scaled to [0,1] (scale)", low, high)
	}
	o.Dataset, o.Units = text+" }", max(2, min(10, len(values)/4))
	o.say("values: %d columns of numbers", len(values))
}

// column is what the first rows say of a column of a table.
type column struct {
	numeric, missing bool
	different        int // number of different texts
	low, high        float64
}

// columnOf reads one column of rows.
func columnOf(rows [][]string, i int) column {
	c := column{numeric: true, low: math.Inf(1), high: math.Inf(-1)}
	seen := map[string]bool{}
	for _, row := range rows {
		text := ""
		if i < len(row) {
			text = strings.TrimSpace(row[i])
		}
		seen[text] = true
		v, err := strconv.ParseFloat(text, 64)
		switch {
		case text == "" || text == "NA" || err == nil && math.IsNaN(v):
			c.missing = true
		case err != nil:
			c.numeric = false
		default:
			c.low, c.high = min(c.low, v), max(c.high, v)
		}
	}
	c.different = len(seen)
	return c
}

package sweep

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"tessera/internal/sealed"
	"tessera/metrics"
	"tessera/train/folder"
)

// files are the results as they are written.
func (r *Results) files() ([]folder.File, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(sealedResults{r, sealed.Open})
	if err == nil {
		err = sealed.Seal(b.Bytes())
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ResultsFile, err)
	}
	files := []folder.File{{Name: ResultsFile, Data: b.Bytes()}, {Name: TableFile, Data: r.table()}, {Name: SummaryFile, Data: r.summary()}}
	if len(r.Selected) > 0 {
		files = append(files, folder.File{Name: SelectedFile, Data: r.selectionTable()})
	}
	return files, nil
}

// table is one row per trial.
func (r *Results) table() []byte {
	names := r.names()
	rows := [][]string{slices.Concat([]string{"trial", "model"}, r.Keys, []string{"seed", "dataset", "split", "images"}, names, []string{"error"})}
	for _, t := range r.Trials {
		row := slices.Concat([]string{t.Trial, t.Model}, t.Texts(r.Keys), []string{strconv.FormatUint(t.Seed, 10)})
		if t.Metrics == nil {
			row = append(row, make([]string, 3+len(names))...)
		} else {
			row = append(row, t.Metrics.Dataset, t.Metrics.Split, strconv.Itoa(t.Metrics.Images))
			for _, name := range names {
				row = append(row, number(t.Metrics.Values, name))
			}
		}
		rows = append(rows, append(row, t.Error))
	}
	return table(rows)
}

// summary is one row per setting.
func (r *Results) summary() []byte {
	names := r.names()
	rows := [][]string{slices.Concat([]string{"model"}, r.Keys, []string{"seeds"}, columns(names))}
	for _, s := range r.Settings {
		rows = append(rows, slices.Concat([]string{s.Model}, texts(s.Values, r.Keys), []string{seedCount(s)}, s.numbers(names)))
	}
	return table(rows)
}

// columns are a metric's mean and its deviation.
func columns(names []string) []string {
	var head []string
	for _, name := range names {
		head = append(head, name, name+"_deviation")
	}
	return head
}

// numbers are the cells of these columns.
func (s Setting) numbers(names []string) []string {
	var row []string
	for _, name := range names {
		row = append(row, number(s.Mean, name), number(s.Deviation, name))
	}
	return row
}

func seedCount(s Setting) string { return strconv.Itoa(len(s.Seeds)) }

func table(rows [][]string) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	_ = w.WriteAll(rows) // a buffer takes everything
	return b.Bytes()
}

// number formats the number of that name, empty if there is none.
func number(values metrics.Values, name string) string {
	v, ok := values.Number(name)
	if !ok {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// Texts are the trial's values of some keys as text.
func (r Row) Texts(keys []string) []string { return texts(r.Values, keys) }

// Texts are the setting's values of some keys as text.
func (s Setting) Texts(keys []string) []string { return texts(s.Values, keys) }

// Texts are the trial's values as text, in the order of the sweep's keys.
func (t *Trial) Texts() []string {
	all := make([]string, len(t.Values))
	for i, v := range t.Values {
		all[i] = text(v)
	}
	return all
}

func texts(values map[string]any, keys []string) []string {
	all := make([]string, len(keys))
	for i, k := range keys {
		all[i] = text(values[k])
	}
	return all
}

// text prints a value: a name as it is, tables and lists as JSON, nothing for a key that a model does not have.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	b, err := json.Marshal(v)
	if err != nil { // an infinity within a table
		return fmt.Sprint(v)
	}
	return string(b)
}

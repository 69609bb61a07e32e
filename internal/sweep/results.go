package sweep

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tessera/config"
	"tessera/data"
	"tessera/internal/lists"
	"tessera/internal/regular"
	"tessera/internal/sealed"
	"tessera/internal/shell"
	"tessera/internal/train/checkpoint"
	"tessera/internal/train/folder"
	"tessera/metrics"
)

// Results is the contents of results.json: the results of all trials of a sweep, in the order of the declaration. The
// tables results.csv and summary.csv contain the trials and the settings.
type Results struct {
	Format   int       `json:"format"` // version of the folder's format; see [EarlierVersion]
	Sweep    string    `json:"sweep"`
	Changes  []string  `json:"changes"`  // flags that changed the declaration
	Keys     []string  `json:"keys"`     // keys that vary, as in --set
	Settings []Setting `json:"settings"` // groups of trials that differ only in their seeds
	Trials   []Row     `json:"trials"`
	Split    string    `json:"split"` // images on which settings and trials were measured, a data.Split

	Select   []config.Criterion `json:"select,omitempty"`   // metrics by which settings were selected
	Selected []Setting          `json:"selected,omitempty"` // selected settings, measured on the test images
}

// Row contains the results of one trial.
type Row struct {
	Trial   string          `json:"trial"` // name of its folder in trials
	Model   string          `json:"model"`
	Values  map[string]any  `json:"values"` // values of the sweep's keys that the model has
	Seed    uint64          `json:"seed"`
	Metrics *metrics.Result `json:"metrics"` // as in `eval --json`; null if the trial has not finished
	Error   string          `json:"error,omitempty"`
	First   []string        `json:"first,omitempty"` // metrics of tables and figures of the model, those by which it is judged first
}

// First lists the metrics that tables and figures show first: those of the models, and those that were measured on request.
func (r *Results) First() (names []string) {
	for _, row := range r.Trials {
		names = lists.Add(names, row.First...)
	}
	for _, row := range r.Trials {
		if row.Metrics == nil {
			continue
		}
		for _, v := range row.Metrics.Values {
			if name := v.Name[strings.LastIndex(v.Name, ".")+1:]; v.Missing == "" && !slices.Contains(names, name) && metrics.OnRequest(name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// Setting is one model with one value for every key. The means and deviations are over the seeds with finished trials.
// Metrics that one of these trials lacks are left out: the mean over the others would not be comparable.
type Setting struct {
	Model     string         `json:"model"`
	Values    map[string]any `json:"values"`
	Trials    []string       `json:"trials"`
	Seeds     []uint64       `json:"seeds"` // seeds of the finished trials
	Mean      metrics.Values `json:"mean"`
	Deviation metrics.Values `json:"deviation"` // sample standard deviation (divisor n - 1); empty for a single seed
}

// Read reads the results in a sweep's folder. The error is [fs.ErrNotExist] if there are none, and a
// [*checkpoint.Error] if they are damaged.
func Read(path string) (*Results, error) {
	text, err := regular.ReadFile(filepath.Join(path, ResultsFile))
	if err != nil {
		return nil, err
	}
	r := &Results{}
	if err = sealed.Check(text); err == nil {
		err = json.Unmarshal(text, r)
	}
	var earlier struct{ Format int }
	if json.Unmarshal(text, &earlier) == nil && earlier.Format < format {
		return nil, &EarlierVersion{path}
	}
	if err != nil {
		return nil, checkpoint.Errorf(filepath.Join(path, ResultsFile),
			"%s; run the sweep again: it writes the results again and repeats no finished trial", damage(err))
	}
	return r, nil
}

// format is the version of the contents of a sweep's folder. Since version 2 the names of trials depend only on
// non-default values.
const format = 2

// EarlierVersion is the error for a sweep's folder written by an earlier version of tessera. Its trials have other names, so
// running the sweep would train all of them again.
type EarlierVersion struct{ Path string }

func (e *EarlierVersion) Error() string {
	return e.Path + ": an earlier version wrote this sweep, whose trials have other names; tessera 0.1.0 reads it"
}

// Is reports whether target is [folder.ErrForeign].
func (e *EarlierVersion) Is(target error) bool { return target == folder.ErrForeign }

// damage returns a description of the damage of a file.
func damage(err error) string {
	if errors.Is(err, sealed.ErrDamaged) {
		return err.Error()
	}
	return "damaged: " + err.Error()
}

// sealedResults contains results and the checksum of their file.
type sealedResults struct {
	*Results
	SHA256 string `json:"sha256"`
}

// Is reports whether a folder is the folder of a sweep.
func Is(path string) bool {
	_, err := os.Stat(filepath.Join(path, ResultsFile))
	return !errors.Is(err, fs.ErrNotExist)
}

// Owned returns the folder of the sweep to which the file at a path belongs, also through symbolic links; "" for other files, those of its
// trials among them: see [folder.Owned]. The file need not exist.
func Owned(path string) string {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	dir, name := filepath.Split(path)
	own := slices.Contains([]string{ResultsFile, TableFile, SummaryFile, TimingsFile, SelectedFile, ManifestFile}, strings.TrimSuffix(name, folder.Unfinished))
	for _, has := range []string{ResultsFile, ManifestFile, trialsDir} {
		if _, err := os.Lstat(filepath.Join(dir, has)); own && err == nil {
			return filepath.Clean(dir)
		}
	}
	return ""
}

// TrialPath returns the folder of a trial of the sweep in the folder path.
func TrialPath(path, trial string) string { return filepath.Join(path, trialsDir, trial) }

// Flags returns the changes of the declaration as command-line arguments: "--set", "loss.1.weight=0.1".
func (r *Results) Flags() (words []string) {
	for _, change := range r.Changes {
		flag, value, _ := strings.Cut(change, " ")
		words = append(words, flag, shell.Word(value))
	}
	return words
}

// results returns the results of the trials that have finished or failed.
func (s *Sweep) results() *Results {
	r := &Results{Format: format, Sweep: s.Name, Changes: s.changes, Keys: append([]string{}, s.Keys...), Split: string(s.measuredOn()), Settings: []Setting{}, Trials: []Row{}}
	rows := map[string][]Row{}
	for _, t := range s.Trials {
		row := Row{Trial: t.ID, Model: t.Model.Name, Values: map[string]any{}, Seed: t.Model.Train.Seed, Metrics: t.measured, First: t.Model.Measures()}
		for i, key := range s.Keys {
			if t.Values[i] == nil { // the model does not have this key
				continue
			}
			row.Values[key] = t.Values[i]
			if v, ok := t.Values[i].(float64); ok && math.IsInf(v, 0) { // JSON cannot represent infinity
				row.Values[key] = text(v)
			}
		}
		if t.err != nil {
			row.Error = t.problem()
		}
		r.Trials = append(r.Trials, row)
		setting := row.Model + "\x00" + strings.Join(row.Texts(s.Keys), "\x00")
		if rows[setting] == nil {
			r.Settings = append(r.Settings, Setting{Model: row.Model, Values: row.Values})
		}
		rows[setting] = append(rows[setting], row)
	}
	for i := range r.Settings {
		one := &r.Settings[i]
		one.fill(rows[one.Model+"\x00"+strings.Join(texts(one.Values, s.Keys), "\x00")])
	}
	r.Select, r.Selected = s.criteria, s.selected(r.Settings)
	return r
}

// measuredOn returns the split on which the trials are measured.
func (s *Sweep) measuredOn() data.Split {
	if s.split == data.TestSplit {
		return s.SelectedOn()
	}
	return s.split
}

// SelectedOn returns the split on which selected settings are measured: the test images, or all images if no data set
// has test images.
func (s *Sweep) SelectedOn() data.Split {
	if slices.ContainsFunc(s.Trials, func(t *Trial) bool { return t.tested.HasTest }) {
		return data.TestSplit
	}
	return data.AllSplit
}

// fill computes the summary of the trials of a setting.
func (s *Setting) fill(rows []Row) {
	s.Seeds, s.Mean, s.Deviation = []uint64{}, metrics.Values{}, metrics.Values{}
	numbers := map[string][]float64{}
	for _, row := range rows {
		s.Trials = append(s.Trials, row.Trial)
		if row.Metrics == nil {
			continue
		}
		s.Seeds = append(s.Seeds, row.Seed)
		for _, v := range row.Metrics.Values {
			if v.Missing == "" {
				numbers[v.Name] = append(numbers[v.Name], v.Number)
			}
		}
	}
	maps.DeleteFunc(numbers, func(_ string, all []float64) bool { return len(all) < len(s.Seeds) })
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		s.Mean.Set(name, mean(numbers[name]))
		if len(numbers[name]) > 1 {
			s.Deviation.Set(name, deviation(numbers[name]))
		}
	}
}

func mean(v []float64) float64 { return lists.Sum(v) / float64(len(v)) }

func deviation(v []float64) float64 {
	sum, center := 0.0, mean(v)
	for _, x := range v {
		sum += (x - center) * (x - center)
	}
	return math.Sqrt(sum / float64(len(v)-1))
}

// names returns the names of the metrics of all trials, in the order of an evaluation. If no trial has finished, it
// returns the metrics of every auto-encoder.
func (r *Results) names() []string {
	var all []string
	for _, t := range r.Trials {
		if t.Metrics == nil {
			continue
		}
		next := 0 // index at which a name that is not listed yet belongs
		for _, v := range t.Metrics.Values {
			if at := slices.Index(all, v.Name); at >= 0 {
				next = at + 1
			} else if v.Missing == "" {
				all = slices.Insert(all, next, v.Name)
				next++
			}
		}
	}
	if len(all) == 0 {
		return commonMetrics()
	}
	return all
}

// commonMetrics returns the default metrics that are applicable to every auto-encoder.
func commonMetrics() []string {
	var all []string
	for _, c := range metrics.Default() {
		d := c.Metric.Describe()
		if c.Optional || d.Partial || d.Reads&^(metrics.ReadsImages|metrics.ReadsCodes|metrics.ReadsOutputs) != 0 {
			continue
		}
		for _, m := range d.Measures {
			all = append(all, m.Name)
		}
	}
	return all
}

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

// table returns results.csv, with one row per trial. If the sweep has a key `dataset`, whose values contain the name of the data
// set, no other column has it.
func (r *Results) table() []byte {
	names := r.names()
	measured, from := []string{"dataset", "split", "images"}, 0
	if slices.Contains(r.Keys, measured[0]) {
		from = 1
	}
	rows := [][]string{slices.Concat([]string{"trial", "model"}, r.Keys, []string{"seed"}, measured[from:], names, []string{"error"})}
	for _, t := range r.Trials {
		row := slices.Concat([]string{t.Trial, t.Model}, t.Texts(r.Keys), []string{strconv.FormatUint(t.Seed, 10)})
		if t.Metrics == nil {
			row = append(row, make([]string, len(measured)-from+len(names))...)
		} else {
			row = append(row, []string{t.Metrics.Dataset, t.Metrics.Split, strconv.Itoa(t.Metrics.Images)}[from:]...)
			for _, name := range names {
				row = append(row, number(t.Metrics.Values, name))
			}
		}
		rows = append(rows, append(row, t.Error))
	}
	return csvText(rows)
}

// summary returns summary.csv, with one row per setting.
func (r *Results) summary() []byte {
	names := r.names()
	rows := [][]string{slices.Concat([]string{"model"}, r.Keys, []string{"seeds"}, columns(names))}
	for _, s := range r.Settings {
		rows = append(rows, slices.Concat([]string{s.Model}, texts(s.Values, r.Keys), []string{seedCount(s)}, s.numbers(names)))
	}
	return csvText(rows)
}

// columns returns two column names for each metric: for its mean and for its deviation.
func columns(names []string) []string {
	var head []string
	for _, name := range names {
		head = append(head, name, name+"_deviation")
	}
	return head
}

// numbers returns the cells of the columns for the given metrics.
func (s Setting) numbers(names []string) []string {
	var row []string
	for _, name := range names {
		row = append(row, number(s.Mean, name), number(s.Deviation, name))
	}
	return row
}

func seedCount(s Setting) string { return strconv.Itoa(len(s.Seeds)) }

func csvText(rows [][]string) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	_ = w.WriteAll(rows) // cannot fail, because a buffer accepts everything
	return b.Bytes()
}

// number returns the formatted value of a metric, "" if there is none.
func number(values metrics.Values, name string) string {
	v, ok := values.Number(name)
	if !ok {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// Texts returns the trial's values of the given keys as texts.
func (r Row) Texts(keys []string) []string { return texts(r.Values, keys) }

// Texts returns the setting's values of the given keys as texts.
func (s Setting) Texts(keys []string) []string { return texts(s.Values, keys) }

// Texts returns the trial's values as texts, in the order of the sweep's keys.
func (t *Trial) Texts() []string {
	return lists.Map(t.Values, text)
}

func texts(values map[string]any, keys []string) []string {
	return lists.Map(keys, func(k string) string { return text(values[k]) })
}

// text formats a value: a string unchanged, whole numbers without an exponent, tables and lists as in models.toml, "" for a key
// that the model does not have.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1e15 {
			return strconv.FormatFloat(v, 'f', -1, 64)
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	case map[string]any, []any:
		return inline(v)
	}
	b, err := json.Marshal(v)
	if err != nil { // a table with an infinite number
		return fmt.Sprint(v)
	}
	return string(b)
}

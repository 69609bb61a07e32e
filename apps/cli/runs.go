package cli

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tessera/apps/show"
	"tessera/apps/show/doc"
	"tessera/config"
	"tessera/config/part/table"
	"tessera/internal/lists"
	"tessera/internal/numeral"
	"tessera/internal/parallel/team"
	"tessera/internal/train"
	"tessera/internal/train/folder"
)

func init() {
	Commands.Register("runs", "List runs: state, model, settings, metrics", func() Command { return &runsCommand{} })
}

type runsCommand struct {
	Dir string `arg:"DIR" optional:"true" is:"folder" doc:"the folder of the runs"`
	fileFlag
	jsonFlag
}

func (f *runsCommand) Help() Help {
	return Help{
		Long: "List the runs in a folder and its sub-folders (default runs): finished, interrupted, in training by another process, or damaged; the last line " +
			"of metrics.jsonl; the settings that differ from the declaration of the model, or from its first run where no file declares it. " +
			"Parameters are not read: `tessera eval` and `tessera resume` verify them.",
		Examples: []string{"tessera runs", "tessera runs sweeps/figure8 --json"},
	}
}

type listedRun struct {
	train.Status
	Differs []string `json:"differs"` // KEY=VALUE, in the form of --set
}

func (f *runsCommand) Do(cmd *Call) error {
	dir := cmp.Or(f.Dir, "runs")
	if _, err := os.Stat(dir); err != nil && f.Dir == "" {
		return usagef("runs: no such folder; train a model with `tessera train MODEL`, or name the folder of the runs: tessera runs DIR")
	}
	if err := findFolder(dir); err != nil {
		return err
	}
	runs := f.compared(statuses(runFolders(dir)))
	if len(runs) == 0 {
		cmd.say("there are no runs in %s", dir)
	}
	d := &doc.Document{Data: runs}
	d.Add(runsTable(runs, time.Now()))
	return cmd.Show(d, f.JSON)
}

func runFolders(dir string) (runs []string) {
	folder.Search(dir, func(path string) bool {
		_, err := os.Stat(filepath.Join(path, folder.Config))
		if err == nil {
			runs = append(runs, path)
		}
		return err == nil
	})
	return runs
}

// statuses reads the runs, several at a time.
func statuses(paths []string) []listedRun {
	runs := make([]listedRun, len(paths))
	team.For(len(paths), 1, func(from, to int) {
		for i := from; i < to; i++ {
			runs[i].Status = train.StatusOf(paths[i])
		}
	})
	return runs
}

// loggedMetrics lists the columns of the table that come from metrics.jsonl: the loss, the errors by which the runs are judged, and properties
// of the codes.
func loggedMetrics(runs []listedRun) []string {
	columns := []string{"loss"}
	for _, r := range runs {
		columns = lists.Add(columns, train.Judging(r.Metrics)...)
	}
	return append(columns, "code_hoyer", "dead_units")
}

// runsTable returns a row for each run. Columns without any value are omitted.
func runsTable(runs []listedRun, now time.Time) *doc.Table {
	t := &doc.Table{Columns: doc.Columns("run", "state", "model")}
	var names []string
	for _, name := range loggedMetrics(runs) {
		if slices.ContainsFunc(runs, func(r listedRun) bool { _, ok := r.Metrics.Number(name); return ok }) {
			names = append(names, name)
			t.Columns = append(t.Columns, doc.Column{Title: name, Spare: len(names)})
		}
	}
	t.Columns = append(t.Columns, doc.Column{Title: "age"}, doc.Column{Title: "differs", Wrap: true})
	for _, r := range runs {
		row := []any{r.Run, r.Text(), cmp.Or(r.Model, numeral.None)}
		for _, name := range names {
			row = append(row, show.Value(r.Metrics, name))
		}
		var age any
		if !r.Modified.IsZero() {
			age = doc.Seconds(max(0, now.Sub(r.Modified).Round(time.Second).Seconds()))
		}
		t.Row(append(row, age, shortened(cmp.Or(r.Problem, strings.Join(r.Differs, " ")), widestCell))...)
	}
	if last := len(t.Columns) - 1; !slices.ContainsFunc(t.Rows, func(row []any) bool { return row[last] != "" }) {
		t.Columns = t.Columns[:last] // a narrow screen has room for a number
		for i, row := range t.Rows {
			t.Rows[i] = row[:last]
		}
	}
	return t
}

// widestCell is the maximum width of the last column.
const widestCell = 100

// shortened truncates a text to most characters.
func shortened(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-3]) + "..."
	}
	return text
}

// noteUnfinished prints, before a new run of a model begins, that an earlier run can be resumed.
func noteUnfinished(cmd *Call, model string) {
	entries, err := os.ReadDir("runs")
	if err != nil {
		return
	}
	place := filepath.Base(train.Place(model))
	for _, e := range slices.Backward(entries) {
		if name, _ := folder.Numbered(e.Name()); !e.IsDir() || name != place && e.Name() != place {
			continue
		}
		if s := train.StatusOf(filepath.Join("runs", e.Name())); s.State == train.Interrupted && s.Model == model {
			cmd.say("%s is an unfinished run of this model, %s: `tessera resume %s` continues it; this command begins a new one", s.Run, s.Text(), s.Run)
			return
		}
	}
}

// compared fills in the settings of each run that differ from the declaration of its model, or from the first run of that
// model if no file declares it.
func (f *runsCommand) compared(runs []listedRun) []listedRun {
	declared, err := f.load()
	if err != nil { // the list of runs does not depend on it
		declared = nil
	}
	bases, first := map[string]map[string]string{}, map[string]map[string]string{}
	for i := range runs {
		r := &runs[i]
		r.Differs = []string{}
		if r.Settings == nil {
			continue
		}
		if first[r.Model] == nil {
			first[r.Model] = r.Settings
		}
		key := fmt.Sprint(r.Model, r.Shape)
		base, ok := bases[key]
		if !ok {
			if base = declaredSettings(declared, r.Model, r.Shape); base == nil {
				base = first[r.Model]
			}
			bases[key] = base
		}
		r.Differs = differing(base, r.Settings)
	}
	return runs
}

// declaredSettings returns the settings of a declared model, for samples of the given shape; nil if the model is not declared.
func declaredSettings(declared *config.File, name string, shape []int) map[string]string {
	if declared == nil || !slices.Contains(declared.Names(), name) {
		return nil
	}
	m, err := declared.Model(name)
	if err != nil {
		return nil
	}
	if shape != nil {
		m = m.Resolved(shape)
	}
	root, _ := table.Parse(table.NewSource(name, string(m.Text())))
	settings := map[string]string{}
	root.Child("model").Child(name).Leaves("", func(key, value string) { settings[key] = value })
	return settings
}

// differing lists the keys that differ from a base, with their values. It omits keys of the base that the run lacks, because a
// later version may have added them; but if the run lacks the complete table of a key, the key differs.
func differing(base, is map[string]string) []string {
	tables := map[string]bool{}
	for key := range is {
		tables[tableOf(key)] = true
	}
	list, missing := []string{}, map[string]bool{}
	for _, key := range slices.SortedFunc(maps.Keys(is), kindFirst) {
		if key != "about" && base[key] != is[key] {
			list = append(list, key+"="+is[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(base)) {
		if _, ok := is[key]; !ok && !tables[tableOf(key)] && !missing[tableOf(key)] {
			missing[tableOf(key)] = true
			list = append(list, "no "+tableOf(key))
		}
	}
	return list
}

// kindFirst sorts keys, the kind of a table before its other keys.
func kindFirst(a, b string) int {
	first := func(key string) string {
		if table, ok := strings.CutSuffix(key, ".kind"); ok {
			return table + "."
		}
		return key
	}
	return strings.Compare(first(a), first(b))
}

// tableOf returns the path of the table that contains a key.
func tableOf(key string) string {
	i := strings.LastIndexByte(key, '.')
	return key[:max(i, 0)]
}

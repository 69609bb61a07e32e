package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"tessera"
	"tessera/apps/show"
	"tessera/apps/show/doc"
	"tessera/config"
	"tessera/data"
	"tessera/graph"
	"tessera/internal/lists"
	"tessera/internal/numeral"
	"tessera/internal/train"
	"tessera/internal/volume"
)

func init() {
	Commands.Register("check", "Report all errors of a models.toml", func() Command { return &checkCommand{} })
}

type checkCommand struct {
	Path string `arg:"FILE" optional:"true" is:"file" doc:"the file of models"`
	modelFlags
	Fill string `flag:"fill" is:"model" doc:"print this model with every default"`
}

func (f *checkCommand) Help() Help {
	return Help{
		Long:     "Report all errors of the models and sweeps in FILE (default ./" + tessera.ModelsFile + ", or the shipped models if there is none)\nand of the data files that they name, and say what was read.\n--fill prints one model with every default instead, changed by --set.",
		Examples: []string{"tessera check", "tessera check --fill shallow"},
	}
}

func (f *checkCommand) Do(cmd *Call) error {
	if f.File != "" && f.Path != "" && f.File != f.Path {
		return usagef("check: which file, %s or --file %s?", f.Path, f.File)
	}
	if _, err := os.Stat(f.Path); f.Path != "" && errors.Is(err, fs.ErrNotExist) {
		if models, err := (&fileFlag{}).read(f.Data); err == nil && slices.Contains(models.Names(), f.Path) {
			return usagef("check: %[1]s is a model, want a file: `tessera check` checks all models, `tessera check --fill %[1]s` prints it, `tessera summary %[1]s` shows its layers", f.Path)
		}
	}
	if f.Sets != nil && f.Fill == "" {
		return usagef("check: --set changes one model: name it with --fill, or check the file without --set")
	}
	f.File = cmp.Or(f.Path, f.File)
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // of a declaration that was checked nothing stays
	if f.Fill != "" {
		m, err := f.model(f.Fill)
		if err != nil {
			return err
		}
		_, err = cmd.OutOrStdout().Write(m.Text())
		return err
	}
	models, err := f.load()
	if err != nil {
		return err
	}
	if err := models.Check(); err != nil {
		return err
	}
	if err := f.examine(cmd, models); err != nil {
		return err
	}
	return reportRead(cmd, &f.fileFlag, models)
}

// reportRead prints the warnings for a file without errors, and the columns that each model reads from each file.
func reportRead(cmd *Call, f *fileFlag, models *config.File) error {
	var own, shipped, sweeps, shippedSweeps int
	for _, name := range models.Names() {
		if models.FileOf(name) == tessera.ShippedName {
			shipped++
			continue
		}
		own++
		warn(cmd, models.Warnings(name)...)
	}
	for _, name := range models.SweepNames() {
		if models.FileOfSweep(name) == tessera.ShippedName {
			shippedSweeps++
		} else {
			sweeps++
		}
	}
	if f.readsShipped() {
		var lines []string
		if f.File == "" {
			lines = append(lines, fmt.Sprintf("there is no %s in this folder; `tessera init` writes one", tessera.ModelsFile))
		}
		return cmd.tell(append(lines, tessera.ShippedName+": "+soundText(shipped, shippedSweeps))...)
	}
	file := cmp.Or(f.File, tessera.ModelsFile)
	if own+sweeps == 0 {
		cmd.say("%s declares nothing: a model begins with [model.NAME]; `tessera help models` explains the file", file)
	}
	lines := []string{file + ": " + soundText(own, sweeps)}
	if shipped+shippedSweeps > 0 { // which the file does not declare again
		lines = append(lines, fmt.Sprintf("also available: %s and %s that are shipped", numeral.Of(shipped, "model"), numeral.Of(shippedSweeps, "sweep")))
	}
	return cmd.tell(lines...)
}

// soundText returns the number of valid declarations in words.
func soundText(models, sweeps int) string {
	text := numeral.Of(models, "model")
	if sweeps > 0 {
		text += ", " + numeral.Of(sweeps, "sweep")
	}
	return text + ", no errors"
}

// examine reads the data files and builds the graphs of the models that a file declares.
func (f *checkCommand) examine(cmd *Call, models *config.File) error {
	dirs := data.SearchDirs(f.Data)
	files := dataFiles{cmd: cmd, dirs: dirs, seen: map[string]bool{}, options: train.Options{Load: loadOnce(dirs)}}
	var built []*config.Model
	layers := 0
	for _, name := range models.Names() {
		if models.FileOf(name) == tessera.ShippedName {
			continue
		}
		m, err := models.Model(name)
		if err != nil {
			return err
		}
		if err := files.examine(m); err != nil {
			return err
		}
		if n := len(m.Encoder) + len(m.Decoder); n > 0 && layers+n <= mostBuilt { // a method has no graph
			layers += n
			built = append(built, m)
		}
	}
	if err := files.show(); err != nil {
		return err
	}
	if files.causes != nil {
		return &files.unreadable
	}
	return build(built, dirs)
}

// dataFiles collects what was read of the data files of models, and their notes and errors.
type dataFiles struct {
	cmd     *Call
	dirs    data.Dirs
	seen    map[string]bool // notes that are printed
	options train.Options
	read    []readSet
	unreadable
}

// examine reads the data files of a model, or generates its samples. A missing or invalid file is an error, as in a training. The error
// is that of the context.
func (d *dataFiles) examine(m *config.Model) error {
	own := data.IsOwn(m.Dataset.Source)
	if !own && !data.IsGenerated(m.Dataset.Source) {
		d.downloaded(m)
		return nil
	}
	ctx := d.cmd.Context()
	notes, err := train.Examine(ctx, m, d.options)
	for _, note := range notes {
		if !d.seen[note] {
			warn(d.cmd, note)
		}
		d.seen[note] = true
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && slices.ContainsFunc(d.causes, func(cause error) bool { return cause.Error() == err.Error() }): // of the same files
	case err != nil:
		d.causes = append(d.causes, err)
		d.texts = append(d.texts, m.InDataset(err.Error()).String())
	case own:
		d.add(ctx, m)
	}
	return nil
}

// readSet is what was read of a data set, and the models that use it.
type readSet struct {
	models  []string
	text    string
	columns []data.Described
	others  int // columns that are not described
}

func (d *dataFiles) add(ctx context.Context, m *config.Model) {
	texts := []string{d.counted(ctx, m), usedColumns(ctx, m)}
	texts = slices.DeleteFunc(texts, func(text string) bool { return text == "" })
	if len(texts) == 0 {
		return
	}
	r := readSet{models: []string{strconv.Quote(m.Name)}, text: strings.Join(texts, ", ")}
	if set := d.set(ctx, m); set != nil {
		r.columns, r.others = set.Describe()
	}
	for i, other := range d.read {
		if other.text == r.text && slices.Equal(other.columns, r.columns) {
			d.read[i].models = append(other.models, r.models...)
			return
		}
	}
	d.read = append(d.read, r)
}

// show prints what was read, each data set and each column once.
func (d *dataFiles) show() error {
	page, shown := &doc.Document{}, map[data.Described]bool{}
	for _, r := range d.read {
		page.Add(doc.Remark("%s %s: %s", map[bool]string{true: "model", false: "models"}[len(r.models) == 1], strings.Join(r.models, ", "), r.text))
		if len(r.columns) == 0 {
			continue
		}
		t := &doc.Table{Columns: doc.Columns("column", "type", "range", "missing", "first values")}
		for _, c := range r.columns {
			if shown[c] {
				continue
			}
			shown[c] = true
			t.Row(shortName(cmp.Or(c.Name, "all values")), c.Type, c.Range, c.Missing, c.First)
		}
		if r.others > 0 {
			t.Notes = append(t.Notes, fmt.Sprintf("and %s of values", numeral.Of(r.others, "other column")))
		}
		if len(t.Rows) > 0 {
			page.Add(t)
		}
	}
	return d.cmd.Show(page, false)
}

// shortName cuts a long name of a column, which would fold the table.
func shortName(name string) string {
	const longest = 32
	if letters := []rune(name); len(letters) > longest {
		return string(letters[:longest-1]) + "…"
	}
	return name
}

// downloaded warns of a downloaded data set that is not on this machine.
func (d *dataFiles) downloaded(m *config.Model) {
	for _, s := range data.List(d.dirs) {
		if note := fmt.Sprintf("the data set %s is not on this machine: `tessera data get %s` downloads it", s.Name, s.Name); s.Name == m.Dataset.Name && s.Problem() != nil && !d.seen[note] {
			warn(d.cmd, note)
			d.seen[note] = true
		}
	}
}

// set returns the data set of a model, nil for one that is examined without reading all of it.
func (d *dataFiles) set(ctx context.Context, m *config.Model) *data.Set {
	if i, ok := m.Dataset.Source.(data.Inspector); ok && i.Inspects() {
		return nil
	}
	set, err := d.options.Load(ctx, &m.Dataset) // which it was a moment ago
	if err != nil || set.Train == nil {
		return nil
	}
	return set
}

// counted says how many samples a data set has, of which shape and classes; "" for one that is examined without reading all of it.
func (d *dataFiles) counted(ctx context.Context, m *config.Model) string {
	set := d.set(ctx, m)
	if set == nil {
		return ""
	}
	text := numeral.Of(set.Train.Len(), "training "+show.NounOf(set.Shape))
	if set.Train.Sparse() || set.Train.ValueNames() == nil { // which says it with the names of the values
		text += " of " + numeral.Shape(set.Shape)
	}
	if set.Test != nil {
		text += ", " + numeral.Of(set.Test.Len(), "test "+show.NounOf(set.Shape))
	}
	for _, kept := range set.Kept {
		text += ", " + kept
	}
	if limit := m.Dataset.Limit; limit > 0 {
		text += fmt.Sprintf(", limit = %d", limit)
	}
	if classes := set.DescribeClasses(); classes != "" {
		text += ", " + classes
	}
	return text
}

func classesText(names []string) string {
	const shown = 5
	text := fmt.Sprintf("%d classes: %s", len(names), strings.Join(names[:min(shown, len(names))], ", "))
	if len(names) > shown {
		text += ", ..."
	}
	return text
}

// unreadable contains the errors of the data sets that a file of models declares, each with its position in that file.
type unreadable struct {
	causes []error
	texts  []string
}

func (e *unreadable) Error() string { return strings.Join(e.texts, "\n") }

func (e *unreadable) Unwrap() []error { return e.causes }

// usedColumns returns a description of the columns that a model uses of its file, "" if it uses none or they are unreadable.
func usedColumns(ctx context.Context, m *config.Model) string {
	var texts []string
	if d, ok := m.Dataset.Source.(data.Describer); ok {
		text, err := d.Describe(ctx)
		if err != nil {
			return ""
		}
		if text != "" {
			texts = append(texts, text)
		}
	}
	further := lists.Map(data.ColumnsOf(m.Dataset.Source, data.SearchDirs("")), func(c data.Column) string { return c.Name + " (" + columnText(c) + ")" })
	if further != nil {
		texts = append(texts, "columns "+strings.Join(further, ", "))
	}
	return strings.Join(texts, ", ")
}

// columnText returns a description of the value of one sample: its classes, or its shape and type.
func columnText(c data.Column) string {
	switch {
	case c.Type == "":
		return "not known"
	case len(c.Names) > 0:
		return classesText(c.Names)
	case volume.Of(c.Shape) == 1:
		return map[data.Type]string{data.Bytes: "one byte", data.Float32: "one number", data.Whole: "one whole number"}[c.Type]
	}
	return fmt.Sprintf("%s %s", numeral.Shape(c.Shape), c.Type.Plural())
}

// mostBuilt is the maximum number of layers of the models whose graphs check builds: a file may declare thousands of models.
const mostBuilt = 1000

// build returns the first error of building the graphs of models whose samples have a known shape, one graph after the other, as Gorgonia needs it.
func build(models []*config.Model, dirs data.Dirs) error {
	for _, m := range models {
		if shape, ok := m.Dataset.Source.Shape(dirs); ok {
			if err := graph.Check(m, shape); err != nil {
				return m.Located(err)
			}
		}
	}
	return nil
}

// loadOnce returns a loader that loads a data set, its test samples too, only once for consecutive models that use it.
func loadOnce(dirs data.Dirs) train.LoadData {
	var last *config.Dataset
	var set *data.Set
	return func(ctx context.Context, d *config.Dataset) (*data.Set, error) {
		if last != nil && last.Need().Equal(d.Need()) && reflect.DeepEqual(last.Source, d.Source) {
			return set, nil
		}
		need := d.Need()
		need.Test = need.Test || data.HasTest(d.Source)
		loaded, err := data.Load(ctx, d.Source, dirs, need)
		if err == nil {
			last, set = d, loaded
		}
		return loaded, err
	}
}

// Package comparison compares trained runs: the settings that differ, their metrics, differences paired by seed with
// confidence intervals, and the similarity of their atoms. [Compare] returns a [Table] of [Model] columns.
package comparison

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"tessera"
	"tessera/config"
	"tessera/data"
	"tessera/internal/sweep"
	"tessera/internal/train/evaluation"
	"tessera/metrics"
)

// Options are the settings of a comparison.
type Options struct {
	Split   data.Split        // measured images; "" for the default of [evaluation.PlanOf]: held-out images if there are any
	Metrics metrics.Selection // measured metrics; nil for [metrics.Default]
	Open    tessera.Options   // options for opening runs
}

// Table is the comparison of several models. Runs whose declarations differ only in their seeds are one model.
type Table struct {
	Models   []*Model  `json:"models"`
	Settings []Setting `json:"settings"`       // settings that differ between the models
	With     []string  `json:"with,omitempty"` // settings of the metrics that the user has set: "shots=1"
	Metrics  []Metric  `json:"metrics"`
}

// Model is one or several runs with the same declaration except the seed.
type Model struct {
	Label   string             `json:"label"` // A, B, ...
	Name    string             `json:"name"`  // name of the model
	Runs    []string           `json:"runs"`
	Seeds   []uint64           `json:"seeds"`
	Dataset string             `json:"dataset"`
	Split   string             `json:"split"`
	Images  int                `json:"images"`
	Note    string             `json:"note,omitempty"`         // a caveat about the images, as in [evaluation.Report]
	Counted string             `json:"-"`                      // "images" or "samples"
	Seeded  *metrics.Agreement `json:"seeded_atoms,omitempty"` // agreement of the atoms of the model's seeds; nil for one seed and for models without atoms
	First   *metrics.Agreement `json:"first_atoms,omitempty"`  // agreement of the model's atoms with those of the first model; nil for the first model
	Pairs   []metrics.Match    `json:"atom_pairs,omitempty"`   // atoms of the first model matched with atoms of this model, most similar first
	Unused  []int              `json:"unused_atoms,omitempty"` // number of atoms of each seed that are not matched, because their units do not contribute; nil if all do

	declared *config.Model
	members  []member // runs in the order of their seeds
}

// member is a measured run of a model.
type member struct {
	path   string
	seed   uint64
	result *metrics.Result
	atoms  *metrics.Atoms
	used   []int  // numbers of the atoms that contribute to the measured images
	images string // checksum of the measured images
}

// Atoms returns the atoms of the first seed, nil if the decoder has none.
func (m *Model) Atoms() *metrics.Atoms {
	if len(m.members) == 0 {
		return nil
	}
	return m.members[0].atoms
}

// Setting is one key with its value in each model, as TOML; "" if the model does not have the key.
type Setting struct {
	Key    string   `json:"key"`
	Values []string `json:"values"`
}

// Metric is one metric of all models.
type Metric struct {
	Name   string         `json:"name"`
	Better metrics.Better `json:"better"`
	Cells  []Cell         `json:"models"`
}

// Cell is one metric of one model.
type Cell struct {
	Measured  bool            `json:"measured"` // false if the metric is not applicable
	Mean      float64         `json:"mean"`     // mean over the seeds
	Deviation float64         `json:"deviation"`
	Best      bool            `json:"best"`                 // the mean is better than that of every other model on the same images, and the differences are shown
	Paired    *metrics.Paired `json:"difference,omitempty"` // difference from the first model over common seeds; nil for fewer than two common seeds
}

// String prints the mean with its deviation, "-" for a metric that is not applicable.
func (c Cell) String() string {
	switch {
	case !c.Measured:
		return "-"
	case c.Deviation > 0:
		return fmt.Sprintf("%.4g ± %.2g", c.Mean, c.Deviation)
	}
	return fmt.Sprintf("%.4g", c.Mean)
}

// Errors for runs that cannot be compared.
var (
	ErrTooFew   = errors.New("want at least 2")
	ErrRepeated = errors.New("the same model with the same seed")
)

// Compare opens and measures runs, one after the other. The folder of a sweep is replaced by its finished trials. Compare
// returns [ErrTooFew] for fewer than two runs and [ErrRepeated] for a repeated run.
func Compare(ctx context.Context, paths []string, o Options) (*Table, error) {
	if ctx == nil {
		return nil, errors.New("comparison: no context: give context.Background()")
	}
	runs, err := trials(paths)
	if err != nil {
		return nil, err
	}
	if len(runs) < 2 {
		return nil, fmt.Errorf("got %d run%s, %w", len(runs), strings.Repeat("s", 1-len(runs)), ErrTooFew)
	}
	t := &Table{With: o.Metrics.Given()}
	var splits []string // measured, but not shown
	if o.Metrics, splits, err = withSplits(o.Metrics); err != nil {
		return nil, err
	}
	for _, path := range runs {
		if err := t.add(ctx, path, o); err != nil {
			return nil, err
		}
	}
	for i, m := range t.Models {
		m.Label = label(i)
		slices.SortFunc(m.members, func(a, b member) int { return cmp.Compare(a.seed, b.seed) })
		for _, one := range m.members {
			m.Runs, m.Seeds = append(m.Runs, one.path), append(m.Seeds, one.seed)
		}
	}
	t.settings()
	t.metrics(splits)
	return t, t.agreements()
}

// withSplits adds the measures of single splits to a selection with a measure that is their mean, because [Model.difference]
// pairs them. It also returns the names of the added measures.
func withSplits(chosen metrics.Selection) (all metrics.Selection, added []string, err error) {
	for _, name := range chosen.Names() {
		splits, _, _ := metrics.Splits(name)
		added = append(added, splits...)
	}
	added = slices.DeleteFunc(added, func(name string) bool { return slices.Contains(chosen.Names(), name) })
	more, err := metrics.Select(added...)
	if err != nil || len(added) == 0 {
		return chosen, nil, err
	}
	return chosen.Add(more), added, nil
}

// trials replaces the folders of sweeps by the folders of their finished trials.
func trials(paths []string) (runs []string, err error) {
	for _, path := range paths {
		if !sweep.Is(path) {
			runs = append(runs, path)
			continue
		}
		results, err := sweep.Read(path)
		if err != nil {
			return nil, err
		}
		for _, row := range results.Trials {
			if row.Metrics != nil {
				runs = append(runs, sweep.TrialPath(path, row.Trial))
			}
		}
	}
	return runs, nil
}

// label returns the i-th label: A, B, ..., Z, AA, AB, ...
func label(i int) string {
	if i < 26 {
		return string(rune('A' + i))
	}
	return label(i/26-1) + label(i%26)
}

// add measures a run and adds it to its model.
func (t *Table) add(ctx context.Context, path string, o Options) error {
	r, err := tessera.Open(path, o.Open)
	if err != nil {
		return err
	}
	defer r.Close()
	split := o.Split
	if split == "" {
		split = evaluation.PlanOf(r.Model).First
	}
	sample, err := r.Sample(ctx, split)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	result, err := r.EvaluateSample(ctx, sample, o.Metrics)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	m, seed := t.modelOf(r.Model, result), r.Model.Train.Seed
	if i := slices.IndexFunc(m.members, func(other member) bool { return other.seed == seed }); i >= 0 {
		return fmt.Errorf("%s: %w %d as %s; give it once", path, ErrRepeated, seed, m.members[i].path)
	}
	used, err := contributing(ctx, r, sample.Images)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	m.members = append(m.members, member{path, seed, result, r.Atoms(), used, sample.Images.Checksum()})
	return nil
}

// contributors is the maximum number of images that decide whether a unit contributes.
const contributors = 10_000

// contributing returns the numbers of the atoms of a run that contribute to images. The atom of a unit that does not is arbitrary:
// two seeds have no reason to agree on it.
func contributing(ctx context.Context, r *tessera.Run, images *data.Images) ([]int, error) {
	a := r.Atoms()
	if a == nil {
		return nil, nil
	}
	if a.Indirect != "" || a.Count != r.Units() {
		return a.Contributing(nil), nil
	}
	codes, err := r.Codes(ctx, evaluation.Spread(images, contributors))
	if err != nil {
		return nil, err
	}
	return a.Contributing(codes), nil
}

// matched returns the atoms of the member that are matched.
func (m *member) matched() *metrics.Atoms {
	if m.atoms == nil {
		return nil
	}
	return m.atoms.Only(m.used)
}

// modelOf returns the model of a run: that of an earlier run that differs only in its seed, or a new one.
func (t *Table) modelOf(declared *config.Model, r *metrics.Result) *Model {
	for _, m := range t.Models {
		other := slices.ContainsFunc(config.Differences(m.declared, declared), func(d config.Difference) bool { return d.Key != "train.seed" })
		if !other && m.Images == r.Images {
			return m
		}
	}
	m := &Model{Name: declared.Name, Dataset: r.Dataset, Split: r.Split, Images: r.Images, Note: evaluation.ReportOf(declared, r).Note, Counted: r.Counted(), declared: declared}
	t.Models = append(t.Models, m)
	return m
}

// settings lists the keys that differ. A key that some models do not have is omitted if the others have its default.
func (t *Table) settings() {
	keys, has := []string{}, make([]map[string]Line, len(t.Models))
	for i, m := range t.Models {
		has[i] = map[string]Line{}
		for _, line := range Declaration(m.declared) {
			if line.Key != "" && line.Key != "train.seed" {
				has[i][line.Key] = line
				keys = append(keys, line.Key)
			}
		}
	}
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		row, common, declared := Setting{Key: key}, true, false
		for i := range has {
			line, ok := has[i][key]
			row.Values = append(row.Values, line.Value)
			common, declared = common && ok, declared || ok && !line.Default
		}
		if (common || declared) && slices.ContainsFunc(row.Values, func(v string) bool { return v != row.Values[0] }) {
			t.Settings = append(t.Settings, row)
		}
	}
}

// metrics fills in the rows, except those of the hidden measures.
func (t *Table) metrics(hidden []string) {
	var names []string
	for _, m := range t.Models {
		for _, v := range m.members[0].result.Shown() {
			if !slices.Contains(names, v.Name) && !slices.Contains(hidden, v.Name) {
				names = append(names, v.Name)
			}
		}
	}
	for _, name := range names {
		row := Metric{Name: name, Better: metrics.Neither}
		if measure, ok := metrics.MeasureOf(name); ok {
			row.Better = measure.Better
		}
		for _, m := range t.Models {
			row.Cells = append(row.Cells, m.cell(name, t.Models[0]))
		}
		if slices.ContainsFunc(row.Cells, func(c Cell) bool { return c.Measured }) {
			t.Metrics = append(t.Metrics, row)
		}
	}
	t.mark()
}

// mark marks the best model of every row: the one that is better than every other model on the same images, by a shown
// difference. The least significant of its differences is the test of a row, and [metrics.CorrectHolm] takes the tests of all
// rows together. The differences from the first model are corrected separately.
func (t *Table) mark() {
	var tests, shown []*metrics.Paired
	var marks []*Cell
	for _, row := range t.Metrics {
		for i := range row.Cells {
			shown = append(shown, row.Cells[i].Paired)
			if hardest := t.hardest(row, i); hardest != nil {
				tests, marks = append(tests, hardest), append(marks, &row.Cells[i])
			}
		}
	}
	metrics.CorrectHolm(shown)
	metrics.CorrectHolm(tests)
	for i, p := range tests {
		marks[i].Best = p.Shown()
	}
}

// hardest returns the difference with the largest p-value between a model and the others on the same images; nil if the model
// is not better in the mean than all of them, or has a difference from none.
func (t *Table) hardest(row Metric, best int) (hardest *metrics.Paired) {
	if row.Better == metrics.Neither {
		return nil
	}
	for i, c := range row.Cells {
		if i == best || !c.Measured || !t.Models[i].sameImages(t.Models[best]) {
			continue
		}
		p := t.Models[best].difference(row.Name, t.Models[i])
		if p == nil || p.Mean == 0 || (p.Mean > 0) != (row.Better == metrics.Higher) {
			return nil
		}
		if hardest == nil || p.P > hardest.P {
			hardest = p
		}
	}
	return hardest
}

// sameImages reports whether two models were measured on the same images, regardless of the names of their data sets.
// Held-out images may depend on the seed: they must be equal for every common seed, or for all seeds if no seed is common.
func (m *Model) sameImages(other *Model) bool {
	if m.Split != other.Split {
		return false
	}
	common, all := false, map[string]bool{}
	for _, a := range m.members {
		for _, b := range other.members {
			all[a.images], all[b.images] = true, true
			if a.seed == b.seed {
				if common = true; a.images != b.images {
					return false
				}
			}
		}
	}
	return common || len(all) == 1
}

// cell returns one metric of the model and its difference from the first model.
func (m *Model) cell(name string, first *Model) Cell {
	var all []float64
	for _, one := range m.members {
		if v, ok := one.result.Number(name); ok {
			all = append(all, v)
		}
	}
	c := Cell{Measured: len(all) > 0}
	switch {
	case len(all) == 1:
		c.Mean = all[0]
	case len(all) > 1:
		c.Mean, c.Deviation = stat.MeanStdDev(all, nil)
	}
	if m != first {
		c.Paired = m.difference(name, first)
	}
	return c
}

// difference returns the difference of one metric from another model, paired by seed. With fewer than two common seeds, a
// measure that is a mean over splits is paired by split; each split has the mean over the seeds. The difference is nil if there
// are no pairs, or if the models were measured on different images.
func (m *Model) difference(name string, from *Model) *metrics.Paired {
	if !m.sameImages(from) {
		return nil
	}
	var is, was []float64
	for _, a := range m.members {
		for _, b := range from.members {
			x, ok := a.result.Number(name)
			y, also := b.result.Number(name)
			if a.seed == b.seed && ok && also {
				is, was = append(is, x), append(was, y)
			}
		}
	}
	p, err := metrics.PairedDifference(was, is)
	if splits, ratio, ok := metrics.Splits(name); ok && len(is) < 2 {
		is, was = nil, nil
		for _, split := range splits {
			is, was = append(is, m.mean(split)), append(was, from.mean(split))
		}
		p, err = metrics.PairedSplits(was, is, ratio)
	}
	if err != nil {
		return nil
	}
	return &p
}

// mean is the mean of a metric over the seeds; NaN if one lacks it.
func (m *Model) mean(name string) float64 {
	sum := 0.0
	for _, one := range m.members {
		v, ok := one.result.Number(name)
		if !ok {
			return math.NaN()
		}
		sum += v
	}
	return sum / float64(len(m.members))
}

// agreements compares the atoms of the seeds of each model, and the atoms of each model's first seed with those of the first
// model. Atoms of units that do not contribute are left out.
func (t *Table) agreements() (err error) {
	for _, m := range t.Models {
		var atoms []*metrics.Atoms
		var unused []int
		for i := range m.members {
			one := &m.members[i]
			atoms = append(atoms, one.matched())
			if one.atoms != nil {
				unused = append(unused, one.atoms.Count-len(one.used))
			}
		}
		if slices.ContainsFunc(unused, func(n int) bool { return n > 0 }) {
			m.Unused = unused
		}
		if len(atoms) > 1 && !slices.Contains(atoms, nil) {
			if m.Seeded, err = metrics.CompareAtoms(atoms, 1); err != nil {
				return err
			}
		}
		one, other := &t.Models[0].members[0], &m.members[0]
		first, own := one.matched(), other.matched()
		if m == t.Models[0] || first == nil || own == nil || first.Pixels() != own.Pixels() {
			continue
		}
		if m.First, err = metrics.CompareAtoms([]*metrics.Atoms{first, own}, 1); err != nil {
			return err
		}
		if m.Pairs, err = metrics.MatchAtoms(first, own); err != nil {
			return err
		}
		for i, p := range m.Pairs { // numbers among all atoms
			m.Pairs[i].First, m.Pairs[i].Second = one.used[p.First], other.used[p.Second]
		}
	}
	return nil
}

// Line is one line of a declaration with all defaults.
type Line struct {
	Text       string
	Key, Value string // key and value as TOML, such as "loss.0.weight"; both "" in headers and empty lines
	Default    bool   // the line sets a default and could be omitted
	Header     bool
}

// Declaration writes a model and marks the defaults.
func Declaration(m *config.Model) (list []Line) {
	lines := strings.SplitAfter(strings.TrimRight(string(config.Fill(m)), "\n"), "\n")
	same := func(text string) bool {
		file, err := config.Load(m.Name, []byte(text))
		if err != nil {
			return false
		}
		other, err := file.Model(m.Name)
		return err == nil && len(config.Differences(m, other)) == 0
	}
	readable := same(strings.Join(lines, "")) // not if the images came from a Go program
	model, table, counts := "", "", map[string]int{}
	for i, text := range lines {
		line := Line{Text: text, Header: strings.HasPrefix(text, "[")}
		key, value, assigns := strings.Cut(strings.TrimSpace(text), " = ")
		switch {
		case line.Header:
			table = strings.Trim(strings.TrimSpace(text), "[]") + "."
			if model == "" {
				model = table // the first header is that of the model
			}
			table = strings.TrimPrefix(table, model)
			if strings.HasPrefix(text, "[[") {
				counts[table]++
				table += fmt.Sprint(counts[table]-1) + "."
			}
		case assigns:
			line.Key, line.Value = table+strings.TrimSpace(key), strings.TrimSpace(value)
			line.Default = readable && same(strings.Join(lines[:i], "")+strings.Join(lines[i+1:], ""))
		}
		list = append(list, line)
	}
	return list
}

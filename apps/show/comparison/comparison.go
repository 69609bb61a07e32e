// Package comparison compares trained runs: the settings that differ, their metrics, differences paired by seed with
// confidence intervals, and the similarity of their atoms. [Compare] returns a [Table] of [Model] columns.
package comparison

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tessera"
	"tessera/config"
	"tessera/data"
	"tessera/internal/sweep"
	"tessera/internal/train/evaluation"
	"tessera/metrics"
)

// Options are the settings of a comparison.
type Options struct {
	Split     data.Split        // measured images; "" for the default of [evaluation.PlanOf]: held-out images if there are any
	Metrics   metrics.Selection // measured metrics; nil for [metrics.Default]
	Reference string            // model that the others are compared with: its label, its name or one of its runs; see [Table]
	Open      tessera.Options   // options for opening runs
}

// Table is the comparison of several models. Runs whose declarations differ only in their seeds are one model.
//
// The reference is the first model with several seeds, or the first one without any such, unless the user has chosen another.
// Models on other images than the reference are compared with the first one of their images.
type Table struct {
	Models   []*Model  `json:"models"`
	asked    bool      // the user chose the metrics
	Settings []Setting `json:"settings"`       // settings that differ between the models
	With     []string  `json:"with,omitempty"` // settings of the metrics that the user has set: "shots=1"
	Metrics  []Metric  `json:"metrics"`
	Tests    int       `json:"comparisons"` // number of differences that Holm's correction counts

	reference int // index of the reference
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
	First   *metrics.Agreement `json:"first_atoms,omitempty"`  // agreement of the model's atoms with those of the reference; nil for the reference
	Pairs   []metrics.Match    `json:"atom_pairs,omitempty"`   // atoms of the reference matched with atoms of this model, most similar first
	Against string             `json:"against,omitempty"`      // label of the model that its metrics are compared with; "" for a reference, and if there is none
	Unused  []int              `json:"unused_atoms,omitempty"` // number of atoms of each seed that are not matched, because their units do not contribute; nil if all do

	declared *config.Model
	first    []string        // the metrics by which the model is judged, see [config.Model.Measures]
	stored   *config.Dataset // data set of a setting whose stored results are compared; nil for measured runs
	members  []member        // runs in the order of their seeds
}

// member is a measured run of a model.
type member struct {
	path   string
	seed   uint64
	result *metrics.Result
	atoms  *metrics.Atoms
	used   []int  // numbers of the atoms that contribute to the measured images
	images string // checksum of the measured images; of stored results, their data set, split and number

	parameters string // checksum of the trained parameters
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

// Errors for runs that cannot be compared.
var (
	ErrTooFew   = errors.New("want at least 2")
	ErrRepeated = errors.New("the same model with the same seed")
	ErrUnknown  = errors.New("no such model to compare with")
)

// Compare opens and measures runs, one after the other. The folder of a sweep is replaced by its finished trials; of a sweep alone,
// without a split and metrics, the stored results are compared, as on its page ([OfSweep]). Compare returns [ErrTooFew] for fewer than
// two runs, [ErrRepeated] for a repeated run and [ErrUnknown] for an unknown reference.
func Compare(ctx context.Context, paths []string, o Options) (*Table, error) {
	if ctx == nil {
		return nil, errors.New("comparison: no context: give context.Background()")
	}
	if len(paths) == 1 && sweep.Is(paths[0]) && o.Split == "" && o.Metrics == nil {
		return compareStored(ctx, paths[0], o)
	}
	runs, err := trials(paths)
	if err != nil {
		return nil, err
	}
	if err := enough(len(runs)); err != nil {
		return nil, err
	}
	t := &Table{With: o.Metrics.Given(), asked: o.Metrics != nil}
	if o.Metrics, err = withSplits(o.Metrics); err != nil {
		return nil, err
	}
	for _, path := range runs {
		if err := t.add(ctx, path, o); err != nil {
			return nil, err
		}
	}
	t.label()
	t.settings()
	if err := t.judge(o.Reference, nil); err != nil {
		return nil, err
	}
	return t, t.agreements()
}

// enough returns [ErrTooFew] for fewer than two runs.
func enough(runs int) error {
	if runs < 2 {
		return fmt.Errorf("got %d run%s, %w", runs, strings.Repeat("s", 1-runs), ErrTooFew)
	}
	return nil
}

// label gives the models their labels and lists their runs in the order of the seeds.
func (t *Table) label() {
	for i, m := range t.Models {
		m.Label = label(i)
		slices.SortFunc(m.members, func(a, b member) int { return cmp.Compare(a.seed, b.seed) })
		for _, one := range m.members {
			m.Runs, m.Seeds = append(m.Runs, one.path), append(m.Seeds, one.seed)
		}
	}
}

// withSplits adds the measures of single splits to a selection with a measure that is their mean, because [Model.difference]
// pairs them.
func withSplits(chosen metrics.Selection) (metrics.Selection, error) {
	var added []string
	for _, name := range chosen.Names() {
		splits, _, _ := metrics.Splits(name)
		added = append(added, splits...)
	}
	added = slices.DeleteFunc(added, func(name string) bool { return slices.Contains(chosen.Names(), name) })
	more, err := metrics.Select(added...)
	if err != nil || len(added) == 0 {
		return chosen, err
	}
	return chosen.Add(more), nil
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
	one := member{path: path, seed: seed, result: result, images: sample.Images.Checksum()}
	if err := one.inspect(ctx, r, sample.Images); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	m.members = append(m.members, one)
	return nil
}

// inspect reads the atoms and the parameters of an open run.
func (m *member) inspect(ctx context.Context, r *tessera.Run, images *data.Images) (err error) {
	m.parameters, m.atoms = Parameters(m.path), r.Atoms()
	m.used, err = contributing(ctx, r, images)
	return err
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
	m := &Model{Name: declared.Name, Dataset: r.Dataset, Split: r.Split, Images: r.Images, Note: evaluation.ReportOf(declared, r).Note, Counted: r.Counted(), declared: declared, first: declared.Measures()}
	t.Models = append(t.Models, m)
	return m
}

// settings lists the keys that differ. A key that some models do not have is omitted if the others have its default.
func (t *Table) settings() {
	keys, has := []string{}, make([]map[string]Line, len(t.Models))
	for i, m := range t.Models {
		has[i] = map[string]Line{}
		for _, line := range Declaration(m.declared) {
			if line.Key != "" && line.Key != "train.seed" && line.Key != "about" {
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

// agreements compares the atoms of the seeds of each model, and the atoms of each model's first seed with those of the
// reference. Atoms of units that do not contribute are left out.
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
		one, other := &t.Models[t.reference].members[0], &m.members[0]
		first, own := one.matched(), other.matched()
		if m == t.Models[t.reference] || first == nil || own == nil || first.Pixels() != own.Pixels() {
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
	departs := m.Departs()
	table, counts := "", map[string]int{} // of the elements of lists of tables
	for text := range strings.Lines(strings.TrimRight(string(m.Text()), "\n")) {
		line := Line{Text: text, Header: strings.HasPrefix(text, "[")}
		key, value, assigns := strings.Cut(strings.TrimSpace(text), " = ")
		switch {
		case line.Header:
			names := strings.Split(strings.Trim(strings.TrimSpace(text), "[]"), ".")[2:] // below the table of the model
			table = ""
			for i, name := range names {
				table += name + "."
				if strings.HasPrefix(text, "[[") && i == len(names)-1 {
					counts[table]++
				}
				if n := counts[table]; n > 0 {
					table += fmt.Sprint(n-1) + "."
				}
			}
		case assigns:
			line.Key, line.Value = table+strings.TrimSpace(key), strings.TrimSpace(value)
			line.Default = !departs(line.Key)
		}
		list = append(list, line)
	}
	return list
}

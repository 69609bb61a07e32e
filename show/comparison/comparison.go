// Package comparison puts trained runs side by side: the settings that differ, metrics with the better value marked, paired
// differences over seeds with confidence intervals, and how alike the atoms are. It is what `tessera compare` prints.
package comparison

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"tessera"
	"tessera/config"
	"tessera/data"
	"tessera/metrics"
)

// Options say what is compared.
type Options struct {
	Split   data.Split        // the images that are measured; "" stands for the test images
	Metrics metrics.Selection // nil: [metrics.Default]
	Open    tessera.Options   // how runs are opened
}

// Table is the comparison of several models. Runs whose declarations differ by their seed alone are one model.
type Table struct {
	Models   []*Model  `json:"models"`
	Settings []Setting `json:"settings"` // that differ between the models
	Metrics  []Metric  `json:"metrics"`
}

// Model is one or several runs of one declaration.
type Model struct {
	Label   string             `json:"label"` // A, B, ...
	Name    string             `json:"name"`  // of the model
	Runs    []string           `json:"runs"`
	Seeds   []uint64           `json:"seeds"`
	Dataset string             `json:"dataset"`
	Split   string             `json:"split"`
	Images  int                `json:"images"`
	Counted string             `json:"-"`                      // what they are called: "images" or "samples"
	Seeded  *metrics.Agreement `json:"seeded_atoms,omitempty"` // of the atoms of its seeds; nil for one seed and without atoms
	First   *metrics.Agreement `json:"first_atoms,omitempty"`  // of its atoms and those of the first model; nil for the first itself
	Pairs   []metrics.Match    `json:"atom_pairs,omitempty"`   // atoms of the first model with the matched ones of this one, most similar first

	declared *config.Model
	results  []*metrics.Result
	atoms    []*metrics.Atoms
	images   map[uint64]string // of each seed: the checksum of the measured images
}

// Atoms returns the atoms of the first seed, nil where the decoder has none.
func (m *Model) Atoms() *metrics.Atoms {
	if len(m.atoms) == 0 {
		return nil
	}
	return m.atoms[0]
}

// Setting is one key with its value in each model, as TOML; "" where the model does not have it.
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
	Measured  bool            `json:"measured"` // false: not applicable
	Mean      float64         `json:"mean"`     // over the seeds
	Deviation float64         `json:"deviation"`
	Best      bool            `json:"best"`                 // no other model measured on the same images has a better mean, and some have a worse one
	Paired    *metrics.Paired `json:"difference,omitempty"` // from the first model, over the seeds that both have; nil for fewer than two
}

// Compare opens and measures runs, one after the other. It needs at least two.
func Compare(ctx context.Context, runs []string, o Options) (*Table, error) {
	if ctx == nil {
		return nil, errors.New("comparison: no context: give context.Background()")
	}
	if len(runs) < 2 {
		return nil, fmt.Errorf("comparison: got %d runs, want at least 2", len(runs))
	}
	t := &Table{}
	for _, path := range runs {
		if err := t.add(ctx, path, o); err != nil {
			return nil, err
		}
	}
	for i, m := range t.Models {
		m.Label = label(i)
	}
	t.settings()
	t.metrics()
	return t, t.agreements()
}

// label is A, B, ..., Z, AA, AB, ...
func label(i int) string {
	if i < 26 {
		return string(rune('A' + i))
	}
	return label(i/26-1) + label(i%26)
}

// add measures a run and puts it beside the other seeds of its model.
func (t *Table) add(ctx context.Context, path string, o Options) error {
	r, err := tessera.Open(path, o.Open)
	if err != nil {
		return err
	}
	defer r.Close()
	sample, err := r.Sample(ctx, o.Split)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	result, err := r.EvaluateSample(ctx, sample, o.Metrics)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	m := t.modelOf(r.Model, result)
	if seed := r.Model.Train.Seed; slices.Contains(m.Seeds, seed) {
		return fmt.Errorf("%s: the same model with the same seed %d as %s; give it once", path, seed, m.Runs[slices.Index(m.Seeds, seed)])
	}
	m.Runs, m.Seeds, m.results = append(m.Runs, path), append(m.Seeds, r.Model.Train.Seed), append(m.results, result)
	m.atoms = append(m.atoms, r.Atoms())
	m.images[r.Model.Train.Seed] = sample.Images.Checksum()
	return nil
}

// modelOf is the model of a run: that of an earlier run which differs by its seed alone, or a new one.
func (t *Table) modelOf(declared *config.Model, r *metrics.Result) *Model {
	for _, m := range t.Models {
		other := slices.ContainsFunc(config.Differences(m.declared, declared), func(d config.Difference) bool { return d.Key != "train.seed" })
		if !other && m.Images == r.Images {
			return m
		}
	}
	m := &Model{Name: declared.Name, Dataset: r.Dataset, Split: r.Split, Images: r.Images, Counted: r.Counted(), declared: declared, images: map[uint64]string{}}
	t.Models = append(t.Models, m)
	return m
}

// settings lists the keys that differ, in their order.
func (t *Table) settings() {
	first := t.Models[0].declared
	for i, m := range t.Models[1:] {
		for _, d := range config.Differences(first, m.declared) {
			if d.Key == "name" || d.Key == "train.seed" {
				continue
			}
			at := slices.IndexFunc(t.Settings, func(s Setting) bool { return s.Key == d.Key })
			if at < 0 {
				at = len(t.Settings)
				t.Settings = append(t.Settings, Setting{d.Key, slices.Repeat([]string{d.Was}, len(t.Models))}) // of models that equal the first
			}
			t.Settings[at].Values[i+1] = d.Is
		}
	}
	slices.SortFunc(t.Settings, func(a, b Setting) int { return strings.Compare(a.Key, b.Key) })
}

// metrics fills the rows.
func (t *Table) metrics() {
	var names []string
	for _, m := range t.Models {
		for _, v := range m.results[0].Shown() {
			if !slices.Contains(names, v.Name) {
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
		t.mark(row)
		t.Metrics = append(t.Metrics, row)
	}
}

// mark marks the best of a row, among the models measured on the images of the first; none where all are equal, or only one has
// the metric.
func (t *Table) mark(row Metric) {
	low, high := math.Inf(1), math.Inf(-1)
	ranked := func(i int) bool { return row.Cells[i].Measured && t.Models[i].sameImages(t.Models[0]) }
	for i, c := range row.Cells {
		if ranked(i) {
			low, high = min(low, c.Mean), max(high, c.Mean)
		}
	}
	if row.Better == metrics.Neither || low >= high {
		return
	}
	best := low
	if row.Better == metrics.Higher {
		best = high
	}
	for i := range row.Cells {
		row.Cells[i].Best = ranked(i) && row.Cells[i].Mean == best
	}
}

// sameImages reports whether two models were measured on the same images, whatever their data sets are called: those of
// every common seed, which may draw the held-out images, or all where there is none.
func (m *Model) sameImages(other *Model) bool {
	if m.Split != other.Split {
		return false
	}
	common := false
	for seed, sum := range m.images {
		if theirs, ok := other.images[seed]; ok {
			if common = true; sum != theirs {
				return false
			}
		}
	}
	return common || m.anyImages() != "" && m.anyImages() == other.anyImages()
}

// anyImages is the checksum that all seeds share, "" if they do not.
func (m *Model) anyImages() string {
	sums := slices.Compact(slices.Sorted(maps.Values(m.images)))
	if len(sums) != 1 {
		return ""
	}
	return sums[0]
}

// cell measures one metric of the model, beside the first one.
func (m *Model) cell(name string, first *Model) Cell {
	values := m.bySeed(name)
	if len(values) == 0 {
		return Cell{}
	}
	var all, own, others []float64
	reference := first.bySeed(name)
	for _, seed := range m.Seeds {
		v, ok := values[seed]
		if !ok {
			continue
		}
		all = append(all, v)
		if w, ok := reference[seed]; ok && m != first && m.sameImages(first) {
			own, others = append(own, v), append(others, w)
		}
	}
	c := Cell{Measured: true}
	c.Mean, c.Deviation = moments(all)
	if p, err := metrics.PairedDifference(others, own); err == nil {
		c.Paired = &p
	}
	return c
}

// bySeed is one metric of every seed for which it is applicable.
func (m *Model) bySeed(name string) map[uint64]float64 {
	values := map[uint64]float64{}
	for i, r := range m.results {
		if v, ok := r.Number(name); ok {
			values[m.Seeds[i]] = v
		}
	}
	return values
}

// agreements compares the atoms of the seeds of each model, and those of its first seed with the first model's.
func (t *Table) agreements() (err error) {
	for _, m := range t.Models {
		if len(m.atoms) > 1 && !slices.Contains(m.atoms, nil) {
			if m.Seeded, err = metrics.CompareAtoms(m.atoms, 1); err != nil {
				return err
			}
		}
		pair := []*metrics.Atoms{t.Models[0].atoms[0], m.atoms[0]}
		if m == t.Models[0] || pair[0] == nil || pair[1] == nil || pair[0].Pixels() != pair[1].Pixels() {
			continue
		}
		if m.First, err = metrics.CompareAtoms(pair, 1); err != nil {
			return err
		}
		if m.Pairs, err = metrics.MatchAtoms(pair[0], pair[1]); err != nil {
			return err
		}
	}
	return nil
}

package page

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"tessera"
	"tessera/config"
	"tessera/data"
	"tessera/internal/shell"
	"tessera/metrics"
	"tessera/sweep"
	"tessera/train/checkpoint"
	"tessera/train/evaluation"
	"tessera/train/folder"
)

// Sweep is what a page shows of a sweep.
type Sweep struct {
	Label, Path string
	Live        string // the address of the events of `tessera ui`, "" for a file
	Words       []string
	Failed      []Failure
	Terms       []Term // of the objective, where there is one model
	Noun        string // what a sample is called: "image", or "sample" where some are vectors
	Warning     string // that the images are no unseen ones, "" if they are
	Keys        []string
	Names       []string // of the keys, in words
	Measures    []MeasureColumn
	First       []string // the metrics that are shown first; nil for the usual ones
	Settings    []SettingRow
	Trials      []TrialRow
	Selected    []SelectedRow
	SelectedOn  string            // the images that these were measured on, in words
	Differences []DifferenceTable // between settings, one for each choice of images
	Intervals   string            // how far the intervals of the differences can be trusted
	OneSeed     string            // why there are none, where more seeds would give some; else ""
	Commands    []Command

	sets map[string]*config.Dataset // of the trials
}

// Failure is a trial without a result; Name is its setting and its seed.
type Failure struct{ Trial, Name, Problem string }

// MeasureColumn is one metric of a sweep.
type MeasureColumn struct {
	Name   string `json:"name"`
	Better string `json:"better"`       // lower, higher, or "" for neither
	Of     int    `json:"of,omitempty"` // the most that it can be, where that is known
	About  string `json:"about"`
}

// SettingRow is one setting: numbers in the order of the metrics, nil where they are missing.
type SettingRow struct {
	Model     string   `json:"model"`
	Values    []string `json:"values"` // of the keys
	Seeds     int      `json:"seeds"`
	Images    int      `json:"images"` // the same number for settings that are measured on the same images
	Mean      []*Point `json:"mean"`
	Deviation []*Point `json:"deviation"`
	Trials    []int    `json:"trials"` // their indices
}

// TrialRow is one trial.
type TrialRow struct {
	Name    string   `json:"name"`
	Seed    uint64   `json:"seed"`
	Numbers []*Point `json:"numbers"`
	Atoms   *Sprite  `json:"atoms,omitempty"`
	Link    string   `json:"link,omitempty"` // in `tessera ui`
}

// SelectedRow is a selected setting with its means on the test images.
type SelectedRow struct {
	Model   string
	Values  []string
	Numbers []string
}

// ReadSweep reads the results of a sweep and the atoms of its trials. It measures nothing.
func ReadSweep(ctx context.Context, path string, o Options) (*Sweep, error) {
	if ctx == nil {
		return nil, errors.New("page: no context: give context.Background()")
	}
	results, err := sweep.Read(path)
	if err != nil {
		return nil, err
	}
	s := &Sweep{Label: filepath.Base(filepath.Clean(path)), Path: path, Keys: results.Keys, Noun: "image", sets: map[string]*config.Dataset{}}
	names := s.measures(results)
	s.rows(results, names)
	s.Commands = []Command{{strings.Join(append([]string{"tessera sweep", shell.Word(results.Sweep)}, results.Flags()...), " "),
		"trains and measures it again, in a folder with the same models.toml"},
		{"tessera report " + shell.Word(path) + " -o report.html", "writes this page"}}
	models, err := s.sprites(ctx, o)
	if err != nil {
		return nil, err
	}
	s.Names = keyNames(results.Keys, models)
	s.words(results, models)
	s.selected(results, names)
	s.group(results)
	s.differences(results)
	return s, nil
}

// rows lists the trials, those that failed, and the settings.
func (s *Sweep) rows(results *sweep.Results, names []string) {
	numbers, labels := map[string]int{}, results.Labels()
	for i, t := range results.Trials {
		numbers[t.Trial] = i
		row := TrialRow{Name: t.Trial, Seed: t.Seed}
		if t.Metrics != nil {
			row.Numbers = points(t.Metrics.Values, names)
		}
		if t.Error != "" {
			s.Failed = append(s.Failed, Failure{t.Trial, labels.Trial(t), t.Error})
		}
		s.Trials = append(s.Trials, row)
	}
	for _, one := range results.Settings {
		row := SettingRow{Model: one.Model, Values: one.Texts(results.Keys), Seeds: len(one.Seeds), Mean: points(one.Mean, names), Deviation: points(one.Deviation, names)}
		for _, t := range one.Trials {
			row.Trials = append(row.Trials, numbers[t])
		}
		s.Settings = append(s.Settings, row)
	}
}

// selected lists the selected settings.
func (s *Sweep) selected(r *sweep.Results, names []string) {
	s.SelectedOn = fmt.Sprintf("all %[1]ss, for want of test %[1]ss: the %[1]ss of the training and of the selection are among them", s.Noun)
	for _, set := range s.sets {
		if data.HasTest(set.Source) {
			s.SelectedOn = fmt.Sprintf("the test %ss, which played no part in the selection", s.Noun)
		}
	}
	for _, one := range r.Selected {
		row := SelectedRow{Model: one.Model, Values: one.Texts(r.Keys)}
		for _, n := range names {
			text := "-"
			if v, ok := one.Mean.Number(n); ok {
				text = short(v)
			}
			row.Numbers = append(row.Numbers, text)
		}
		s.Selected = append(s.Selected, row)
	}
}

// measures lists the metrics of a sweep and returns their names.
func (s *Sweep) measures(r *sweep.Results) (names []string) {
	for _, t := range r.Trials {
		if t.Metrics == nil {
			continue
		}
		for _, v := range t.Metrics.Values {
			if v.Missing == "" && !slices.Contains(names, v.Name) {
				names = append(names, v.Name)
			}
		}
	}
	if !slices.Contains(names, "mse") { // classifiers: the metrics that their losses optimise come first
		of := func(name string) bool { return strings.HasSuffix(name, "accuracy") || strings.HasSuffix(name, "nll") }
		for _, name := range names {
			if of(name) {
				s.First = append(s.First, name)
			}
		}
		names = append(slices.Clone(s.First), slices.DeleteFunc(names, of)...)
	}
	for _, name := range names {
		c := MeasureColumn{Name: name}
		if m, ok := metrics.MeasureOf(name); ok {
			c.About = aboutOf(m)
			if m.Better != metrics.Neither {
				c.Better = string(m.Better)
			}
		}
		s.Measures = append(s.Measures, c)
	}
	return names
}

func points(values metrics.Values, names []string) []*Point {
	all := make([]*Point, len(names))
	for i, name := range names {
		if v, ok := values.Number(name); ok {
			p := Point(v)
			all[i] = &p
		}
	}
	return all
}

// sprites draws the atoms of the trials and returns their models, one for each name.
func (s *Sweep) sprites(ctx context.Context, o Options) (models []*config.Model, err error) {
	budget := spriteBudget / max(1, len(s.Trials))
	for i := range s.Trials {
		t := &s.Trials[i]
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		run, err := tessera.Open(sweep.TrialPath(s.Path, t.Name), o.Open)
		var damaged *checkpoint.Error
		switch {
		case errors.Is(err, folder.ErrNotRun), errors.As(err, &damaged): // not begun, removed or damaged: the numbers are shown
			continue
		case err != nil:
			return nil, err
		}
		set := run.Model.Dataset // not the whole model, of which there may be thousands
		s.sets[t.Name] = &set
		if noun := nounOf(run.Shape()); len(s.sets) == 1 || noun == s.Noun {
			s.Noun = noun
		} else {
			s.Noun = "sample" // of images and vectors
		}
		if !slices.ContainsFunc(models, func(m *config.Model) bool { return m.Name == run.Model.Name }) {
			models = append(models, run.Model)
			s.countParts(ctx, run)
		}
		if a := run.Atoms(); a != nil {
			t.Atoms = spriteOf(a, budget)
		}
		if err := run.Close(); err != nil {
			return nil, err
		}
	}
	return models, nil
}

// countParts notes how many true parts there are, where a sweep counts those that were found.
func (s *Sweep) countParts(ctx context.Context, run *tessera.Run) {
	at := slices.IndexFunc(s.Measures, func(m MeasureColumn) bool { return m.Name == "parts_found" })
	if at < 0 {
		return
	}
	sample, err := run.Sample(ctx, evaluation.PlanOf(run.Model).First)
	if err != nil { // without the images their parts are not known
		return
	}
	s.Measures[at].Of = max(s.Measures[at].Of, len(sample.Images.Parts))
}

// Write renders the page.
func (s *Sweep) Write(w io.Writer) error {
	if s == nil {
		return errors.New("page: no sweep to report: read one with ReadSweep")
	}
	read := map[string]any{"liveSweep": s.Live, "sweep": map[string]any{"keys": s.Keys, "names": s.Names, "measures": s.Measures, "first": s.First, "settings": s.Settings, "trials": s.Trials}}
	return write(w, "sweep.html", frame{Title: s.Label + " - Tessera", Live: s.Live != "", Data: read, Body: s})
}

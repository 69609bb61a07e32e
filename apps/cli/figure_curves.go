package cli

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"tessera"
	"tessera/apps/internal/study"
	"tessera/apps/show"
	"tessera/apps/show/figures"
	"tessera/config"
	"tessera/internal/lists"
	"tessera/internal/sweep"
	"tessera/internal/train"
	"tessera/internal/train/folder"
)

// drawCurves draws metrics over a swept key, or the study's four panels over β if no other metrics or keys are given and
// several β are compared.
func drawCurves(w *figureCommand) (*figures.Figure, error) {
	swept, err := w.sweeps()
	if err != nil {
		return nil, err
	}
	if len(w.X)+len(w.Metrics) == 0 {
		ours, published, err := w.compared()
		if err != nil || len(w.Runs) == 0 || overBeta(ours) && ofPenalty(swept) {
			if err != nil {
				return nil, err
			}
			return figures.Curves(ours, published)
		}
	}
	if len(swept) < len(w.Runs) || len(swept) == 0 {
		return nil, usagef("figure curves: runs are drawn over the weight of their KL penalty, and these have fewer than two; other keys are drawn of folders of sweeps")
	}
	c := curves{sweeps: swept, x: w.X, metrics: w.Metrics}
	for _, step := range []func() error{c.comparable, c.chooseX, c.chooseMetrics} {
		if err := step(); err != nil {
			return nil, usageError{fmt.Errorf("figure curves: %w", err)}
		}
	}
	f, err := figures.Swept(strings.Join(c.names(c.x), " / "), c.metrics, c.lines())
	if err != nil && !errors.Is(err, figures.ErrNoPoints) {
		return nil, usageError{fmt.Errorf("figure curves: %w; give another --x, or draw pareto", err)}
	}
	return f, err
}

// overBeta reports whether the points form curves over β: a target p has several values of β, each of them once.
func overBeta(points []figures.Point) bool {
	several := false
	for i, a := range points {
		for _, b := range points[:i] {
			same := a.P == b.P || math.IsNaN(a.P) && math.IsNaN(b.P)
			if same && a.Beta == b.Beta {
				return false
			}
			several = several || same && !math.IsNaN(a.Beta) && !math.IsNaN(b.Beta)
		}
	}
	return several
}

// ofPenalty reports whether the sweeps vary only the target and the weight of the KL penalty.
func ofPenalty(sweeps []sweptFolder) bool {
	for _, s := range sweeps {
		for _, key := range s.Keys {
			varies := func(setting sweep.Setting) bool {
				v, _ := setting.Values[key].(float64)
				p, err := sweepPoint(s.path, setting)
				return err != nil || v != p.P && v != p.Beta
			}
			if slices.ContainsFunc(s.Settings, varies) {
				return false
			}
		}
	}
	return true
}

// sweptFolder is a sweep whose settings are drawn.
type sweptFolder struct {
	path string
	*sweep.Results
}

// sweeps reads the folders that are sweeps.
func (w *figureCommand) sweeps() (list []sweptFolder, err error) {
	for _, path := range w.Runs {
		if !sweep.Is(path) {
			continue
		}
		r, err := sweep.Read(path)
		if err != nil {
			return nil, err
		}
		list = append(list, sweptFolder{path, r})
	}
	return list, nil
}

// curves describes metrics of sweeps over a swept key.
type curves struct {
	sweeps  []sweptFolder
	x       []string // the swept key; several if the models have different keys
	metrics []string
}

// comparable returns an error for sweeps that were measured on different images.
func (c *curves) comparable() error {
	first := ""
	for _, s := range c.sweeps {
		for _, t := range s.Trials {
			if t.Metrics == nil {
				continue
			}
			if on := t.Metrics.Dataset + ", " + t.Metrics.Split + " images"; first == "" {
				first = on
			} else if on != first {
				return fmt.Errorf("%s: measured on other images (got %s, want %s): draw them one by one", s.path, on, first)
			}
		}
	}
	return nil
}

func (c *curves) keys() (keys []string) {
	for _, s := range c.sweeps {
		keys = lists.Add(keys, s.Keys...)
	}
	return keys
}

// over returns the value of the first of these keys that a setting has.
func over(s sweep.Setting, keys []string) (v float64, ok bool) {
	for _, key := range keys {
		if v, ok := s.Values[key].(float64); ok {
			return v, true
		}
	}
	return 0, false
}

// names returns the keys in words, as pages of sweeps have them.
func (c *curves) names(keys []string) []string {
	var models []*config.Model
	for _, s := range c.sweeps {
		for _, setting := range s.Settings {
			if file, err := tessera.Load(filepath.Join(sweep.TrialPath(s.path, setting.Trials[0]), folder.Config)); err == nil {
				if m, err := file.Model(setting.Model); err == nil {
					models = append(models, m)
				}
			}
		}
	}
	return show.KeyNames(keys, models)
}

// distinct counts the different numbers that a key has.
func (c *curves) distinct(key string) int {
	seen := map[float64]bool{}
	for _, s := range c.sweeps {
		for _, setting := range s.Settings {
			if v, ok := over(setting, []string{key}); ok && len(setting.Seeds) > 0 {
				seen[v] = true
			}
		}
	}
	return len(seen)
}

// chooseX checks the keys of --x, or takes the key with the most values.
func (c *curves) chooseX() error {
	keys := c.keys()
	if len(c.x) > 0 {
		for _, key := range c.x {
			switch {
			case !slices.Contains(keys, key):
				return fmt.Errorf("--x: %q is not swept, want one of %s", key, strings.Join(keys, ", "))
			case c.distinct(key) < 2:
				return fmt.Errorf("--x: %s has fewer than two numbers to draw over; draw pareto", key)
			}
		}
		return nil
	}
	most := 1
	for _, key := range keys {
		if n := c.distinct(key); n > most {
			c.x, most = []string{key}, n
		}
	}
	if most == 1 {
		return fmt.Errorf("no swept key has two numbers to draw over (got %s); draw pareto", cmp.Or(strings.Join(keys, ", "), "models and seeds"))
	}
	return nil
}

// mostDrawn is the number of metrics that are drawn by default.
const mostDrawn = 4

// chooseMetrics checks the names of --metrics, or selects the first measured ones.
func (c *curves) chooseMetrics() error {
	var measured []string
	for _, s := range c.sweeps {
		for _, setting := range s.Settings {
			for _, v := range setting.Mean {
				if !slices.Contains(measured, v.Name) {
					measured = append(measured, v.Name)
				}
			}
		}
	}
	for _, name := range c.metrics {
		if !slices.Contains(measured, name) {
			return fmt.Errorf("--metrics: %q was not measured, want some of %s", name, strings.Join(measured, ", "))
		}
	}
	if len(c.metrics) > 0 {
		return nil
	}
	var first []string
	for _, s := range c.sweeps {
		first = append(first, s.First()...)
	}
	first = slices.DeleteFunc(append(first, measured...), func(name string) bool { return !slices.Contains(measured, name) })
	varying := lists.Only(first, c.varies)
	for _, name := range append(varying, first...) {
		if len(c.metrics) < mostDrawn && !slices.Contains(c.metrics, name) {
			c.metrics = append(c.metrics, name)
		}
	}
	return nil
}

// varies reports whether a metric has different means.
func (c *curves) varies(name string) bool {
	seen := map[float64]bool{}
	for _, s := range c.sweeps {
		for _, setting := range s.Settings {
			if v, ok := setting.Mean.Number(name); ok {
				seen[v] = true
			}
		}
	}
	return len(seen) > 1
}

// lines groups the settings into lines. A line consists of the settings with the same values of all other keys. If no line
// would have two settings, as in a random search, a line consists of the settings with the same model and the same non-numeric
// values.
func (c *curves) lines() []figures.SweptLine {
	others := slices.DeleteFunc(c.keys(), func(key string) bool { return slices.Contains(c.x, key) })
	lines := c.grouped(others, false)
	if slices.ContainsFunc(lines, figures.SweptLine.Several) {
		return lines
	}
	return c.grouped(slices.DeleteFunc(others, func(key string) bool { return c.distinct(key) > 0 }), true)
}

// grouped returns one line for all settings that have the same values of the given keys. If apart is true, the points of a
// line are not connected.
func (c *curves) grouped(keys []string, apart bool) (lines []figures.SweptLine) {
	for _, s := range c.sweeps {
		labels := s.Labels()
		for _, setting := range s.Settings {
			x, ok := over(setting, c.x)
			if !ok || len(setting.Seeds) == 0 {
				continue
			}
			name := labels.Values(setting, keys)
			if len(c.sweeps) > 1 {
				name = filepath.Base(filepath.Clean(s.path)) + ": " + name
			}
			i := slices.IndexFunc(lines, func(l figures.SweptLine) bool { return l.Name == name })
			if i < 0 {
				i = len(lines)
				lines = append(lines, figures.SweptLine{Name: name, Apart: apart})
			}
			lines[i].Points = append(lines[i].Points, figures.SweptPoint{X: x, Mean: setting.Mean, Deviation: setting.Deviation, Split: s.Split, Noun: nounOf(s.path, setting)})
		}
	}
	if len(lines) == 1 {
		lines[0].Name = "" // which nothing is compared with
	}
	return lines
}

// sweepPoints adds one point for each setting of a sweep that has a finished trial. A point consists of means over the seeds.
func sweepPoints(path string, add func(p figures.Point, dataset string) error) error {
	r, err := sweep.Read(path)
	if err != nil {
		return err
	}
	for _, s := range r.Settings {
		i := slices.IndexFunc(r.Trials, func(t sweep.Row) bool { return t.Metrics != nil && slices.Contains(s.Trials, t.Trial) })
		if i < 0 {
			continue
		}
		p, err := sweepPoint(path, s)
		if err != nil {
			return err
		}
		p.Label, p.Split, p.Noun = r.Labels().Setting(s), r.Trials[i].Metrics.Split, nounOf(path, s)
		if err := add(p, r.Trials[i].Metrics.Dataset); err != nil {
			return err
		}
	}
	return nil
}

// nounOf returns the noun of a sample that the trials of a setting measured.
func nounOf(path string, s sweep.Setting) string {
	return show.NounOf(train.StatusOf(sweep.TrialPath(path, s.Trials[0])).Shape)
}

// sweepPoint returns the point of a setting: the means over the seeds, and the penalty from the configuration of one of its
// trials.
func sweepPoint(path string, s sweep.Setting) (figures.Point, error) {
	models, err := tessera.Load(filepath.Join(sweep.TrialPath(path, s.Trials[0]), folder.Config))
	if err != nil {
		return figures.Point{}, err
	}
	m, err := models.Model(s.Model)
	if err != nil {
		return figures.Point{}, err
	}
	p := figures.Point{Values: s.Mean, Deviation: s.Deviation, First: m.Measures()}
	p.P, p.Beta = study.Penalty(m)
	return p, nil
}

type shownRun struct{ path, label string }

// shown lists the runs of a figure. A sweep is replaced by the first finished trial of each of its settings.
func (w *figureCommand) shown() (list []shownRun, err error) {
	for _, path := range w.Runs {
		if !sweep.Is(path) {
			list = append(list, shownRun{path, labelOf(path)})
			continue
		}
		r, err := sweep.Read(path)
		if err != nil {
			return nil, err
		}
		runs, labels := r.Shown(path)
		if len(runs) == 0 {
			return nil, usagef("%s: no trial of this sweep has finished", path)
		}
		for i, run := range runs {
			list = append(list, shownRun{run, labels[i]})
		}
	}
	return list, nil
}

// labelOf returns the label of a run: its folder or, for a trial of a sweep, its settings.
func labelOf(run string) string {
	if label, ok := sweep.LabelOf(run); ok {
		return label
	}
	return filepath.Base(filepath.Clean(run))
}

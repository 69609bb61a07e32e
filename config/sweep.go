package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"tessera/data"
	"tessera/part/table"
)

// Sweep is one checked [sweep.NAME]: the trials of its models, settings and seeds.
type Sweep struct {
	Name  string
	About string
	// Keys are the keys with more than one value, as in --set, without the seeds.
	Keys []string
	// Split is what the trials are measured on.
	Split data.Split
	// Select are the metrics by which settings are selected, nil where none are.
	Select []Criterion
	// Changes are the --set arguments and flags that changed the declaration, as they were given.
	Changes []string
	// Trials are all combinations of models, values and seeds, the last of these varying fastest.
	Trials []Trial
}

// Trial is one model of a sweep with its settings.
type Trial struct {
	Model  *Model
	Values []any // of the sweep's keys: a string, int64, float64, bool, or []any and map[string]any of these; nil where a key is not of this model
}

// mostTrials bounds the trials of a sweep: more are probably a typo.
const mostTrials = 10000

// sweepTable is the table [sweep.NAME]. [sweepPlan] reads the values of `model` and `set`.
type sweepTable struct {
	About  string      `toml:"about" doc:"one-line description"`
	Model  *table.Node `toml:"model" doc:"the model that is trained, or a list of models"`
	Seeds  []uint64    `toml:"seeds" doc:"one trial per seed; the model's seed by default"`
	Split  string      `toml:"split" oneof:"train validation test" doc:"images that the trials are measured on; by default validation if all trials hold images out, else test"`
	Select *table.Node `toml:"select" doc:"metrics that select settings on the validation images: \"mse\" takes the smallest mean over the seeds, \"-accuracy\" the largest, a list the Pareto front; only the selected settings are measured on the test images"`
	axesTable
	For *table.Node `toml:"for" doc:"keys of single models: for.MODEL.set, for.MODEL.zip, for.MODEL.random; they replace the sweep's keys of the same name"`
}

// UnknownSweep is the error for a name that no sweep of the file has.
type UnknownSweep struct {
	File  string
	Name  string
	Names []string // of the file's sweeps
}

// Error implements error.
func (e *UnknownSweep) Error() string {
	text := fmt.Sprintf("unknown sweep %q in %s", e.Name, e.File)
	if len(e.Names) == 0 {
		return text + ", which declares none"
	}
	return text + ": " + table.Suggest(e.Name, e.Names)
}

// Sweep returns one checked sweep. The --set arguments change every trial and replace the sweep's values of the same key.
// The error is [*table.Diagnostics] for errors in the sweep, its models, a trial or a --set argument, and [*UnknownSweep]
// if the file has no such sweep.
func (f *File) Sweep(name string, sets ...Set) (*Sweep, error) {
	if f.empty() {
		return nil, &UnknownSweep{Name: name}
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if owner := f.sweepOwner(name); owner != nil && owner != f {
		f.judge()
		return owner.Sweep(name, sets...)
	} else if owner == nil {
		return nil, &UnknownSweep{File: f.sources(), Name: name, Names: f.SweepNames()}
	}
	plan, found := f.plan(name)
	for _, base := range plan.models {
		found = append(found, f.sound(base)...)
	}
	found = append(found, f.twice[plan.subject()]...)
	concern := plan.concern(sets)
	plan.override(sets)
	found = append(found, plan.tooMany()...)
	s := &Sweep{Name: name, About: plan.table.About, Keys: plan.keys(), Select: plan.criteria}
	for _, set := range sets {
		s.Changes = append(s.Changes, set.String())
	}
	for _, base := range plan.models {
		axes := plan.of(base)
		for i := 0; i < axes.size() && len(found) == 0; i++ {
			choice := axes.choice(i)
			m, some := f.trial(plan, base, axes.changes(choice), concern[base])
			s.Trials, found = append(s.Trials, Trial{Model: m, Values: axes.values(s.Keys, choice)}), some
		}
	}
	if len(found) == 0 {
		s.Split, found = plan.split(s.Trials)
	}
	if err := table.Report(found, sourcesOf(sets)...); err != nil {
		return nil, err
	}
	return s, nil
}

// checkSweep checks a sweep of the file: its table, and each value combined with the first values of the other keys.
// [File.Sweep] checks all combinations.
func (f *File) checkSweep(name string) []table.Diagnostic {
	plan, found := f.plan(name)
	found = append(found, misnamed("sweep", "sweeps", name, plan.node)...)
	if many := plan.tooMany(); many != nil {
		return append(found, many...)
	}
	var trials []Trial
	for _, base := range plan.models {
		if len(f.sound(base)) > 0 {
			continue // its errors are reported elsewhere
		}
		axes := plan.of(base)
		for _, choice := range axes.singly() {
			m, some := f.trial(plan, base, axes.changes(choice), nil)
			found = append(found, some...)
			if len(some) == 0 {
				trials = append(trials, Trial{Model: m})
			}
		}
	}
	if len(found) == 0 {
		_, found = plan.split(trials)
	}
	return found
}

// trial builds one model of a sweep. Errors that the changes cause in the model's tables are attributed to the first change
// that causes one.
func (f *File) trial(p *sweepPlan, base string, changes []table.Change, sets []Set) (*Model, []table.Diagnostic) {
	changes = f.suited(base, changes, sets)
	m, found := f.build(base, changes)
	if found = f.blame(base, changes, p.subject(), found); len(found) == 0 {
		m.text = Fill(m)
	}
	for i := range found {
		found[i].Scope = p.subject()
	}
	return m, found
}

// Set is one change of a model: --set PATH=VALUE.
type Set struct {
	table.Change
	passes int    // of Passes, else 0
	seeds  string // of Seeds, else ""
}

// ParseSet reads PATH=VALUE; see [table.ParseChange].
func ParseSet(argument string) (Set, error) {
	change, err := table.ParseChange(argument)
	return Set{Change: change}, err
}

// sourcesOf lists the texts of the --set arguments; Passes have none.
func sourcesOf(sets []Set) (sources []*table.Source) {
	for _, s := range sets {
		if s.Source != nil {
			sources = append(sources, s.Source)
		}
	}
	return sources
}

// Passes is a change that depends on the kind of each model of a sweep: n epochs for auto-encoders, n iterations for
// iterative baselines, and no change for others.
func Passes(n int) Set { return Set{passes: n} }

// The keys that Passes sets.
const (
	epochsKey     = "train.epochs"
	iterationsKey = "iterations"
)

// suited appends the --set arguments to the changes of a trial; Passes becomes the key for the resulting kind of model.
func (f *File) suited(model string, changes []table.Change, sets []Set) []table.Change {
	for _, s := range sets {
		if s.passes == 0 && s.seeds == "" {
			changes = append(changes, s.Change)
		}
	}
	for _, s := range sets {
		if s.passes == 0 {
			continue
		}
		m, _ := f.build(model, changes)
		if key := passesOf(m); key != "" {
			change, _ := table.ParseChange(key + "=" + strconv.Itoa(s.passes)) // cannot fail: it is well formed
			changes = append(changes, change)
		}
	}
	return changes
}

// passesOf is the key of a model's number of epochs or iterations, "" if it has none.
func passesOf(m *Model) string {
	switch {
	case m == nil || m.Baseline == nil:
		return epochsKey
	case reflect.TypeOf(m.Baseline).Kind() == reflect.Pointer && slices.Contains(table.Keys(m.Baseline, ""), iterationsKey):
		return iterationsKey
	}
	return ""
}

// sets reports whether a change sets a key.
func (s Set) sets(key string) bool {
	return s.key() == key || s.passes > 0 && (key == epochsKey || key == iterationsKey)
}

// key is the key of a --set argument.
func (s Set) key() string { return strings.Join(s.Path(), ".") }

// String returns the change as a flag: "--set loss.1.weight=0.01", "--epochs 5".
func (s Set) String() string {
	if s.passes > 0 {
		return "--epochs " + strconv.Itoa(s.passes)
	}
	if s.seeds != "" {
		return "--seeds " + s.seeds
	}
	if s.Source == nil {
		return "--set " + s.key()
	}
	return "--set " + s.Source.Text
}

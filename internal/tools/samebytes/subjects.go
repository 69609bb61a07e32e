package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// The kinds of subjects.
const (
	kindModel   = "model"
	kindSweep   = "sweep"
	kindVariant = "variant" // a shipped model with changed settings; see variants
)

// Amounts of training. A different gradient is visible after one step, and a different state between epochs in the second
// epoch.
const (
	fittedImages = 256 // 100 components need at least this number
	batch        = 64
	epochs       = 2
	prunedEpochs = 3 // before, while and after weights are held at 0
	iterations   = 3
	sweepEpochs  = 1
)

// A subject is a model, a sweep or a variant to compare.
type subject struct {
	kind, name string
	model      string    // shipped model that is passed to train; "" for a sweep
	args       []string  // further arguments of train or sweep, which shorten the training
	dataset    string    // name of the data set of a model
	first      []subject // subjects that are trained first, into runs/MODEL: the run from which the model starts, after that from which this one starts
}

// String returns the name of the subject in reports and exceptions.
func (s subject) String() string { return s.kind + " " + s.name }

// selected returns the subjects whose name, with or without the kind, matches the glob; all for "".
func selected(subjects []subject, glob string) []subject {
	if glob == "" {
		return subjects
	}
	var kept []subject
	for _, s := range subjects {
		bare, _ := path.Match(glob, s.name)
		full, _ := path.Match(glob, s.String())
		if bare || full {
			kept = append(kept, s)
		}
	}
	return kept
}

// names lists the shipped "models" or "sweeps".
func (p program) names(ctx context.Context, folder, kind string) ([]string, error) {
	text, err := p.command(ctx, folder, "list", kind, "--json")
	if err != nil {
		return nil, err
	}
	var lists map[string][]struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(text, &lists); err != nil {
		return nil, fmt.Errorf("list %s --json: %w", kind, err)
	}
	var names []string
	for _, entry := range lists[kind] {
		names = append(names, entry.Name)
	}
	return names, nil
}

// settings returns every setting of a shipped model by its path, without descriptions.
func (p program) settings(ctx context.Context, folder, model string) (map[string]string, error) {
	text, err := p.command(ctx, folder, "check", "--fill", model)
	if err != nil {
		return nil, err
	}
	var file struct{ Model map[string]map[string]any }
	if _, err := toml.Decode(string(text), &file); err != nil {
		return nil, fmt.Errorf("check --fill %s: %w", model, err)
	}
	settings := map[string]string{}
	flatten(settings, "", file.Model[model])
	delete(settings, "about")
	return settings, nil
}

// plan lists the subjects that a program ships, sweeps first because they take longest.
func (p program) plan(ctx context.Context, folder string) ([]subject, error) {
	sweeps, err := p.names(ctx, folder, "sweeps")
	if err != nil {
		return nil, err
	}
	models, err := p.names(ctx, folder, "models")
	if err != nil {
		return nil, err
	}
	var subjects []subject
	for _, name := range sweeps {
		subjects = append(subjects, subject{kind: kindSweep, name: name, args: []string{
			"--epochs", fmt.Sprint(sweepEpochs), "--set", fmt.Sprintf("dataset.limit=%d", fittedImages)}})
	}
	all, starts := map[string]subject{}, map[string]string{} // the model whose run a model starts from
	for _, name := range models {
		settings, err := p.settings(ctx, folder, name)
		if err != nil {
			return nil, err
		}
		all[name] = subject{kind: kindModel, name: name, model: name, args: shortened(settings), dataset: settings["dataset.name"]}
		starts[name], _ = strings.CutPrefix(settings["start.run"], "runs/")
		subjects = append(subjects, all[name])
	}
	for i, s := range subjects {
		if s.kind == kindModel {
			subjects[i].first = before(all, starts, s.name)
		}
	}
	return append(subjects, variantsOf(all)...), nil
}

// before returns the subjects from whose runs a model starts, in the order of their training. starts is the model whose run a
// model starts from.
func before(all map[string]subject, starts map[string]string, name string) (list []subject) {
	for range all { // a cycle ends too
		start, ok := all[starts[name]]
		if !ok {
			break
		}
		list, name = append([]subject{start}, list...), start.name
	}
	return list
}

// phaseTime matches the keys of the epochs in which a phase begins and ends.
var phaseTime = regexp.MustCompile(`^hook\.(?:prune|sparse_phase)\.(from|until)$`)

// shortened returns the arguments that shorten a training, for a model with these settings.
func shortened(settings map[string]string) []string {
	values := map[string]int{"dataset.limit": fittedImages, "train.batch": batch, "train.epochs": epochs, "iterations": iterations}
	for key := range settings {
		switch phase := phaseTime.FindStringSubmatch(key); {
		case phase == nil:
		case phase[1] == "from":
			values[key], values["train.epochs"] = 1, prunedEpochs
		default:
			values[key], values["train.epochs"] = 2, prunedEpochs
		}
	}
	var args []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if _, ok := settings[key]; ok {
			args = append(args, "--set", fmt.Sprintf("%s=%d", key, values[key]))
		}
	}
	return args
}

// unknown returns the names of a kind that have no subject.
func unknown(subjects []subject, kind string, names []string) []string {
	var left []string
	for _, name := range names {
		if !slices.ContainsFunc(subjects, func(s subject) bool { return s.kind == kind && s.name == name }) {
			left = append(left, kind+" "+name)
		}
	}
	return left
}

// fileName returns the subject's name in a form that is valid for files.
func (s subject) fileName() string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>| `, r) {
			return '_'
		}
		return r
	}, s.String())
}

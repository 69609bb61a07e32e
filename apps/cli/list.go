package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tessera"
	"tessera/apps/export"
	"tessera/apps/show"
	"tessera/apps/show/doc"
	"tessera/config"
	"tessera/config/part"
	"tessera/config/part/table"
	"tessera/internal/lists"
	"tessera/metrics"
	"tessera/posthoc"
)

// Titles for the declarations of a file. The other titles are those of config.Vocabularies.
const (
	modelsTitle = "models"
	sweepsTitle = "sweeps"
)

// Titles for parts that a file does not declare.
const (
	metricsTitle      = "metrics"
	formatsTitle      = "formats" // of export
	calibrationsTitle = "calibrations"
	criteriaTitle     = "criteria" // of thresholds
)

func init() {
	Commands.Register("list", "List models, layers, losses and all other parts, with keys and defaults", func() Command { return &listCommand{} })
}

type listCommand struct {
	Names []string `arg:"KIND or PART" usage:"[KIND]... [PART]..." optional:"true" is:"kind" doc:"kinds of parts, or names of parts"`
	fileFlag
	jsonFlag
}

// listTitles returns the kinds of parts that list prints.
func listTitles() []string {
	return slices.Concat([]string{modelsTitle}, config.Vocabularies(), []string{metricsTitle, formatsTitle, calibrationsTitle, criteriaTitle, sweepsTitle})
}

func (f *listCommand) Help() Help {
	return Help{
		Long:     "List models, layers, losses and all other parts, with keys and defaults, or only the parts that are named. The kinds are " + strings.Join(listTitles(), ", ") + ".",
		Examples: []string{"tessera list losses", "tessera list models sweeps", "tessera list layers dense"},
	}
}

func (f *listCommand) Do(cmd *Call) error {
	kinds, parts := kindsAndParts(f.Names, listTitles())
	all, err := describe(&f.fileFlag, kinds)
	if err != nil { // a file with errors must not hide the parts, which explain them
		if !declares(all, parts) {
			return err
		}
		warn(cmd, "the models and sweeps of the file are left out, because it has errors: `tessera check` shows them")
	}
	if len(parts) > 0 {
		if kinds, err = only(all, kinds, parts); err != nil {
			return err
		}
	}
	d := &doc.Document{Data: all}
	for _, title := range kinds {
		d.Blocks = append(d.Blocks, listBlocks(title, all[title])...)
	}
	return cmd.Show(d, f.JSON)
}

// kindsAndParts divides the arguments into kinds and names of parts. Without any kind it returns all kinds.
func kindsAndParts(args, titles []string) (kinds, parts []string) {
	for _, arg := range args {
		if slices.Contains(titles, arg) {
			kinds = append(kinds, arg)
		} else {
			parts = append(parts, arg)
		}
	}
	if kinds == nil {
		kinds = titles
	}
	return kinds, parts
}

// listEntry is what list shows of a part, a metric or a declaration.
type listEntry interface {
	of() (name, file string) // file is that of a declaration
}

// only reduces the kinds to the named parts, and returns the kinds with at least one of these parts.
func only(all map[string][]listEntry, kinds, parts []string) (with []string, err error) {
	var names []string
	for _, kind := range kinds {
		all[kind] = slices.DeleteFunc(all[kind], func(e listEntry) bool {
			name, _ := e.of()
			names = append(names, name)
			return !slices.Contains(parts, name)
		})
		if len(all[kind]) > 0 {
			with = append(with, kind)
		} else {
			delete(all, kind)
		}
	}
	for _, part := range parts {
		if !slices.Contains(names, part) {
			if why := config.Lacking(part); why != "" {
				return nil, usagef("unknown %q: %s", part, why)
			}
			if near := table.Suggest(part, slices.Concat(kinds, names)); strings.HasPrefix(near, "did you mean") {
				return nil, usagef("unknown %q: %s", part, near)
			}
			return nil, usagef("unknown %q, want %s, or the name of a part", part, strings.Join(kinds, ", "))
		}
	}
	return with, nil
}

// declares reports whether all names are those of parts, of which there is at least one.
func declares(all map[string][]listEntry, names []string) bool {
	known := map[string]bool{}
	for _, entries := range all {
		for _, e := range entries {
			name, file := e.of()
			known[name] = known[name] || file == ""
		}
	}
	return len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return !known[name] })
}

// describe returns the entries for every title. After an error of the file it still returns the parts.
func describe(f *fileFlag, titles []string) (all map[string][]listEntry, failed error) {
	all = map[string][]listEntry{}
	for _, title := range titles {
		if title == metricsTitle {
			all[title] = describedMetrics()
			continue
		}
		if title == formatsTitle {
			all[title] = named(export.Registry)
			continue
		}
		if title == calibrationsTitle {
			all[title] = named(posthoc.Registry)
			continue
		}
		if title == criteriaTitle {
			all[title] = named(posthoc.Fairness)
			continue
		}
		if list, ok := config.Describe(title); ok {
			for _, d := range list {
				all[title] = append(all[title], described{d, ""})
			}
			continue
		}
		models, err := f.load()
		if err == nil {
			all[title], err = declared(models, title)
		}
		failed = cmp.Or(failed, err)
	}
	return all, failed
}

func named[T any](r *part.Registry[T]) (list []listEntry) {
	for _, e := range r.All() {
		list = append(list, described{table.Description{Name: e.Name, About: e.About, Keys: []table.KeyDescription{}}, ""})
	}
	return list
}

// described is a part, a model or a sweep as `tessera list` shows it.
type described struct {
	table.Description
	File string `json:"file,omitempty"` // that declares it
}

func (d described) of() (name, file string) { return d.Name, d.File }

// declared returns the models or sweeps of a file and of the shipped ones that it extends.
func declared(models *config.File, title string) ([]listEntry, error) {
	list := []listEntry{}
	add := func(name, about, file string) {
		list = append(list, described{table.Description{Name: name, About: about, Keys: []table.KeyDescription{}}, file})
	}
	if title == sweepsTitle {
		for _, name := range models.SweepNames() {
			s, err := models.Sweep(name)
			if err != nil {
				return nil, err
			}
			add(name, s.About, models.FileOfSweep(name))
		}
		return list, nil
	}
	for _, name := range models.Names() {
		m, err := models.Model(name)
		if err != nil {
			return nil, err
		}
		add(name, m.About, models.FileOf(name))
	}
	return list, nil
}

// listBlocks shows the entries of one title, declarations under the file that declares them.
func listBlocks(title string, entries []listEntry) (blocks []doc.Block) {
	if title == metricsTitle {
		return []doc.Block{metricsTable(entries)}
	}
	for len(entries) > 0 || blocks == nil {
		of, n := title, len(entries)
		if n > 0 {
			_, file := entries[0].of()
			if i := slices.IndexFunc(entries, func(e listEntry) bool { _, other := e.of(); return other != file }); i > 0 {
				n = i
			}
			switch file {
			case "":
			case tessera.ShippedName:
				of = "shipped " + title
			default:
				of = title + " of " + file
			}
		}
		group := lists.Map(entries[:n], func(e listEntry) table.Description { return e.(described).Description })
		blocks, entries = append(blocks, partsBlock(of, group)), entries[n:]
	}
	return blocks
}

// partsBlock shows parts, each with a table of its keys; parts without keys are one table.
func partsBlock(title string, list []table.Description) doc.Block {
	if !slices.ContainsFunc(list, func(d table.Description) bool { return len(d.Keys) > 0 }) {
		t := &doc.Table{Title: title, Columns: []doc.Column{{}, {Wrap: true}}}
		for _, d := range list {
			t.Row("  "+d.Name, d.About)
		}
		return t
	}
	count := map[[3]string]int{} // keys that several parts describe identically but for the default
	common := func(k table.KeyDescription) [3]string { return [3]string{k.Key, k.Want, k.About} }
	for _, d := range list {
		for _, k := range d.Keys {
			count[common(k)]++
		}
	}
	g := &doc.Group{Title: title}
	shared := &doc.Table{Title: "keys of several " + title, Columns: []doc.Column{{}, {Wrap: true}}}
	for _, d := range list {
		t := &doc.Table{Title: strings.TrimSuffix(d.Name+": "+d.About, ": "), Columns: []doc.Column{{}, {}, {Wrap: true}}}
		var also []string
		for _, k := range d.Keys {
			if count[common(k)] < sharedBy {
				t.Row("  "+k.Key, byDefault(k), keyText(k))
				continue
			}
			also = append(also, strings.TrimSuffix(k.Key+" "+byDefault(k), " -"))
			if row := []any{"  " + k.Key, keyText(k)}; !slices.ContainsFunc(shared.Rows, func(r []any) bool { return slices.Equal(r, row) }) {
				shared.Rows = append(shared.Rows, row)
			}
		}
		if also != nil {
			t.Notes = []string{"also " + strings.Join(also, ", ")}
		}
		g.Blocks = append(g.Blocks, t)
	}
	if len(shared.Rows) > 0 {
		g.Blocks = append(g.Blocks, shared)
	}
	return g
}

// sharedBy is the least number of parts with the same description of a key for which the key is described once, below the parts.
const sharedBy = 3

// keyText says what a key is, with its range.
func keyText(k table.KeyDescription) string {
	switch {
	case k.Want == "":
		return k.About
	case k.About == "":
		return k.Want
	}
	return k.About + " (" + k.Want + ")"
}

func byDefault(k table.KeyDescription) string {
	switch {
	case k.Required:
		return "required"
	case k.Default == "":
		return "-"
	}
	return "= " + k.Default
}

type metricFlags struct {
	Metrics []string `flag:"metrics" is:"metric" doc:"metrics to measure, names or globs as in mse,max_approx*; see tessera list metrics" default:"all quick ones"`
	SVM     bool     `flag:"svm" doc:"also classify the codes by a linear SVM, by the study's protocol and on a held-out fifth (slow)"`
	With    []string `flag:"with" each:"true" doc:"setting KEY=VALUE of a metric, as in shots=10; may be repeated; see tessera list metrics"`
}

// given reports whether a flag chooses metrics or their settings.
func (f *metricFlags) given() bool { return len(f.Metrics) > 0 || len(f.With) > 0 || f.SVM }

// chosen returns the metrics of the flags; metrics that another flag adds (others) are omitted if they are not applicable.
func (f *metricFlags) chosen(others ...string) (metrics.Selection, error) {
	chosen, err := selected(f.Metrics...)
	if err != nil {
		return nil, err
	}
	if len(f.Metrics) == 0 {
		chosen = nil // the default
	}
	if chosen, err = show.Also(chosen, others...); err != nil {
		return nil, err
	}
	if f.SVM {
		svm, err := selected("svm", "svm_holdout")
		if err != nil {
			return nil, err
		}
		chosen = chosen.Add(svm)
	}
	for _, text := range f.With {
		if err := chosen.SetText(text); err != nil {
			return nil, usagef("--with: %v", err)
		}
	}
	return chosen, nil
}

// selected returns the named metrics; an unknown name is a usage error with a suggestion.
func selected(names ...string) (metrics.Selection, error) {
	chosen, err := metrics.Select(names...)
	if unknown, ok := errors.AsType[*metrics.UnknownError](err); ok {
		return nil, usagef("--metrics: unknown %q: %s", unknown.Name, table.SuggestOf(unknown.Name, metrics.Names(), "`tessera list metrics`"))
	}
	return chosen, err
}

type describedMetric struct {
	Name     string          `json:"name"`
	Measures []metricMeasure `json:"measures"`
	Settings []metricSetting `json:"settings"`
}

type metricMeasure struct {
	Name   string         `json:"name"`
	Better metrics.Better `json:"better"`
	Unit   string         `json:"unit,omitempty"`
	About  string         `json:"about"`
}

type metricSetting struct {
	Key     string `json:"key"`
	Want    string `json:"want,omitempty"`
	Default any    `json:"default"`
	About   string `json:"about"`
}

func (d describedMetric) of() (name, file string) { return d.Name, "" }

func describedMetrics() (all []listEntry) {
	for _, e := range metrics.Registry.All() {
		m := e.New()
		d := describedMetric{Name: e.Name, Settings: []metricSetting{}}
		for _, one := range m.Describe().Measures {
			d.Measures = append(d.Measures, metricMeasure{one.Name, one.Better, one.Unit, one.Summary()})
		}
		for _, s := range metrics.Settings(m) {
			d.Settings = append(d.Settings, metricSetting{s.Key, s.Want, s.Value.Interface(), s.Doc})
		}
		all = append(all, d)
	}
	return all
}

// metricsTable has a row for every measure with its name, the better direction and a description, then rows for the settings.
func metricsTable(all []listEntry) *doc.Table {
	t := &doc.Table{Title: metricsTitle, Columns: []doc.Column{{}, {}, {Wrap: true}}}
	for _, e := range all {
		m := e.(describedMetric)
		for _, one := range m.Measures {
			t.Row("  "+one.Name, string(one.Better), one.About)
		}
		for _, s := range m.Settings {
			t.Row("      "+s.Key, fmt.Sprintf("= %v", s.Default), s.About)
		}
	}
	return t
}

package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"tessera/metrics"
	"tessera/part/table"
	"tessera/show/figures"
)

// metricFlags are the flags that select metrics.
type metricFlags struct {
	names []string
	svm   bool
}

func (f *metricFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.names, "metrics", nil, "metrics to measure, names or globs as in mse,max_approx* (default all quick ones); see tessera list metrics")
	cmd.Flags().BoolVar(&f.svm, "svm", false, "also classify the codes by a linear SVM, by the study's protocol and on a held-out fifth (slow)")
	_ = cmd.RegisterFlagCompletionFunc("metrics", cobra.FixedCompletions(metrics.Names(), cobra.ShellCompDirectiveNoFileComp))
}

// chosen returns the metrics of the flags; metrics that another flag adds are omitted if not applicable.
func (f *metricFlags) chosen(others ...string) (metrics.Selection, error) {
	chosen, err := selected(f.names...)
	if err != nil {
		return nil, err
	}
	if len(f.names) == 0 {
		chosen = metrics.Default()
	}
	more, err := selected(others...)
	if err != nil {
		return nil, err
	}
	for i := range more {
		more[i].Optional = true
	}
	chosen = chosen.Add(more)
	if !f.svm {
		return chosen, nil
	}
	svm, err := selected("svm", "svm_holdout")
	return chosen.Add(svm), err
}

// selected returns the named metrics; an unknown name is a usage error with a suggestion.
func selected(names ...string) (metrics.Selection, error) {
	chosen, err := metrics.Select(names...)
	var unknown *metrics.UnknownError
	if errors.As(err, &unknown) {
		return nil, usagef("--metrics: unknown %q: %s", unknown.Name, table.Suggest(unknown.Name, metrics.Names()))
	}
	return chosen, err
}

// describedMetric is one metric as `tessera list metrics` shows it.
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

// describedMetrics lists the registered metrics.
func describedMetrics() []describedMetric {
	var all []describedMetric
	for _, e := range metrics.Registry.All() {
		m := e.New()
		d := describedMetric{Name: e.Name, Settings: []metricSetting{}}
		for _, one := range m.Describe().Measures {
			d.Measures = append(d.Measures, metricMeasure{one.Name, one.Better, one.Unit, one.Summary()})
		}
		for _, s := range metrics.Settings(m) {
			d.Settings = append(d.Settings, metricSetting{s.Key, s.Want, s.Value, s.Doc})
		}
		all = append(all, d)
	}
	return all
}

// printMetrics prints a line for every measure with its name, the better direction and a description, then its settings.
func printMetrics(out io.Writer, all []describedMetric) error {
	var rows [][]string
	for _, m := range all {
		for _, one := range m.Measures {
			rows = append(rows, []string{"  " + one.Name, string(one.Better), one.About})
		}
		for _, s := range m.Settings {
			rows = append(rows, []string{"      " + s.Key, fmt.Sprintf("= %v", s.Default), s.About})
		}
	}
	_, err := io.WriteString(out, metricsTitle+"\n"+figures.Columns(rows, pageWidth(out)))
	return err
}

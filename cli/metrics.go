package cli

import (
	"errors"
	"io"

	"github.com/spf13/cobra"
	"tessera/metrics"
	"tessera/table"
)

// metricFlags say what is measured.
type metricFlags struct {
	names []string
	svm   bool
}

func (f *metricFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.names, "metrics", nil, "what is measured, by names and globs of `tessera list metrics`: mse,max_approx* (default all that are quick)")
	cmd.Flags().BoolVar(&f.svm, "svm", false, "classify the codes by a linear SVM as well; slow")
	_ = cmd.RegisterFlagCompletionFunc("metrics", cobra.FixedCompletions(metrics.Names(), cobra.ShellCompDirectiveNoFileComp))
}

// chosen are the metrics of the flags; others that a flag asks for are left out where they are not applicable.
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
	svm, err := selected("svm")
	return chosen.Add(svm), err
}

// selected are the metrics of these names; an unknown one is a usage error with a suggestion.
func selected(names ...string) (metrics.Selection, error) {
	chosen, err := metrics.Select(names...)
	var unknown *metrics.UnknownError
	if errors.As(err, &unknown) {
		return nil, usagef("--metrics: unknown %q: %s", unknown.Name, table.Suggest(unknown.Name, metrics.Names()))
	}
	return chosen, err
}

// printResult prints what was measured as a table: "-" for what is not applicable.
func printResult(out io.Writer, r *metrics.Result) error {
	t := newTable(out)
	t.row("model", r.Model)
	t.row("dataset", r.Dataset)
	t.row("images", r.Images)
	r.Each(func(key string, value any) {
		switch value.(type) {
		case nil, float64:
			t.row(key, valueText(r.Values, key))
		default: // a setting
			t.row(key, value)
		}
	})
	return t.flush()
}

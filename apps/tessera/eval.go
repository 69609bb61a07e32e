package main

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/spf13/cobra"
	"tessera"
	"tessera/metrics"
)

func evalCommand() *cobra.Command {
	var f runFlags
	var asJSON, svm bool
	cmd := &cobra.Command{
		Use:   "eval RUN",
		Short: "Measure a run on the test images",
		Long:  "Measure a run on the test images of its data set, on all images where the set has no test split.",
		RunE: work(func(cmd *cobra.Command, args []string) error {
			options, err := f.options()
			if err != nil {
				return err
			}
			r, err := tessera.Open(args[0], options)
			if err != nil {
				return err
			}
			defer r.Close()
			if length := r.Model.Train.Epochs; r.Model.Baseline == nil && r.Epoch < length && r.Model.Train.Patience == 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "tessera: %s is not finished: epoch %d of %d\n", r.Path, r.Epoch, length)
			}
			var protocol *metrics.SVMProtocol
			if svm {
				protocol = metrics.NewSVMProtocol(r.Model.Train.Seed)
			}
			measured, err := r.Evaluate(cmd.Context(), protocol)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), measured)
			}
			return printFields(cmd.OutOrStdout(), measured)
		}),
	}
	aRun(cmd)
	f.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	cmd.Flags().BoolVar(&svm, "svm", false, "classify the codes by a linear SVM as well; slow")
	return cmd
}

// printJSON prints one document.
func printJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// printFields prints a struct as a table under its JSON keys, so that tomorrow's metric is shown today.
func printFields(out io.Writer, v any) error {
	t := newTable(out)
	s := reflect.ValueOf(v).Elem()
	for i := range s.NumField() {
		key, option, _ := strings.Cut(s.Type().Field(i).Tag.Get("json"), ",")
		if option == "omitempty" && s.Field(i).IsZero() {
			continue
		}
		t.row(key, s.Field(i).Interface())
	}
	return t.flush()
}

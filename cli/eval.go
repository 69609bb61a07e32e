package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"tessera"
	"tessera/metrics"
	"tessera/morph"
)

func evalCommand() *cobra.Command {
	var f runFlags
	var asJSON, svm bool
	var o metrics.Options
	var operator string
	cmd := &cobra.Command{
		Use:     "eval RUN",
		Short:   "Measure a run on the test images",
		Long:    "Measure a run on the test images of its data set, on all images where the set has no test split.",
		Example: "  tessera eval runs/shallow-nonneg-kl --svm\n  tessera eval runs/shallow-nonneg-kl --operator opening --radius 2 --atoms",
		RunE: work(func(cmd *cobra.Command, args []string) error {
			options, err := f.options()
			if err != nil {
				return err
			}
			if o.Operator = morph.Operator(operator); operator != "" && !slices.Contains(o.Operator.Choices(), operator) {
				return usagef("--operator: unknown %q, want %s", operator, strings.Join(o.Operator.Choices(), ", "))
			}
			if cmd.Flags().Changed("radius") && o.Radius < 1 {
				return usagef("--radius: got %d, want > 0", o.Radius)
			}
			r, err := tessera.Open(args[0], options)
			if err != nil {
				return err
			}
			defer r.Close()
			if length := r.Model.Train.Epochs; r.Model.Baseline == nil && r.Epoch < length && r.Model.Train.Patience == 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "tessera: %s is not finished: epoch %d of %d\n", r.Path, r.Epoch, length)
			}
			if svm {
				o.SVM = metrics.NewSVMProtocol(r.Model.Train.Seed)
			}
			measured, err := r.Evaluate(cmd.Context(), o)
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
	cmd.Flags().BoolVar(&o.Atoms, "atoms", false, "how many atoms are used and how much they overlap as well; takes some seconds")
	cmd.Flags().StringVar(&operator, "operator", "", "of the max-approximation: dilation (default), erosion, opening, closing")
	cmd.Flags().IntVar(&o.Radius, "radius", 0, "of its disk, in pixels (default 1)")
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

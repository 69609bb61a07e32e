package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"tessera"
	"tessera/data"
	"tessera/metrics"
	"tessera/morph"
)

func evalCommand() *cobra.Command {
	var f evalFlags
	cmd := &cobra.Command{
		Use:   "eval RUN",
		Short: "Measure a run on the test images, or on another split",
		Long: "Measure a run on the test images of its data set, or on all images if the set has no test split. --split validation measures " +
			"the images that the training held out: choose settings by these. --split train measures the fitted images.",
		Example: "  tessera eval runs/shallow-nonneg-kl --svm\n  tessera eval runs/classifier --split validation\n  tessera eval runs/shallow-nonneg-kl --operator opening --radius 2 --atoms",
		RunE: work(func(cmd *cobra.Command, args []string) error {
			options, err := f.options()
			if err != nil {
				return err
			}
			if err := data.Split(f.split).Check(); err != nil {
				return usagef("--split: %v", err)
			}
			chosen, err := f.chosen(cmd)
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
			measured, err := r.EvaluateOn(cmd.Context(), data.Split(f.split), chosen)
			if err != nil {
				return err
			}
			if f.json {
				return printJSON(cmd.OutOrStdout(), measured)
			}
			return printResult(cmd.OutOrStdout(), measured)
		}),
	}
	aRun(cmd)
	f.runFlags.add(cmd)
	f.metricFlags.add(cmd)
	addSplitFlag(cmd, &f.split)
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON document")
	cmd.Flags().BoolVar(&f.atoms, "atoms", false, "also measure how many atoms are used and how much they overlap; takes several seconds")
	cmd.Flags().StringVar(&f.operator, "operator", "", "operator of the max-approximation: dilation, erosion, opening or closing (default dilation)")
	cmd.Flags().IntVar(&f.radius, "radius", 0, "radius of the operator's element in pixels (default 1)")
	cmd.Flags().StringVar(&f.element, "element", "", "its structuring element: disk, square, row, column, or rows of 0 and 1 as in \"010 111 010\" (default disk)")
	return cmd
}

// addSplitFlag adds --split.
func addSplitFlag(cmd *cobra.Command, split *string) {
	cmd.Flags().StringVar(split, "split", string(data.TestSplit), "images that are measured: "+strings.Join(data.SplitNames(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("split", cobra.FixedCompletions(data.SplitNames(), cobra.ShellCompDirectiveNoFileComp))
}

// evalFlags are the flags of eval.
type evalFlags struct {
	runFlags
	metricFlags
	split    string
	json     bool
	atoms    bool
	operator string
	element  string
	radius   int
}

// chosen returns the metrics of the flags, with their settings.
func (f *evalFlags) chosen(cmd *cobra.Command) (metrics.Selection, error) {
	if choices := morph.Operator("").Choices(); f.operator != "" && !slices.Contains(choices, f.operator) {
		return nil, usagef("--operator: unknown %q, want %s", f.operator, strings.Join(choices, ", "))
	}
	if cmd.Flags().Changed("radius") && f.radius < 1 {
		return nil, usagef("--radius: got %d, want > 0", f.radius)
	}
	if err := morph.Element(f.element).Check(); err != nil {
		return nil, usagef("--element: %v", err)
	}
	var others []string
	if f.atoms {
		others = []string{"hoyer_atoms_dilated", "used_units", "jaccard"}
	}
	chosen, err := f.metricFlags.chosen(others...)
	if err != nil {
		return nil, err
	}
	if f.operator != "" {
		if err := chosen.Set("operator", f.operator); err != nil {
			return nil, usageError{err}
		}
	}
	if f.element != "" {
		if err := chosen.Set("element", f.element); err != nil {
			return nil, usageError{err}
		}
	}
	if f.radius > 0 {
		if err := chosen.Set("radius", f.radius); err != nil {
			return nil, usageError{err}
		}
	}
	return chosen, nil
}

// printJSON prints one document.
func printJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

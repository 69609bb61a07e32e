package cli

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"tessera"
	"tessera/data"
	"tessera/metrics"
	"tessera/posthoc"
)

func calibrateCommand() *cobra.Command {
	var f calibrateFlags
	cmd := &cobra.Command{
		Use:   "calibrate RUN",
		Short: "Calibrate the probabilities of a classifier",
		Long: "Fit a calibration of a classifier to the images that were held out for validation (validation of the data set), and keep it in the run. " +
			"eval, predict, serve, export, figures and reports apply it from then on and say so. The table compares accuracy, nll, ece and the Brier score before " +
			"and after, on the validation images, to which the calibration was fitted, and on the test images.\n\n" +
			"temperature divides all logits by one number and keeps every prediction. platt and isotonic have more freedom, need more images and may change " +
			"predictions. A training that continues makes the calibration invalid: fit it again.",
		Example: "  tessera calibrate runs/classifier\n  tessera calibrate runs/classifier --method isotonic\n  tessera calibrate runs/classifier --remove",
		RunE:    work(func(cmd *cobra.Command, args []string) error { return f.calibrate(cmd, args[0]) }),
	}
	aRun(cmd)
	f.add(cmd)
	addChoice(cmd, &f.method, "method", posthoc.Methods()[0], posthoc.Methods(), "how probabilities are calibrated")
	cmd.Flags().StringVar(&f.head, "head", "", "head that is calibrated, for models with several classifiers")
	cmd.Flags().BoolVar(&f.remove, "remove", false, "remove all calibrations of the run, and its thresholds")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON document")
	return cmd
}

// calibrateFlags contains the flags of the command calibrate.
type calibrateFlags struct {
	runFlags
	method, head string
	remove, json bool
}

func (f *calibrateFlags) calibrate(cmd *cobra.Command, run string) error {
	options, err := f.options()
	if err != nil {
		return err
	}
	options.Raw = f.remove // what is there may be damaged
	r, err := tessera.Open(run, options)
	if isPostHoc(err) { // replaced
		warn(cmd, err.Error()+"; it is replaced")
		options.Raw = true
		r, err = tessera.Open(run, options)
	}
	if err != nil {
		return err
	}
	defer r.Close()
	if f.remove {
		return r.RemovePostHoc()
	}
	if heads := r.ClassHeads(); f.head != "" && len(heads) > 0 && !slices.Contains(heads, f.head) || f.head == "" && len(heads) > 1 {
		return usagef("--head: got %q, want one of %q", f.head, heads)
	}
	done, err := r.Calibrate(cmd.Context(), f.head, f.method)
	if err != nil {
		return err
	}
	if f.json {
		return printJSON(cmd.OutOrStdout(), done)
	}
	return printCalibrated(cmd.OutOrStdout(), done)
}

// printCalibrated prints the calibration, and for each split one column before and one after the calibration.
func printCalibrated(out io.Writer, c *tessera.Calibrated) error {
	fmt.Fprintf(out, "%s: %s, fitted to %d %s images\n", c.Head, c.Calibration, c.Calibration.Samples, c.Calibration.Split)
	var names []string
	for _, v := range c.On[0].Before {
		names = append(names, v.Name)
	}
	var splits []changedSplit
	for _, on := range c.On {
		splits = append(splits, changedSplit{on.Split, on.Fitted, on.Before, on.After})
	}
	return printChanges(out, names, splits)
}

// changedSplit contains the metrics of a split before and after a change of the run's predictions.
type changedSplit struct {
	split         data.Split
	fitted        bool // the change was fitted to this split
	before, after metrics.Values
}

// printChanges prints the named metrics, and for each split one column before and one after the change.
func printChanges(out io.Writer, names []string, splits []changedSplit) error {
	t := newTable(out)
	first, second := []any{""}, []any{""}
	for _, on := range splits {
		split := string(on.split)
		if on.fitted {
			split += " (fitted)"
		}
		first, second = append(first, split, ""), append(second, "before", "after")
	}
	t.row(first...)
	t.row(second...)
	for _, name := range names {
		row := []any{name}
		for _, on := range splits {
			row = append(row, valueText(on.before, name), valueText(on.after, name))
		}
		t.row(row...)
	}
	return t.flush()
}

package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"tessera"
	"tessera/posthoc"
)

func thresholdsCommand() *cobra.Command {
	var f thresholdsFlags
	cmd := &cobra.Command{
		Use:   "thresholds RUN",
		Short: "Fit thresholds by group to a classifier",
		Long: "Fit thresholds of a classifier's decisions for each group of a column, so that the decisions fulfil a criterion of fairness, to the samples that were held " +
			"out for validation (validation of the data set), and keep them in the run. predict and the metric fairness decide by them from then on and say so.\n\n" +
			"separation: false positive and true positive rate are equal in all groups; decisions are randomised where a group could do better than the others. " +
			"opportunity: the true positive rate is. independence: the rate of positive decisions is. accuracy: each group has the threshold that is best for it.",
		Example: "  tessera thresholds runs/credit --criterion separation\n  tessera thresholds runs/credit --criterion independence --group sex --positive repaid\n" +
			"  tessera thresholds runs/credit --remove",
		RunE: work(func(cmd *cobra.Command, args []string) error { return f.thresholds(cmd, args[0]) }),
	}
	aRun(cmd)
	f.add(cmd)
	addChoice(cmd, &f.criterion, "criterion", posthoc.Criteria()[0], posthoc.Criteria(), "what is equal in all groups")
	cmd.Flags().StringVar(&f.column, "group", "group", "column of the groups")
	cmd.Flags().StringVar(&f.positive, "positive", "1", "the positive class, its name or its number")
	cmd.Flags().StringVar(&f.head, "head", "", "head that decides, for models with several classifiers")
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "seed of randomised decisions")
	cmd.Flags().BoolVar(&f.remove, "remove", false, "remove all thresholds of the run; calibrations stay")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON document")
	return cmd
}

// thresholdsFlags contains the flags of the command thresholds.
type thresholdsFlags struct {
	runFlags
	criterion, column, positive, head string
	seed                              uint64
	remove, json                      bool
}

func (f *thresholdsFlags) thresholds(cmd *cobra.Command, run string) error {
	r, err := f.open(run)
	if err != nil {
		return err
	}
	defer r.Close()
	if f.remove {
		return r.RemoveThresholds()
	}
	heads := r.ClassHeads()
	switch {
	case len(heads) == 0:
		return fmt.Errorf("%s: %w", run, tessera.ErrNoClasses)
	case f.head == "" && len(heads) == 1:
		f.head = heads[0]
	case !slices.Contains(heads, f.head):
		return usagef("--head: got %q, want one of %q", f.head, heads)
	}
	names := r.HeadClasses(f.head)
	positive := slices.Index(names, f.positive)
	if n, err := strconv.Atoi(f.positive); positive < 0 && err == nil && n >= 0 && n < len(names) {
		positive = n
	}
	if positive < 0 {
		return usagef("--positive: got %q, want one of the classes: %s", f.positive, strings.Join(names, ", "))
	}
	done, err := r.FitThresholds(cmd.Context(), tessera.ThresholdOptions{Head: f.head, Criterion: f.criterion, Column: f.column, Positive: positive, Seed: f.seed})
	if err != nil {
		return err
	}
	for _, g := range slices.Sorted(maps.Keys(done.Thresholds.Groups)) {
		if n := done.Thresholds.Groups[g].Samples; n < 30 {
			warn(cmd, fmt.Sprintf("group %s has %d validation samples: its thresholds say little", groupName(done.Thresholds, g), n))
		}
	}
	if f.json {
		return printJSON(cmd.OutOrStdout(), done)
	}
	return printThresholds(cmd.OutOrStdout(), done, names[positive])
}

// groupName returns the name of a group, or its number if it has no name.
func groupName(t *posthoc.Thresholds, group string) string {
	if n, err := strconv.Atoi(group); err == nil && n < len(t.Names) {
		return t.Names[n]
	}
	return group
}

// printThresholds prints the decision rule of each group, and the gaps and the accuracy before and after.
func printThresholds(out io.Writer, d *tessera.Decided, positive string) error {
	t := d.Thresholds
	fmt.Fprintf(out, "%s: %s for %q by %s, fitted to %d %s samples\n", d.Head, t.Criterion, positive, t.Column, t.Samples, t.Split)
	for _, g := range slices.Sorted(maps.Keys(t.Groups)) {
		var steps []string
		for _, s := range t.Groups[g].Steps {
			text := fmt.Sprintf("p >= %.4f", s.Threshold)
			if s.Probability < 1-1e-9 {
				text += fmt.Sprintf(" with probability %.4f", s.Probability)
			}
			steps = append(steps, text)
		}
		if steps == nil {
			steps = []string{"never"}
		}
		fmt.Fprintf(out, "  %s: %s\n", groupName(t, g), strings.Join(steps, ", "))
	}
	var splits []changedSplit
	for _, on := range d.On {
		splits = append(splits, changedSplit{on.Split, on.Fitted, on.Before.Values, on.After.Values})
	}
	return printChanges(out, []string{"decision_accuracy", "selection_rate_gap", "false_positive_rate_gap", "false_negative_rate_gap", "precision_gap",
		"false_omission_rate_gap"}, splits)
}

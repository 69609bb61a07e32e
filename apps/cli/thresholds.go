package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tessera"
	"tessera/posthoc"
	"tessera/posthoc/refit"
)

func init() {
	Commands.Register("thresholds", "Fit thresholds by group to a classifier", func() Command {
		return &thresholdsCommand{runFlags: forRuns(), Criterion: criterion(posthoc.Criteria()[0]), Column: "group", Positive: "1", Seed: 1}
	})
}

// criterion is the name of a criterion of fairness.
type criterion string

// Choices lists the criteria.
func (criterion) Choices() []string { return posthoc.Criteria() }

// thresholdsCommand is the command thresholds.
type thresholdsCommand struct {
	Folder string `arg:"RUN" is:"folder" doc:"the folder of a run"`
	runFlags
	jsonFlag
	Criterion criterion `flag:"criterion" doc:"what is equal in all groups"`
	Column    string    `flag:"group" doc:"column of the groups"`
	Positive  string    `flag:"positive" doc:"the positive class, its name or its number"`
	Head      string    `flag:"head" doc:"head that decides, for models with several classifiers"`
	Seed      uint64    `flag:"seed" doc:"seed of randomised decisions"`
	Remove    bool      `flag:"remove" doc:"remove all thresholds of the run; calibrations stay"`
}

func (f *thresholdsCommand) Help() Help {
	return Help{
		Long: "Fit thresholds of a classifier's decisions for each group of a column, so that the decisions fulfil a criterion of fairness, to the samples that were held " +
			"out for validation (validation of the data set), and keep them in the run. predict and the metric fairness decide by them from then on and say so.\n\n" +
			"separation: false positive and true positive rate are equal in all groups; decisions are randomised where a group could do better than the others. " +
			"opportunity: the true positive rate is. independence: the rate of positive decisions is. accuracy: each group has the threshold that is best for it.",
		Examples: []string{"tessera thresholds runs/credit --criterion separation", "tessera thresholds runs/credit --criterion independence --group sex --positive repaid",
			"tessera thresholds runs/credit --remove"},
	}
}

func (f *thresholdsCommand) Do(cmd *Call) error {
	run := f.Folder
	r, err := f.open(run)
	if err != nil {
		return err
	}
	defer r.Close()
	if f.Remove {
		return refit.RemoveThresholds(r)
	}
	heads := r.ClassHeads()
	switch {
	case len(heads) == 0:
		return fmt.Errorf("%s: %w", run, tessera.ErrNoClasses)
	case f.Head == "" && len(heads) == 1:
		f.Head = heads[0]
	case !slices.Contains(heads, f.Head):
		return usagef("--head: got %q, want one of %q", f.Head, heads)
	}
	names := r.HeadClasses(f.Head)
	positive := slices.Index(names, f.Positive)
	if n, err := strconv.Atoi(f.Positive); positive < 0 && err == nil && n >= 0 && n < len(names) {
		positive = n
	}
	if positive < 0 {
		return usagef("--positive: got %q, want one of the classes: %s", f.Positive, strings.Join(names, ", "))
	}
	done, err := refit.Thresholds(cmd.Context(), r, refit.ThresholdOptions{Head: f.Head, Criterion: string(f.Criterion), Column: f.Column, Positive: positive, Seed: f.Seed})
	if err != nil {
		return err
	}
	for _, g := range slices.Sorted(maps.Keys(done.Thresholds.Groups)) {
		if n := done.Thresholds.Groups[g].Samples; n < 30 {
			warn(cmd, fmt.Sprintf("group %s has %d validation samples: its thresholds say little", groupName(done.Thresholds, g), n))
		}
	}
	if f.JSON {
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
func printThresholds(out io.Writer, d *refit.Decided, positive string) error {
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

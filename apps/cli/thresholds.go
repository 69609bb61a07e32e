package cli

import (
	"fmt"
	"slices"

	"tessera"
	"tessera/apps/show"
	"tessera/config/part/table"
	"tessera/metrics"
	"tessera/posthoc"
	"tessera/posthoc/refit"
)

func init() {
	Commands.Register("thresholds", "Fit thresholds by group to a classifier", func() Command {
		return &thresholdsCommand{runFlags: forRuns(), Criterion: criterion(posthoc.Criteria()[0]), Column: "group", Positive: "1", Seed: 1}
	})
}

type criterion string

func (criterion) Choices() []string { return posthoc.Criteria() }

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
		return usagef("--head: got %q, want one of %s", f.Head, table.Quoted(heads))
	}
	names := r.HeadClasses(f.Head)
	positive, err := metrics.ClassName(f.Positive).Among(names, len(names))
	if err != nil {
		return usagef("--%v", err)
	}
	done, err := refit.Thresholds(cmd.Context(), r, refit.ThresholdOptions{Head: f.Head, Criterion: string(f.Criterion), Column: f.Column, Positive: positive, Seed: f.Seed})
	if err != nil {
		return err
	}
	return cmd.Show(show.Decided(done, names[positive]), f.JSON)
}

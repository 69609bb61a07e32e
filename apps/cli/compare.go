package cli

import (
	"errors"
	"fmt"

	"tessera/apps/show/comparison"
	"tessera/apps/show/page"
)

func init() {
	Commands.Register("compare", "Put runs side by side: settings, metrics, atoms", func() Command { return &compareCommand{pageFlags: forPages()} })
}

type compareCommand struct {
	pageFlags
	jsonFlag
	Out string `flag:"out,o" is:"output" doc:"write an HTML file with the matched atoms in pairs, instead of printing"`
}

func (f *compareCommand) Help() Help {
	return Help{
		Long: "Print the settings that differ between runs, their metrics side by side, and the similarity of their atoms. A sweep stands for its " +
			"finished trials. Held-out images are measured, or the fitted ones where none are held out; the table says which. Runs that differ by " +
			"their seed alone are one column: mean and standard deviation over the seeds. With two or more common seeds, the difference from the " +
			"reference is printed with its 95 % interval, paired by seed. svm_holdout_accuracy and linear_probe_accuracy of one seed are paired by their splits. " +
			"A difference is shown if its p-value is below 0.05 after Holm's correction for all comparisons of the table, whose number is printed. " +
			"A sweep alone is compared by its stored results, as on its page, unless --metrics, --with, --svm or --split measure it again.",
		Examples: []string{"tessera compare runs/parts-1 runs/parts-2 runs/nmf-1 runs/nmf-2", "tessera compare sweeps/units", "tessera compare runs/a runs/b --metrics mse,hoyer_contribution --json",
			"tessera compare runs/a runs/b -o comparison.html"},
	}
}

func (f *compareCommand) Do(cmd *Call) error {
	runs := f.Runs
	o, err := f.measuring(f.Out)
	if err != nil {
		return err
	}
	if !f.given() {
		o.Metrics = nil
	}
	t, err := comparison.Compare(cmd.Context(), runs, comparison.Options{Split: o.Split, Metrics: o.Metrics, Reference: o.Reference, Open: o.Open})
	if errors.Is(err, comparison.ErrUnknown) {
		return usageError{fmt.Errorf("--reference: %w", err)}
	} else if errors.Is(err, comparison.ErrTooFew) || errors.Is(err, comparison.ErrRepeated) {
		return usageError{fmt.Errorf("compare: %w", err)}
	} else if err != nil {
		return err
	}
	if f.Out != "" {
		to := cmd.OutOrStdout()
		if f.JSON { // which is one document
			to = cmd.ErrOrStderr()
		}
		if err := writePage(to, f.Out, (&page.Comparison{Table: t}).Write); err != nil || !f.JSON {
			return err
		}
	}
	return answer(cmd, t.Document(), f.JSON)
}

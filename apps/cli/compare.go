package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"tessera/apps/show/comparison"
	"tessera/apps/show/page"
	"tessera/metrics"
)

func init() {
	Commands.Register("compare", "Put runs side by side: settings, metrics, atoms", func() Command { return &compareCommand{pageFlags: forPages()} })
}

// compareCommand is the command compare.
type compareCommand struct {
	pageFlags
	jsonFlag
	Out string `flag:"out,o" is:"file" doc:"write an HTML file with the matched atoms in pairs, instead of printing"`
}

// Help implements [Command].
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

// Do implements [Command].
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
	if f.JSON {
		return printJSON(cmd.OutOrStdout(), t)
	}
	return printComparison(cmd.OutOrStdout(), t)
}

// printComparison prints the models, the settings that differ, the metrics and the atoms.
func printComparison(out io.Writer, c *comparison.Table) error {
	t := newTable(out)
	t.row("", "model", "measured on", "runs")
	for _, m := range c.Models {
		images := fmt.Sprintf("%s, %s, %d %s", m.Dataset, m.Split, m.Images, m.Counted)
		if m.Note != "" {
			images += " (" + m.Note + ")"
		}
		t.row(m.Label, m.Name, images, strings.Join(m.Runs, " "))
	}
	if len(c.Settings) > 0 {
		t.row()
		t.row(cells([]string{"setting"}, labels(c))...)
		for _, s := range c.Settings {
			var values []string
			for _, v := range s.Values {
				values = append(values, shortened(cmp.Or(v, "-"), longestSetting))
			}
			t.row(cells([]string{s.Key}, values)...)
		}
	}
	if err := t.flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	if len(c.With) > 0 {
		fmt.Fprintf(out, "measured with %s\n\n", strings.Join(c.With, ", "))
	}
	if err := printMetricRows(out, c); err != nil {
		return err
	}
	return printAgreements(out, c)
}

// longestSetting is the largest width of a cell with a setting, in characters; lists of layers would be longer.
const longestSetting = 40

func labels(c *comparison.Table) []string {
	var list []string
	for _, m := range c.Models {
		list = append(list, m.Label)
	}
	return list
}

// printMetricRows prints a row for each metric, with the differences from the first model.
func printMetricRows(out io.Writer, c *comparison.Table) error {
	t := newTable(out)
	head := cells([]string{"metric", "better"}, labels(c))
	for _, m := range c.Models {
		if m.Against != "" {
			head = append(head, fmt.Sprintf("%s - %s (95 %%)", m.Label, m.Against))
		}
	}
	t.row(head...)
	for _, row := range c.Metrics {
		line := cells([]string{row.Name, string(row.Better)})
		for _, cell := range row.Cells {
			if line = append(line, cell.String()); cell.Best {
				line[len(line)-1] = cell.String() + " *"
			}
		}
		for i, cell := range row.Cells {
			switch {
			case cell.Paired != nil:
				line = append(line, cell.Paired.String())
			case c.Models[i].Against != "":
				line = append(line, "-")
			}
		}
		t.row(line...)
	}
	if err := t.flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\n%s\n", c.Words())
	return err
}

// printAgreements prints the similarity of atoms: the mean cosine of matched atoms and its value by chance.
func printAgreements(out io.Writer, c *comparison.Table) error {
	t := newTable(out)
	headed := false
	row := func(what string, a *metrics.Agreement) {
		if a == nil {
			return
		}
		if !headed {
			t.row()
			t.row("atoms of", "matched cosine", "by chance", "Amari distance")
			headed = true
		}
		t.row(what, number(a.Matched), number(a.Permuted), number(a.Amari))
	}
	for _, m := range c.Models {
		row(fmt.Sprintf("%s, between its seeds", m.Label), m.Seeded)
		row(fmt.Sprintf("%s and %s", c.Reference().Label, m.Label), m.First)
	}
	if err := t.flush(); err != nil || !headed {
		return err
	}
	for _, m := range c.Models {
		if m.Unused != nil {
			counts := strings.Trim(strings.ReplaceAll(fmt.Sprint(m.Unused), " ", ", "), "[]")
			fmt.Fprintf(out, "%s: %s of %d atoms are not matched, because their units do not contribute (dead_units_contribution)\n", m.Label, counts, m.Atoms().Count)
		}
	}
	return nil
}

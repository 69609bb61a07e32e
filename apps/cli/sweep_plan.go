package cli

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"tessera/config"
	"tessera/data"
	"tessera/sweep"
)

// planFlags are the flags of sweep --plan.
type planFlags struct {
	plan, json bool
	cores      []string
}

func (f *planFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.plan, "plan", false, "estimate the time and the memory of the sweep by a few steps of each shape, without training it")
	cmd.Flags().StringSliceVar(&f.cores, "cores", nil, "with --plan: the cores of the sweep, one number per machine as in 16 or 8,8,4 (default --jobs)")
	cmd.Flags().BoolVar(&f.json, "json", false, "with --plan: print JSON")
}

// machines are the cores of each machine.
func (f *planFlags) machines(jobs int) ([]int, error) {
	if len(f.cores) > 0 && !f.plan || f.json && !f.plan {
		return nil, usagef("--cores, --json: need --plan")
	}
	if len(f.cores) == 0 {
		return []int{jobs}, nil
	}
	var all []int
	for _, text := range f.cores {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 || n > mostCores {
			return nil, usagef("--cores: got %q, want numbers from 1 to %d", text, mostCores)
		}
		all = append(all, n)
	}
	return all, nil
}

// mostCores bounds the cores of one machine: more are probably a typo.
const mostCores = 1 << 16

// estimate prints the plan of a sweep.
func (f *sweepFlags) estimate(cmd *cobra.Command, spec *config.Sweep, cores []int) error {
	chosen, err := f.chosen()
	if err != nil {
		return err
	}
	jobs := min(f.jobs, runtime.GOMAXPROCS(0))
	s, err := sweep.New(cmd.Context(), spec, sweep.Options{Dirs: data.SearchDirs(f.data), Out: f.out, Jobs: jobs, Metrics: chosen})
	if err != nil {
		return err
	}
	p, err := s.Plan(cmd.Context(), sweep.PlanOptions{Cores: cores, Report: func(shape, of int) {
		if !f.quiet {
			fmt.Fprintf(cmd.ErrOrStderr(), "timing shape %d of %d\n", shape, of)
		}
	}})
	if err != nil {
		return err
	}
	if f.cost.json {
		return printJSON(cmd.OutOrStdout(), p)
	}
	return printPlan(cmd.OutOrStdout(), s, p)
}

// printPlan prints a plan: the shapes, the models, the totals and what was assumed.
func printPlan(out io.Writer, s *sweep.Sweep, p *sweep.Plan) error {
	fmt.Fprintf(out, "sweep %s: %s", p.Sweep, counted(p.Trials, "trial"))
	if p.Done > 0 {
		fmt.Fprintf(out, ", %d of them done", p.Done)
	}
	fmt.Fprintf(out, "\ntimed on %s: %s, %d at once\n\n", p.Machine, counted(len(p.PerShape), "shape"), p.AtOnce)
	t := newTable(out)
	t.row(cells([]string{"model"}, s.Keys, []string{"trials", "step", "epoch", "evaluation", "trial", "memory"})...)
	for _, one := range p.PerShape {
		name := one.Models[0]
		if others := len(one.Models) - 1; others > 0 {
			name += fmt.Sprintf(" and %d more", others)
		}
		costs := []string{brief(one.Step), brief(one.Epoch), brief(one.Evaluation), brief(one.Trial), mebibytes(one.Memory)}
		t.row(cells([]string{name}, one.Values, []string{fmt.Sprint(one.Trials)}, costs)...)
	}
	if err := t.flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	t = newTable(out)
	t.row("model", "trials", "on one core")
	for _, m := range p.PerModel {
		t.row(m.Model, m.Trials, lasting(m.Work))
	}
	if len(p.PerModel) > 1 {
		t.row("all", p.Trials-p.Done, lasting(p.Work))
	}
	if err := t.flush(); err != nil {
		return err
	}
	return printTotals(out, p)
}

// printTotals prints the time on the given cores and the memory of each machine.
func printTotals(out io.Writer, p *sweep.Plan) error {
	total := 0
	for _, n := range p.Cores {
		total += n
	}
	fmt.Fprintf(out, "\n%s on %s; the longest trial takes %s\n", lasting(p.Seconds), counted(total, "core"), lasting(p.Longest))
	seen := map[int]bool{}
	for i, n := range p.Cores {
		if !seen[n] {
			seen[n] = true
			fmt.Fprintf(out, "%s of memory on a machine with %s, %s of it before the first trial\n",
				mebibytes(p.Memory[i]), counted(n, "core"), mebibytes(p.Images))
		}
	}
	fmt.Fprintln(out, "\nassumed:")
	for _, line := range slices.Sorted(slices.Values(p.Assumes)) {
		fmt.Fprintln(out, "- "+line)
	}
	return nil
}

// brief prints the seconds of a step or an epoch with three digits.
func brief(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	digits := time.Duration(1)
	for d/digits >= 1000 {
		digits *= 10
	}
	return d.Round(digits).String()
}

// lasting prints the seconds of a sweep in hours, minutes or seconds.
func lasting(seconds float64) string {
	switch {
	case seconds >= 2*3600:
		return fmt.Sprintf("%.3g hours", seconds/3600)
	case seconds >= 120:
		return fmt.Sprintf("%.3g minutes", seconds/60)
	}
	return fmt.Sprintf("%.3g seconds", seconds)
}

// mebibytes prints a size.
func mebibytes(n int64) string {
	if n >= 10<<30 {
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

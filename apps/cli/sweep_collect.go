package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"tessera/internal/regular"
	"tessera/internal/shell"
	"tessera/sweep"
	"tessera/sweep/scheduler"
)

// gather collects the trials of an array job and prints the results.
func (f *sweepFlags) gather(cmd *cobra.Command, name string) error {
	dir := f.array.collect
	m, err := manifest(dir)
	if err != nil {
		return err
	}
	if m.Sweep != name {
		return usagef("--collect: %s has the trials of sweep %q, not of %q", dir, m.Sweep, name)
	}
	s, err := declaredAgain(cmd, dir, f.data, m, sweep.Options{Jobs: f.jobs, Clean: f.clean})
	if err != nil {
		return err
	}
	results, all, err := s.Collect(cmd.Context())
	var failed *sweep.Failed
	if err != nil && !errors.As(err, &failed) {
		return err
	}
	if err := f.census(cmd, s, m, all); err != nil {
		return err
	}
	if ended := func(g sweep.Gathered) bool { return g.State == sweep.Done || g.State == sweep.Broken }; slices.ContainsFunc(all, ended) {
		if err := printResults(cmd.OutOrStdout(), s, results); err != nil {
			return err
		}
	}
	left := slices.DeleteFunc(slices.Clone(all), func(g sweep.Gathered) bool { return g.State == sweep.Done })
	if len(left) > 0 {
		return incomplete{fmt.Errorf("%s: %d of %d trials are not done", dir, len(left), len(all))}
	}
	return nil
}

// census prints how many trials are in which state, those that are not done, and how to run them.
func (f *sweepFlags) census(cmd *cobra.Command, s *sweep.Sweep, m *sweep.Manifest, all []sweep.Gathered) error {
	out := cmd.ErrOrStderr()
	count := map[sweep.State]int{}
	for _, g := range all {
		count[g.State]++
	}
	var counts []string
	for _, state := range []sweep.State{sweep.Done, sweep.Running, sweep.Begun, sweep.Waiting, sweep.Broken, sweep.Refused} {
		if n := count[state]; n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, state))
		}
	}
	fmt.Fprintf(out, "sweep %s: %s: %s\n", spelled(s.Path), counted(len(all), "trial"), strings.Join(counts, ", "))
	warnOfKernels(cmd, all)
	if count[sweep.Done] == len(all) {
		return nil
	}
	t := newTable(out)
	if waiting := count[sweep.Waiting]; waiting <= mostListed || count[sweep.Done]+waiting < len(all) {
		t.row("task", "trial", "state", "epochs")
	}
	var again []int
	for _, g := range all {
		index := g.Index / m.PerTask
		if g.State != sweep.Done && (g.State != sweep.Waiting || count[sweep.Waiting] <= mostListed) {
			t.row(index, g.Trial.ID, string(g.State), g.Epoch, spelled(g.Problem))
		}
		if g.State != sweep.Done && g.State != sweep.Running && (len(again) == 0 || again[len(again)-1] != index) {
			again = append(again, index)
		}
	}
	if err := t.flush(); err != nil {
		return err
	}
	for _, line := range repeat(s.Path, m, again) {
		fmt.Fprintln(out, "run again:", line)
	}
	return nil
}

// mostListed bounds the list of trials of which nothing but their number is worth knowing.
const mostListed = 20

// warnOfKernels warns if the trials were trained by different kernels: the last bits depend on them.
func warnOfKernels(cmd *cobra.Command, all []sweep.Gathered) {
	counts := map[string]int{}
	var names []string
	for _, g := range all {
		if g.Kernel == "" {
			continue
		}
		if counts[g.Kernel]++; counts[g.Kernel] == 1 {
			names = append(names, g.Kernel)
		}
	}
	if len(names) < 2 {
		return
	}
	for i, name := range names {
		names[i] = fmt.Sprintf("%s (%s)", name, counted(counts[name], "trial"))
	}
	warn(cmd, "the trials were trained with different kernels: "+strings.Join(names, ", ")+"; their last bits differ from those of one machine")
}

// repeat are the commands that run indices again.
func repeat(dir string, m *sweep.Manifest, indices []int) (lines []string) {
	job := scheduler.Job{Tasks: m.Tasks(), PerJob: m.PerJob}
	arrays, limits, scripts := map[string][]int{}, map[string]string{}, []string{}
	for _, index := range indices {
		name := job.Script(index)
		text, err := regular.ReadFile(filepath.Join(dir, name))
		if err != nil {
			lines = append(lines, fmt.Sprintf("tessera trial %s %d", shell.Word(dir), index))
			continue
		}
		if arrays[name] == nil {
			scripts, limits[name] = append(scripts, name), scheduler.Limit(string(text))
		}
		arrays[name] = append(arrays[name], index%m.PerJob)
	}
	for _, name := range scripts {
		lines = append(lines, fmt.Sprintf("sbatch --array=%s%s %s", ranges(arrays[name]), limits[name], shell.Word(filepath.Join(dir, name))))
	}
	return lines
}

// ranges prints ascending numbers as 0-3,5.
func ranges(numbers []int) string {
	var parts []string
	for i := 0; i < len(numbers); {
		end := i
		for end+1 < len(numbers) && numbers[end+1] == numbers[end]+1 {
			end++
		}
		part := strconv.Itoa(numbers[i])
		if end > i {
			part += "-" + strconv.Itoa(numbers[end])
		}
		parts = append(parts, part)
		i = end + 1
	}
	return strings.Join(parts, ",")
}

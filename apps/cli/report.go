package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"tessera/data"
	"tessera/internal/atomicfile"
	"tessera/show/page"
	"tessera/sweep"
	"tessera/train/folder"
)

func reportCommand() *cobra.Command {
	var f reportFlags
	cmd := &cobra.Command{
		Use:   "report RUN... | SWEEP",
		Short: "Write runs, or a sweep, as one HTML file",
		Long: "Write one HTML file that opens without a network: what was trained and how it ended, curves, atoms and how they are used, " +
			"reconstructions, codes, classifications, every setting, and the commands that make it again. For a sweep: a table that sorts and " +
			"filters, plots of any two metrics, and the atoms of every trial. Runs are measured on test images; without any, on images that " +
			"the training held out, else on all images. The page says which.",
		Example: "  tessera report runs/parts -o parts.html\n  tessera report sweeps/table1 -o table1.html",
		Args:    atLeast(1, "run or sweep"),
		RunE:    work(func(cmd *cobra.Command, args []string) error { return f.report(cmd, args) }),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	f.runFlags.add(cmd)
	f.metricFlags.add(cmd)
	cmd.Flags().StringVarP(&f.out, "out", "o", "report.html", "file that is written")
	addSplitFlag(cmd, &f.split, "")
	return cmd
}

// reportFlags are those of report.
type reportFlags struct {
	runFlags
	metricFlags
	out, split string
}

func (f *reportFlags) report(cmd *cobra.Command, paths []string) error {
	o := page.Options{Split: data.Split(f.split)}
	if f.split != "" {
		if err := o.Split.Check(); err != nil {
			return usagef("--split: %v", err)
		}
	}
	var err error
	if o.Open, err = f.options(); err != nil {
		return err
	}
	if o.Metrics, err = f.chosen(); err != nil {
		return err
	}
	if err := refuseFolder(f.out); err != nil {
		return err
	}
	for _, path := range paths {
		if err := findFolder(path); err != nil {
			return err
		}
	}
	write, err := f.read(cmd, paths, o)
	if err != nil {
		return err
	}
	return writePage(cmd, f.out, write)
}

// read reads runs or a sweep and returns what writes its page.
func (f *reportFlags) read(cmd *cobra.Command, paths []string, o page.Options) (func(io.Writer) error, error) {
	if sweep.Is(paths[0]) {
		if len(paths) > 1 {
			return nil, usagef("report: %s is a sweep; give it alone (got %d folders)", paths[0], len(paths))
		}
		s, err := page.ReadSweep(cmd.Context(), paths[0], o)
		if err != nil {
			return nil, err
		}
		return s.Write, nil
	}
	r := &page.Report{}
	for _, path := range paths {
		one, err := page.ReadRun(cmd.Context(), path, o)
		if err != nil {
			return nil, err
		}
		if one.Missing != "" {
			warn(cmd, fmt.Sprintf("%s: nothing was measured: %s", path, one.Missing))
		}
		r.Runs = append(r.Runs, one)
	}
	return r.Write, nil
}

// writePage writes a page to a file and prints its path.
func writePage(cmd *cobra.Command, out string, write func(io.Writer) error) error {
	if err := atomicfile.Write(out, write); err != nil {
		return pageError(out, err)
	}
	fmt.Fprintln(cmd.OutOrStdout(), "report", out)
	return nil
}

// pageError is the error of a page that could not be written.
func pageError(out string, err error) error {
	var written *folder.WriteError
	if errors.As(err, &written) {
		return err
	}
	return &folder.WriteError{Path: out, Err: err}
}

package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"tessera/apps/show/comparison"
	"tessera/apps/show/page"
	"tessera/attack"
	"tessera/data"
	"tessera/internal/atomicfile"
	"tessera/internal/sweep"
	"tessera/internal/train/folder"
)

func reportCommand() *cobra.Command {
	var f pageFlags
	cmd := &cobra.Command{
		Use:   "report RUN... | SWEEP",
		Short: "Write runs, or a sweep, as one HTML file",
		Long: "Write one HTML file that opens without a network: what was trained and how it ended, curves, atoms and how they are used, " +
			"reconstructions, codes, classifications, every setting, and the commands that make it again. For a sweep: a table that sorts and " +
			"filters, plots of any two metrics, and the atoms of every trial. Runs are measured on test images; without any, on images that " +
			"the training held out, else on the fitted ones. The page says which.",
		Example:           "  tessera report runs/parts -o parts.html\n  tessera report sweeps/table1 -o table1.html",
		Args:              atLeast(1, "run or sweep"),
		RunE:              work(func(cmd *cobra.Command, args []string) error { return f.report(cmd, args) }),
		ValidArgsFunction: completeFolders,
	}
	f.add(cmd, "report.html", "file that is written")
	addChoice(cmd, &f.attack, "attack", "", attack.Norm("").Choices(), "attack the heads of classifiers in balls of this norm, and show it")
	cmd.Flags().Float64SliceVar(&f.radii, "epsilon", nil, "radii of the balls of --attack (default 0.02,0.05,0.1,0.2,0.3 for linf; 0.25,0.5,1,2,3 for l2)")
	cmd.Flags().Lookup("epsilon").DefValue = "" // the usage names it
	return cmd
}

// pageFlags contains the flags of commands that measure runs for a page.
type pageFlags struct {
	runFlags
	metricFlags
	out, split string
	reference  string // model or setting that the others are compared with

	attack string    // of report, as is the next one
	radii  []float64 // radii of the attacks
}

func (f *pageFlags) add(cmd *cobra.Command, out, usage string) {
	f.runFlags.add(cmd)
	f.metricFlags.add(cmd)
	addSplitFlag(cmd, &f.split)
	cmd.Flags().StringVarP(&f.out, "out", "o", out, usage)
	cmd.Flags().StringVar(&f.reference, "reference", "", "model, or setting of a sweep, that the others are compared with: its label, name or one of its runs (default the first one with several seeds)")
}

// check checks the flags and the folders before anything is measured.
func (f *pageFlags) check(paths []string) (o page.Options, err error) {
	o.Split, o.Reference = data.Split(f.split), f.reference
	if o.Open, err = f.options(); err != nil {
		return o, err
	}
	if o.Metrics, err = f.chosen(); err != nil {
		return o, err
	}
	if len(f.radii) > 0 && f.attack == "" {
		return o, usagef("--epsilon: got radii without attacks; add --attack %s", attack.LInf)
	}
	for _, epsilon := range f.radii {
		a := attack.Attack{Method: attack.FGSM, Norm: attack.Norm(f.attack), Epsilon: epsilon}
		if err := a.Check(); err != nil {
			return o, usagef("--%v", err)
		}
	}
	o.Attack, o.Radii = attack.Norm(f.attack), f.radii
	return o, errors.Join(pageFile(f.out), findFolder(paths...))
}

func (f *pageFlags) report(cmd *cobra.Command, paths []string) error {
	o, err := f.check(paths)
	if err != nil {
		return err
	}
	o.Flags = givenFlags(cmd, "out")
	write, err := f.read(cmd, paths, o)
	if err != nil {
		return err
	}
	return writePage(cmd.OutOrStdout(), f.out, write)
}

// read reads runs or a sweep and returns the function that writes its page.
func (f *pageFlags) read(cmd *cobra.Command, paths []string, o page.Options) (func(io.Writer) error, error) {
	if sweep.Is(paths[0]) {
		if len(paths) > 1 {
			return nil, usagef("report: %s is a sweep; give it alone (got %d folders)", paths[0], len(paths))
		}
		s, err := page.ReadSweep(cmd.Context(), paths[0], o)
		if errors.Is(err, comparison.ErrUnknown) {
			return nil, usageError{fmt.Errorf("--reference: %w", err)}
		} else if err != nil {
			return nil, err
		}
		return s.Write, nil
	}
	if o.Reference != "" {
		return nil, usagef("--reference: runs are not compared by report; give a sweep, or use tessera compare")
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
		if one.Resists != "" {
			warn(cmd, fmt.Sprintf("%s: nothing was attacked: %s", path, one.Resists))
		}
		r.Runs = append(r.Runs, one)
	}
	return r.Write, nil
}

// givenFlags returns the flags of a command that were given, except one, as words of a command line.
func givenFlags(cmd *cobra.Command, except string) (words []string) {
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		values := []string{flag.Value.String()}
		switch list, several := flag.Value.(pflag.SliceValue); {
		case flag.Name == except:
			return
		case flag.Value.Type() == "stringArray": // one flag for each value
			values = list.GetSlice()
		case several:
			values = list.GetSlice()
			for i, v := range values { // "0.500000" is 0.5
				if number, err := strconv.ParseFloat(v, 64); err == nil && flag.Value.Type() == "float64Slice" {
					values[i] = strconv.FormatFloat(number, 'g', -1, 64)
				}
			}
			values = []string{strings.Join(values, ",")}
		case flag.NoOptDefVal != "" && values[0] == flag.NoOptDefVal:
			words = append(words, "--"+flag.Name)
			return
		}
		for _, v := range values {
			words = append(words, "--"+flag.Name, v)
		}
	})
	return words
}

// pageFile refuses a name that is not that of a page: a mistaken one would be overwritten.
func pageFile(out string) error {
	if ending := strings.ToLower(filepath.Ext(out)); out != "" && ending != ".html" && ending != ".htm" {
		return usagef("--out: got %q, want a name that ends in .html", out)
	}
	return refuseFolder(out)
}

// writePage writes a page to a file and prints its path to to.
func writePage(to io.Writer, out string, write func(io.Writer) error) error {
	if err := atomicfile.Write(out, write); err != nil {
		return &folder.WriteError{Path: out, Err: err}
	}
	fmt.Fprintln(to, "report", out)
	return nil
}

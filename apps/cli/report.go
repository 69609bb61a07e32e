package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"tessera/apps/show/comparison"
	"tessera/apps/show/page"
	"tessera/attack"
	"tessera/data"
	"tessera/internal/atomicfile"
	"tessera/internal/sweep"
	"tessera/internal/train/folder"
)

func init() {
	Commands.Register("report", "Write runs, or a sweep, as one HTML file", func() Command { return &reportCommand{pageFlags: forPages(), Out: "report.html"} })
}

type pageFlags struct {
	Runs []string `arg:"RUN" usage:"RUN... | SWEEP" is:"folder" doc:"folders of runs, or of a sweep"`
	runFlags
	metricFlags
	splitFlag
	Reference string `flag:"reference" doc:"model, or setting of a sweep, that the others are compared with: its label, name or one of its runs" default:"the first one with several seeds"`
}

func forPages() pageFlags { return pageFlags{runFlags: forRuns()} }

type reportCommand struct {
	pageFlags
	Out    string      `flag:"out,o" is:"output" doc:"file that is written"`
	Attack attack.Norm `flag:"attack" doc:"attack the heads of classifiers in balls of this norm, and show it"`
	Radii  []float64   `flag:"epsilon" want:"> 0" needs:"attack" doc:"radii of the balls of --attack" default:"0.02,0.05,0.1,0.2,0.3 for linf; 0.25,0.5,1,2,3 for l2"`
}

func (f *reportCommand) Help() Help {
	return Help{
		Long: "Write one HTML file that opens without a network: what was trained and how it ended, curves, atoms and how they are used, " +
			"reconstructions, codes, classifications, every setting, and the commands that make it again. For a sweep: a table that sorts and " +
			"filters, plots of any two metrics, and the atoms of every trial. Runs are measured on test images; without any, on images that " +
			"the training held out, else on the fitted ones. The page says which.",
		Examples: []string{"tessera report runs/parts -o parts.html", "tessera report sweeps/table1 -o table1.html"},
	}
}

// measuring returns the options of a page that is written to out.
func (f *pageFlags) measuring(out string) (o page.Options, err error) {
	o.Split, o.Reference, o.Named = data.Split(f.Split), f.Reference, len(f.Metrics) > 0
	if o.Open, err = f.options(); err != nil {
		return o, err
	}
	if o.Metrics, err = f.chosen(); err != nil {
		return o, err
	}
	return o, pageFile(out)
}

func (f *reportCommand) Do(cmd *Call) error {
	o, err := f.measuring(f.Out)
	if err != nil {
		return err
	}
	for _, epsilon := range f.Radii {
		if err := (&attack.Ball{Norm: f.Attack, Epsilon: epsilon}).Check(); err != nil {
			return flagError(err)
		}
	}
	o.Attack, o.Radii, o.Flags = f.Attack, f.Radii, givenFlags(cmd, "out")
	write, err := f.read(cmd, f.Runs, o)
	if err != nil {
		return err
	}
	return writePage(cmd.OutOrStdout(), f.Out, write)
}

// read reads runs or a sweep and returns the function that writes its page.
func (f *pageFlags) read(cmd *Call, paths []string, o page.Options) (func(io.Writer) error, error) {
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

// pageFile refuses a name that is not that of a page: a mistaken one would be overwritten.
func pageFile(out string) error {
	if ending := strings.ToLower(filepath.Ext(out)); out != "" && ending != ".html" && ending != ".htm" {
		return usagef("--out: got %q, want a name that ends in .html", out)
	}
	return outputFile(nil, out) // no data set has such a name
}

// writePage writes a page to a file and prints its path to to.
func writePage(to io.Writer, out string, write func(io.Writer) error) error {
	if err := atomicfile.Write(out, write); err != nil {
		return &folder.WriteError{Path: out, Err: err}
	}
	_, err := fmt.Fprintln(to, "report", out)
	return err
}

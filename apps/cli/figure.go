package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"tessera"
	"tessera/apps/internal/study"
	"tessera/apps/show/figures"
	"tessera/attack"
	"tessera/data"
	"tessera/internal/sweep"
	"tessera/internal/train/folder"
)

// figureKind describes one kind of figure.
type figureKind struct {
	name, about string
	least       int // minimum number of runs
	most        int
	draw        func(*figureWork) (*figures.Figure, error)
}

// mostWidth is the largest width of a figure in pixels.
const mostWidth = 10_000

// many means any number of runs.
const many = math.MaxInt

func figureKinds() []figureKind {
	return []figureKind{
		{"atoms", "all atoms of one run, or the first 20 of each of several runs", 1, many, drawAtoms},
		{"reconstructions", "images and their reconstructions", 1, many, drawReconstructions},
		{"codes", "histograms of the codes of single images", 1, many, drawCodes},
		{"max-approximations", "dilated images and their max-approximations", 1, many, drawMaxApproximations},
		{"training", "loss, validation error, sparsity and dead units over epochs", 1, many, drawTraining},
		{"curves", "metrics of a sweep over a swept key, or four metrics over the weight of the KL penalty", 0, many, drawCurves},
		{"hoyer-scatter", "max-approximation error against sparsity of the codes", 0, many, drawCompared(figures.HoyerScatter)},
		{"mse-scatter", "max-approximation error against reconstruction error", 0, many, drawCompared(figures.MSEScatter)},
		{"pareto", "max-approximation error against reconstruction error, or any two metrics, with names and Pareto fronts", 0, many, drawPareto},
		{"reliability", "accuracy of classifiers over their confidence, before and after a calibration", 1, many, drawReliability},
		{"mixture", "samples and components of a mixture with ellipses, its log-likelihood over iterations, responsibilities and weights", 1, 1, drawMixture},
		{"gradients", "images and the gradients of a classifier's cross entropy with respect to them: red raises it, blue lowers it", 1, many, drawGradients},
		{"robustness", "accuracy of classifiers under attack (pgd) over the radius of the ball, with 95 % intervals over images", 1, many, drawRobustness},
		{"attention", "images, and where each head of the last layer with attention attends in them; --atoms: in the images that use these units", 1, many, drawAttention},
		{"penalties", "sparsity penalties over the mean activation of a unit; takes no runs", 0, 0, drawPenalties},
		{"network", "diagram of a dense network; takes no runs", 0, 0, drawNetwork},
	}
}

// figureWork contains the arguments and flags of a figure.
type figureWork struct {
	runFlags
	out       string
	images    []int
	target    float64
	published string
	x         []string // swept keys (--x)
	metrics   []string
	atoms     []int  // atoms that the figure atoms draws
	title     string // title above the figure
	width     int    // width of a PNG in pixels

	norms        []string // of the figure robustness, as are the next three
	epsilons     []float64
	steps, limit int

	ctx     context.Context
	runs    []string
	options tessera.Options
	fitted  []string // says which runs are measured on fitted images; see [figureWork.measures]
}

// measures records that the figure measures a run on the images of [data.TestSplit]. If these include fitted ones, the command
// says so when the figure is done.
func (w *figureWork) measures(label string, r *tessera.Run) {
	if !data.HasTest(r.Model.Dataset.Source) {
		w.measuresFitted(label)
	}
}

func (w *figureWork) measuresFitted(label string) {
	if text := label + ": measured on all samples, which include the fitted ones, because the data set has no test split"; !slices.Contains(w.fitted, text) {
		w.fitted = append(w.fitted, text)
	}
}

// The choices of --published.
const (
	shallowPublished = "shallow"
	deepPublished    = "deep"
	nonePublished    = "none"
)

func figureCommand() *cobra.Command {
	var w figureWork
	kinds := figureKinds()
	cmd := &cobra.Command{
		Use:     "figure KIND [RUN...]",
		Short:   "Draw a figure of runs as PNG, SVG or PDF",
		Long:    "Draw a figure of runs as PNG, SVG or PDF. The kinds are:\n\n" + kindLines(kinds) + "\nA folder of a sweep stands for its settings. Runs are measured on the test images, or on all\nimages, which include the fitted ones, where the data set has no test images. hoyer-scatter, mse-scatter, pareto, and curves over the weight of the KL\npenalty also show the published numbers of the study. Without runs they show only these.",
		Example: "  tessera figure reconstructions runs/shallow runs/shallow-nonneg-kl\n  tessera figure pareto runs/* --out pareto.svg",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("figure: missing kind, want one of %s", strings.Join(kindNames(kinds), ", "))
			}
			return nil
		},
		RunE: work(func(cmd *cobra.Command, args []string) (err error) {
			kind, err := w.check(kinds, args)
			if err != nil {
				return err
			}
			for _, flag := range []string{"norm", "epsilon", "steps", "limit"} {
				if cmd.Flags().Changed(flag) && kind.name != "robustness" {
					return usagef("figure %s: only robustness has --%s", kind.name, flag)
				}
			}
			w.ctx = cmd.Context()
			f, err := kind.draw(&w)
			if errors.Is(err, figures.ErrNoPoints) && w.metrics != nil {
				return usageError{fmt.Errorf("figure %s: %w", kind.name, err)}
			} else if errors.Is(err, figures.ErrNoPoints) {
				return usageError{fmt.Errorf("figure %s: %w: runs without atoms have no max_approx", kind.name, err)}
			} else if err != nil {
				return err
			}
			f.SetTitle(w.title)
			f.SetWidth(w.width)
			if err := f.Save(w.out); err != nil {
				return &folder.WriteError{Path: w.out, Err: err}
			}
			for _, text := range w.fitted {
				fmt.Fprintln(cmd.ErrOrStderr(), "tessera:", text)
			}
			fmt.Fprintln(cmd.OutOrStdout(), w.out)
			return nil
		}),
	}
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveFilterDirs
		}
		return kindNames(kinds), cobra.ShellCompDirectiveNoFileComp
	}
	w.add(cmd)
	cmd.Flags().StringVarP(&w.out, "out", "o", "", "output file, .png, .svg or .pdf (default KIND.png)")
	cmd.Flags().IntSliceVar(&w.images, "images", nil, "indices of the images to show, test images where the set has them (default the images of the study, or ten evenly spread ones)")
	cmd.Flags().IntSliceVar(&w.atoms, "atoms", nil, "numbers of the atoms that the figure atoms shows (default all, or the first 20 of several runs), or of the units of the figure attention")
	cmd.Flags().StringVar(&w.title, "title", "", "title above the figure")
	cmd.Flags().Var((*positive)(&w.width), "width", "width of a PNG in pixels; an SVG or PDF can be scaled without loss")
	cmd.Flags().Float64Var(&w.target, "target", 0.3, "target p of the figure penalties, 0 or in (0,1)")
	cmd.Flags().StringSliceVar(&w.x, "x", nil, "swept key over which curves are drawn (default the one with the most values); several, separated by commas, where models have different keys")
	cmd.Flags().StringSliceVar(&w.metrics, "metrics", nil, "metrics that curves show (default four that were measured), or the two of pareto (default mse,max_approx), separated by commas")
	cmd.Flags().StringSliceVar(&w.norms, "norm", []string{string(attack.LInf), string(attack.L2)}, "norms of the perturbations of the figure robustness")
	cmd.Flags().Float64SliceVar(&w.epsilons, "epsilon", nil, "radii of the figure robustness, of one norm (default 0.02,0.05,0.1,0.2,0.3 for linf; 0.25,0.5,1,2,3 for l2)")
	cmd.Flags().Lookup("epsilon").DefValue = "" // the usage names it
	w.steps = 40
	cmd.Flags().Var((*positive)(&w.steps), "steps", "number of steps of pgd of the figure robustness")
	w.limit = 1000
	cmd.Flags().Var((*positive)(&w.limit), "limit", "number of images that the figure robustness attacks, from the first")
	addChoice(cmd, &w.published, "published", shallowPublished, []string{shallowPublished, deepPublished, nonePublished}, "published points to show")
	return cmd
}

// check checks the arguments and flags, and stores the arguments.
func (w *figureWork) check(kinds []figureKind, args []string) (*figureKind, error) {
	i := slices.IndexFunc(kinds, func(k figureKind) bool { return k.name == args[0] })
	if i < 0 {
		return nil, usagef("unknown figure %q, want one of %s", args[0], strings.Join(kindNames(kinds), ", "))
	}
	kind := &kinds[i]
	w.runs = args[1:]
	switch {
	case len(w.runs) < kind.least, len(w.runs) == 0 && kind.most > 0 && w.published == nonePublished:
		return nil, usagef("figure %s: missing run", kind.name)
	case len(w.runs) > kind.most:
		return nil, usagef("figure %s takes no runs (got %q)", kind.name, w.runs)
	case w.width > mostWidth:
		return nil, usagef("--width: got %d, want at most %d", w.width, mostWidth)
	case len(w.atoms) > 0 && kind.name != "atoms" && kind.name != "attention":
		return nil, usagef("figure %s: only atoms and attention have --atoms", kind.name)
	case len(w.x) > 0 && kind.name != "curves":
		return nil, usagef("figure %s: only curves have --x", kind.name)
	case len(w.metrics) > 0 && kind.name != "curves" && kind.name != "pareto":
		return nil, usagef("figure %s: only curves and pareto have --metrics", kind.name)
	case len(w.metrics) > 0 && kind.name == "pareto" && len(w.metrics) != 2:
		return nil, usagef("--metrics: got %q, want the two metrics of pareto", w.metrics)
	case w.target < 0 || w.target >= 1 || math.IsNaN(w.target):
		return nil, usagef("--target: got %v, want 0 or in (0,1)", w.target)
	}
	for _, path := range w.runs {
		if path == "" {
			return nil, usagef("figure %s: missing run", kind.name)
		}
	}
	if err := findFolder(w.runs...); err != nil {
		return nil, err
	}
	if w.out == "" {
		w.out = kind.name + ".png"
	}
	if err := figures.CheckPath(w.out); err != nil {
		return nil, usageError{err}
	}
	if err := refuseFolder(w.out); err != nil {
		return nil, err
	}
	var err error
	w.options, err = w.runFlags.options()
	return kind, err
}

func kindNames(kinds []figureKind) []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.name
	}
	return names
}

func kindLines(kinds []figureKind) string {
	var b strings.Builder
	for _, k := range kinds {
		fmt.Fprintf(&b, "  %-19s %s\n", k.name, k.about)
	}
	return b.String()
}

// each opens the runs one by one; see [figureWork.shown].
func (w *figureWork) each(do func(label string, r *tessera.Run) error) error {
	runs, err := w.shown()
	if err != nil {
		return err
	}
	for _, run := range runs {
		if err := w.open(run, do); err != nil {
			return err
		}
	}
	return nil
}

// open opens one run.
func (w *figureWork) open(run shownRun, do func(label string, r *tessera.Run) error) error {
	r, err := tessera.Open(run.path, w.options)
	if err != nil {
		return err
	}
	err = do(run.label, r)
	if closed := r.Close(); err == nil {
		err = closed
	}
	return err
}

// points measures the runs and reads the results of sweeps; dataset is their common data set.
func (w *figureWork) points() (points []figures.Point, dataset string, err error) {
	add := func(p figures.Point, of string) error {
		if dataset == "" {
			dataset = of
		}
		if of != dataset {
			return usagef("%s: errors on different data sets cannot be compared (got %s, want %s as for the other runs)", p.Label, of, dataset)
		}
		points = append(points, p)
		return nil
	}
	for _, path := range w.runs {
		if sweep.Is(path) {
			err = sweepPoints(path, func(p figures.Point, of string) error {
				if p.Split == string(data.AllSplit) {
					w.measuresFitted(filepath.Base(filepath.Clean(path)))
				}
				return add(p, of)
			})
		} else {
			err = w.open(shownRun{path, labelOf(path)}, func(label string, r *tessera.Run) error {
				measured, err := r.Evaluate(w.ctx, nil)
				if err != nil {
					return err
				}
				w.measures(label, r)
				p, beta := study.Penalty(r.Model)
				return add(figures.Point{Label: label, P: p, Beta: beta, Values: measured.Values, Split: measured.Split}, measured.Dataset)
			})
		}
		if err != nil {
			return nil, "", err
		}
	}
	return points, dataset, nil
}

// studied is the data set of the curves that the study published.
const studied = "fashion-mnist"

// compared returns the points of the runs and, if the runs use the same data set, of the study's curves.
func (w *figureWork) compared() (ours, published []figures.Point, err error) {
	ours, dataset, err := w.points()
	if w.published != nonePublished && (dataset == studied || dataset == "") {
		published = figures.PublishedCurves(w.published == deepPublished)
	}
	return ours, published, err
}

// drawCompared returns a function that draws a figure of measured and published points.
func drawCompared(draw func(ours, published []figures.Point) (*figures.Figure, error)) func(*figureWork) (*figures.Figure, error) {
	return func(w *figureWork) (*figures.Figure, error) {
		ours, published, err := w.compared()
		if err != nil {
			return nil, err
		}
		return draw(ours, published)
	}
}

func drawPareto(w *figureWork) (*figures.Figure, error) {
	ours, dataset, err := w.points()
	if err != nil {
		return nil, err
	}
	if len(w.metrics) == 2 {
		f, err := figures.ParetoOf(w.metrics[0], w.metrics[1], ours)
		if err != nil && !errors.Is(err, figures.ErrNoPoints) {
			err = usageError{err}
		}
		return f, err
	}
	if dataset == "" {
		dataset = studied
	}
	var published []figures.Point
	if w.published != nonePublished {
		published = figures.PublishedTables(dataset)
	}
	return figures.Pareto(ours, published)
}

func drawPenalties(w *figureWork) (*figures.Figure, error) { return figures.Penalties(w.target) }

func drawNetwork(*figureWork) (*figures.Figure, error) {
	return figures.Network(figures.NetworkLayer{Name: "input", Units: 6}, figures.NetworkLayer{Name: "code", Units: 3},
		figures.NetworkLayer{Name: "output", Units: 6})
}

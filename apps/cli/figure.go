package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"tessera"
	"tessera/apps/internal/study"
	"tessera/apps/show"
	"tessera/apps/show/figures"
	"tessera/attack"
	"tessera/config/part/table"
	"tessera/data"
	"tessera/internal/lists"
	"tessera/internal/sweep"
	"tessera/internal/train/evaluation"
	"tessera/internal/train/folder"
	"tessera/metrics"
)

type figureKind struct {
	name, about string
	least       int // minimum number of runs
	most        int
	draw        func(*figureCommand) (*figures.Figure, error)
}

// many means any number of runs.
const many = math.MaxInt

func figureKinds() []figureKind {
	kinds := []figureKind{
		{"atoms", "all atoms of one run, or the first 20 of each of several runs", 1, many, drawAtoms},
		{"reconstructions", "images and their reconstructions", 1, many, drawReconstructions},
		{"codes", "histograms of the codes of single images", 1, many, drawCodes},
		{"max-approximations", "dilated images and their max-approximations", 1, many, drawMaxApproximations},
		{"training", "loss, validation error and accuracy, sparsity and dead units over epochs", 1, many, drawTraining},
		{"curves", "metrics of a sweep over a swept key, or four metrics over the weight of the KL penalty", 0, many, drawCurves},
		{"hoyer-scatter", "max-approximation error against sparsity of the codes", 0, many, drawCompared(figures.HoyerScatter)},
		{"mse-scatter", "max-approximation error against reconstruction error", 0, many, drawCompared(figures.MSEScatter)},
		{"pareto", "max-approximation error against reconstruction error, or any two metrics, with names and Pareto fronts", 0, many, drawPareto},
		{"reliability", "accuracy of classifiers over their confidence, before and after a calibration", 1, many, drawReliability},
		{"confusion", "true and predicted classes of classifiers: how many samples of each class get which class", 1, many, drawConfusion},
		{"mixture", "samples and components of a mixture with ellipses, its log-likelihood over iterations, responsibilities and weights", 1, 1, drawMixture},
		{"gradients", "images and the gradients of a classifier's cross entropy with respect to them: red raises it, blue lowers it", 1, many, drawGradients},
		{"robustness", "accuracy of classifiers under attack (pgd) over the radius of the ball, with 95 % intervals over images", 1, many, drawRobustness},
		{"attention", "images, and where each head of the last layer with attention attends in them, or texts and which of their tokens attend to which; --atoms: in the images that use these units", 1, many, drawAttention},
		{"penalties", "sparsity penalties over the mean activation of a unit; takes no runs", 0, 0, drawPenalties},
		{"network", "diagram of a dense network; takes no runs", 0, 0, drawNetwork},
	}
	for _, e := range figures.Registry.All() {
		k := e.New()
		kinds = append(kinds, figureKind{e.Name, e.About, k.Least, cmp.Or(k.Most, many), drawOther(k)})
	}
	return kinds
}

// drawOther returns the function that draws a figure of another module.
func drawOther(k figures.Kind) func(*figureCommand) (*figures.Figure, error) {
	return func(w *figureCommand) (*figures.Figure, error) {
		var runs []*tessera.Run
		defer func() {
			for _, r := range runs {
				_ = r.Close() // it was only read
			}
		}()
		shown, err := w.shown()
		if err != nil {
			return nil, err
		}
		for _, one := range shown {
			r, err := tessera.Open(one.path, w.options)
			if err != nil {
				return nil, err
			}
			runs = append(runs, r)
		}
		return k.Draw(w.ctx, runs)
	}
}

func init() {
	Commands.Register("figure", "Draw a figure of runs as PNG, SVG or PDF", func() Command {
		return &figureCommand{runFlags: forRuns(), Target: 0.3, Norms: []attack.Norm{attack.LInf, attack.L2}, Steps: 40, Limit: 1000, Published: shallowPublished}
	})
}

type figureName string

func (figureName) Choices() []string {
	return lists.Map(figureKinds(), func(k figureKind) string { return k.name })
}

type figureCommand struct {
	Kind figureName `arg:"KIND" doc:"a kind of figure"`
	Runs []string   `arg:"RUN" optional:"true" is:"folder" doc:"folders of runs, or of sweeps"`
	runFlags
	Out       string        `flag:"out,o" is:"output" doc:"output file, .png, .svg or .pdf" default:"KIND.png"`
	Images    []int         `flag:"images" want:">= 0" doc:"indices of the images to show, test images where the set has them" default:"the images of the study, or ten evenly spread ones"`
	Atoms     []int         `flag:"atoms" only:"atoms attention" want:">= 0" doc:"numbers of the atoms that the figure atoms shows, or of the units of the figure attention" default:"all, or the first 20 of several runs"`
	Title     string        `flag:"title" doc:"title above the figure"`
	Width     int           `flag:"width" want:"in [1,10000]" doc:"width of a PNG in pixels; an SVG or PDF can be scaled without loss"`
	Target    float64       `flag:"target" want:"in [0,1)" doc:"target p of the figure penalties, 0 or in (0,1)"`
	X         []string      `flag:"x" only:"curves" doc:"swept key over which curves are drawn; several, separated by commas, where models have different keys" default:"the one with the most values"`
	Metrics   []string      `flag:"metrics" only:"curves pareto" is:"metric" doc:"metrics that curves show, or the two of pareto" default:"four that were measured; mse,max_approx of pareto"`
	Norms     []attack.Norm `flag:"norm" only:"robustness" doc:"norms of the perturbations of the figure robustness"`
	Epsilons  []float64     `flag:"epsilon" only:"robustness" want:"> 0" doc:"radii of the figure robustness, of one norm" default:"0.02,0.05,0.1,0.2,0.3 for linf; 0.25,0.5,1,2,3 for l2"`
	Steps     int           `flag:"steps" only:"robustness" want:"> 0" doc:"number of steps of pgd of the figure robustness"`
	Limit     int           `flag:"limit" only:"robustness" want:"> 0" doc:"number of images that the figure robustness attacks, from the first"`
	Published string        `flag:"published" oneof:"shallow deep none" doc:"published points to show"`

	ctx     context.Context
	options tessera.Options
	notes   []string // what the command says when the figure is done; see [figureCommand.note]
}

// measures returns the split on which the figure measures a run: that of the first numbers of eval. If it has only fitted samples, the
// command says so.
func (w *figureCommand) measures(label string, r *tessera.Run) data.Split {
	split := evaluation.PlanOf(r.Model).First
	if !evaluation.ReportOf(r.Model, &metrics.Result{Split: string(split)}).HeldOut {
		w.note("%s: measured on samples to which it was fitted, because none are held out", label)
	}
	return split
}

// allSamples is why a figure of all samples of a data set has fitted ones.
const allSamples = "all samples, which include the fitted ones, because the data set has no test split"

// note adds a line that the command says when the figure is done.
func (w *figureCommand) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(w.notes, text) {
		w.notes = append(w.notes, text)
	}
}

// The choices of --published.
const (
	shallowPublished = "shallow"
	deepPublished    = "deep"
	nonePublished    = "none"
)

func (w *figureCommand) Help() Help {
	return Help{
		Long: "Draw a figure of runs as PNG, SVG or PDF. The kinds are:\n\n" + kindLines(figureKinds()) + "\nA folder of a sweep stands for its settings. Runs are measured as eval measures them: on the test\n" +
			"images, else on the held-out ones, else on the fitted ones. Pictures of images are of test images, or of all images, which include the fitted ones,\n" +
			"where the data set has no test images. hoyer-scatter, mse-scatter, pareto, and curves over the weight of the KL\n" +
			"penalty also show the published numbers of the study. Without runs they show only these.",
		Examples: []string{"tessera figure reconstructions runs/shallow runs/shallow-nonneg-kl", "tessera figure pareto runs/* --out pareto.svg"},
	}
}

func (w *figureCommand) Do(cmd *Call) error {
	kind, err := w.check(cmd)
	if err != nil {
		return err
	}
	w.ctx = cmd.Context()
	f, err := kind.draw(w)
	if errors.Is(err, figures.ErrNoPoints) && w.Metrics != nil {
		return usageError{fmt.Errorf("figure %s: %w", kind.name, err)}
	} else if errors.Is(err, figures.ErrNoPoints) {
		return usageError{fmt.Errorf("figure %s: %w: max_approx is only of runs whose atoms are images", kind.name, err)}
	} else if err != nil {
		return err
	}
	for _, label := range f.Omitted {
		w.note("%s: left out, because it lacks a metric of the axes, or its value is beyond them", label)
	}
	f.SetTitle(w.Title)
	f.SetWidth(w.Width)
	if err := f.Save(w.Out); err != nil {
		return &folder.WriteError{Path: w.Out, Err: err}
	}
	for _, text := range w.notes {
		cmd.say("%s", text)
	}
	return cmd.wrote(w.Out)
}

// check checks what the kind of the figure demands.
func (w *figureCommand) check(cmd *Call) (*figureKind, error) {
	kinds := figureKinds()
	kind := &kinds[slices.IndexFunc(kinds, func(k figureKind) bool { return k.name == string(w.Kind) })]
	for _, f := range table.Fields(w) {
		if of := strings.Fields(f.Tag.Get("only")); len(of) > 0 && cmd.Given(flagName(f)) && !slices.Contains(of, kind.name) {
			return nil, usagef("figure %s: only %s has --%s", kind.name, strings.Join(of, " and "), flagName(f))
		}
	}
	switch {
	case len(w.Runs) < kind.least, len(w.Runs) == 0 && kind.most > 0 && w.Published == nonePublished:
		return nil, usagef("figure %s: missing run", kind.name)
	case len(w.Runs) > kind.most:
		return nil, usagef("figure %s takes no runs (got %q)", kind.name, w.Runs)
	case len(w.Metrics) > 0 && kind.name == "pareto" && len(w.Metrics) != 2:
		return nil, usagef("--metrics: got %q, want the two metrics of pareto", w.Metrics)
	}
	if w.Out == "" {
		w.Out = kind.name + ".png"
	}
	if err := figures.CheckPath(w.Out); err != nil {
		return nil, usageError{err}
	}
	if err := outputFile(w, w.Out); err != nil {
		return nil, err
	}
	var err error
	w.options, err = w.runFlags.options()
	return kind, err
}

func kindLines(kinds []figureKind) string {
	var b strings.Builder
	for _, k := range kinds {
		fmt.Fprintf(&b, "  %-19s %s\n", k.name, k.about)
	}
	return b.String()
}

// each opens the runs one by one; see [figureCommand.shown].
func (w *figureCommand) each(do func(label string, r *tessera.Run) error) error {
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

// shownHead is a head that predicts classes, of a run with its name in a figure.
type shownHead struct {
	label string
	run   *tessera.Run
	split data.Split // on which it is measured
	name  string
	own   string // ", NAME", "" for the only head
}

// heads opens the runs one by one and calls do for their heads that predict classes, at least one of each run.
func (w *figureCommand) heads(do func(h shownHead) error) error {
	return w.each(func(label string, r *tessera.Run) error {
		heads := r.ClassHeads()
		if len(heads) == 0 {
			return usagef("figure %s: %s predicts no classes", w.Kind, label)
		}
		h := shownHead{label: label, run: r, split: w.measures(label, r)}
		for _, h.name = range heads {
			if len(heads) > 1 {
				h.own = ", " + h.name
			}
			if err := do(h); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *figureCommand) open(run shownRun, do func(label string, r *tessera.Run) error) error {
	r, err := tessera.Open(run.path, w.options)
	if err != nil {
		return err
	}
	return errors.Join(do(run.label, r), r.Close())
}

// points measures the runs and reads the results of sweeps; dataset is their common data set.
func (w *figureCommand) points() (points []figures.Point, dataset string, err error) {
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
	for _, path := range w.Runs {
		if sweep.Is(path) {
			err = sweepPoints(path, func(p figures.Point, of string) error {
				if p.Split == string(data.AllSplit) {
					w.note("%s: measured on %s", filepath.Base(filepath.Clean(path)), allSamples)
				}
				return add(p, of)
			})
		} else {
			err = w.open(shownRun{path, labelOf(path)}, func(label string, r *tessera.Run) error {
				measured, err := r.EvaluateOn(w.ctx, w.measures(label, r), nil)
				if err != nil {
					return err
				}
				p, beta := study.Penalty(r.Model)
				return add(figures.Point{Label: label, P: p, Beta: beta, Values: measured.Values, Split: measured.Split, Noun: show.NounOf(r.Shape()), First: r.Model.Measures()}, measured.Dataset)
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
func (w *figureCommand) compared() (ours, published []figures.Point, err error) {
	ours, dataset, err := w.points()
	if w.Published != nonePublished && (dataset == studied || dataset == "") {
		published = figures.PublishedCurves(w.Published == deepPublished)
	}
	return ours, published, err
}

// drawCompared returns a function that draws a figure of measured and published points.
func drawCompared(draw func(ours, published []figures.Point) (*figures.Figure, error)) func(*figureCommand) (*figures.Figure, error) {
	return func(w *figureCommand) (*figures.Figure, error) {
		ours, published, err := w.compared()
		if err != nil {
			return nil, err
		}
		return draw(ours, published)
	}
}

func drawPareto(w *figureCommand) (*figures.Figure, error) {
	ours, dataset, err := w.points()
	if err != nil {
		return nil, err
	}
	if len(w.Metrics) == 2 {
		f, err := figures.ParetoOf(w.Metrics[0], w.Metrics[1], ours)
		if err != nil && !errors.Is(err, figures.ErrNoPoints) {
			err = usageError{err}
		}
		return f, err
	}
	if pair := measuredPair(ours); pair != nil {
		return figures.ParetoOf(pair[0], pair[1], ours)
	}
	if dataset == "" {
		dataset = studied
	}
	var published []figures.Point
	if w.Published != nonePublished {
		published = figures.PublishedTables(dataset)
	}
	return figures.Pareto(ours, published)
}

// measuredPair returns the first two metrics of the models that were measured of all points; nil if these are fewer, or if all points have
// the metrics of the study's figure.
func measuredPair(points []figures.Point) []string {
	var found []string
	lacks := func(name string) bool {
		return slices.ContainsFunc(points, func(p figures.Point) bool { _, ok := p.Values.Number(name); return !ok })
	}
	for _, p := range points {
		for _, name := range p.First {
			if len(found) < 2 && !slices.Contains(found, name) && !lacks(name) {
				found = append(found, name)
			}
		}
	}
	if len(found) < 2 || !lacks("max_approx") {
		return nil
	}
	return found
}

func drawPenalties(w *figureCommand) (*figures.Figure, error) { return figures.Penalties(w.Target) }

func drawNetwork(*figureCommand) (*figures.Figure, error) {
	return figures.Network(figures.NetworkLayer{Name: "input", Units: 6}, figures.NetworkLayer{Name: "code", Units: 3},
		figures.NetworkLayer{Name: "output", Units: 6})
}

package study

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"tessera"
	"tessera/apps/show/figures"
	"tessera/data"
	"tessera/data/morph"
	"tessera/internal/sweep"
	"tessera/internal/train"
	"tessera/metrics"
)

// figure is one figure of a page.
type figure struct {
	name, title string
	draw        func(*gallery) (*figures.Figure, error) // draws the figure; nil if there is nothing to draw
}

// drawings lists the kinds of figures that a page may contain, in order.
var drawings = []figure{
	{"reconstructions", "Images and reconstructions; each image is scaled from its smallest value (black) to its largest (white)", func(g *gallery) (*figures.Figure, error) { return of(g.reconstructions, figures.ImageRows) }},
	{"codes", "Histograms of the codes of these images: 100 bins, counts clipped at a quarter of the units, the largest value in red",
		func(g *gallery) (*figures.Figure, error) { return of(g.codes, figures.Histograms) }},
	{"atoms", "Atoms, each scaled by its largest magnitude: 0 is black; if values have signs, positive is red and negative blue",
		func(g *gallery) (*figures.Figure, error) { return of(g.atoms, figures.ImageRows) }},
	{"max-approximations", "Dilated images and max-approximations (atoms dilated, bias not); grey levels as above",
		func(g *gallery) (*figures.Figure, error) { return of(g.maxApproximations, figures.ImageRows) }},
	{"training", "Training of the first seed", func(g *gallery) (*figures.Figure, error) { return of(g.courses, figures.Training) }},
	{"curves", "Four metrics over β, one line per p", func(g *gallery) (*figures.Figure, error) { return figures.Curves(g.penalized, g.curves) }},
	{"hoyer-scatter", "Max-approximation error against sparsity of the codes",
		func(g *gallery) (*figures.Figure, error) { return figures.HoyerScatter(g.penalized, g.curves) }},
	{"mse-scatter", "Max-approximation error against reconstruction error",
		func(g *gallery) (*figures.Figure, error) { return figures.MSEScatter(g.penalized, g.curves) }},
	{"pareto", "Max-approximation error against reconstruction error, with the Pareto fronts",
		func(g *gallery) (*figures.Figure, error) { return figures.Pareto(g.points, g.tables) }},
	{"penalties", "Sparsity penalties over the mean activation of a unit, p = 0.3", func(*gallery) (*figures.Figure, error) { return figures.Penalties(0.3) }},
}

// of draws rows by the given function. It draws nothing without rows.
func of[R any](rows []R, draw func(...R) (*figures.Figure, error)) (*figures.Figure, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	return draw(rows...)
}

// gallery contains the data of the figures of a page.
type gallery struct {
	reconstructions, atoms, maxApproximations []figures.ImageRow
	codes                                     []figures.CodeRow
	courses                                   []figures.TrainingRun
	points                                    []figures.Point // points of all settings
	penalized                                 []figures.Point // points of the settings with a KL penalty
	curves, tables                            []figures.Point // published points

	dataset string
	images  []float32 // displayed images
}

// runsFigures lists the figures for which runs are opened.
var runsFigures = []string{"reconstructions", "codes", "atoms", "max-approximations", "training"}

// newGallery collects the data of the figures of a reproduction. The first finished trial of each setting, with its own
// metrics, represents the setting.
func (r Reproduction) newGallery(ctx context.Context, path string, all []shown, o tessera.Options) (*gallery, error) {
	g := &gallery{}
	if r.Dataset == "fashion-mnist" {
		g.curves = figures.PublishedCurves(r.Deep)
	}
	g.tables = figures.PublishedTables(r.Dataset)
	open := r.Figures == nil || slices.ContainsFunc(r.Figures, func(name string) bool { return slices.Contains(runsFigures, name) })
	for _, s := range all {
		if s.row == nil {
			continue
		}
		p := s.Point()
		g.points = append(g.points, p)
		if !math.IsNaN(p.P) {
			g.penalized = append(g.penalized, p)
		}
		if !open {
			continue
		}
		if err := g.show(ctx, s, sweep.TrialPath(path, s.row.Trial), o); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// show adds one trial to the figures with images.
func (g *gallery) show(ctx context.Context, s shown, path string, o tessera.Options) (err error) {
	run, err := tessera.Open(path, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, run.Close()) }()
	if g.images == nil {
		if err := g.load(ctx, run); err != nil {
			return err
		}
	}
	if s.Dataset != g.dataset {
		return nil // which has no images in common with the others
	}
	if err := g.add(run, s); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if s.model.Training().Method != "" { // whose objective is another
		return nil
	}
	epochs, err := train.ReadHistory(path)
	if len(epochs) > 0 {
		g.courses = append(g.courses, figures.TrainingRun{Label: s.Point().Label, Epochs: epochs})
	}
	return err
}

// load reads the displayed images from the first run.
func (g *gallery) load(ctx context.Context, run *tessera.Run) error {
	all, err := run.Images(ctx)
	if err != nil {
		return err
	}
	g.dataset = run.Model.Dataset.Name
	indices := figures.DisplayIndices(g.dataset, all.Len())
	g.images = make([]float32, len(indices)*all.Pixels())
	all.Batch(g.images, indices)
	g.reconstructions = append(g.reconstructions, Originals(run.Shape(), g.images))
	dilated, err := DilatedOriginals(run.Shape(), g.images)
	g.maxApproximations = append(g.maxApproximations, dilated)
	if err != nil {
		return &data.Error{Dataset: g.dataset, Problem: err.Error()}
	}
	return nil
}

// add adds the reconstructions and codes of a model.
func (g *gallery) add(c metrics.Coder, s shown) error {
	label, measured := s.Point().Label, s.row.Metrics
	row, err := Reconstructions(c, g.images, Caption(label, "mse", measured.Values, "mse"))
	if err != nil {
		return err
	}
	g.reconstructions = append(g.reconstructions, row)
	codes, err := Codes(c, g.images, Caption(label, "mean Hoyer sparsity", measured.Values, "hoyer"))
	if err != nil {
		return err
	}
	g.codes = append(g.codes, codes)
	if atoms, n := FirstAtoms(c); n > 0 {
		atoms.Caption = fmt.Sprintf("%s: %d of %d atoms", label, n, c.Units())
		g.atoms = append(g.atoms, atoms)
	}
	if _, ok := measured.Number("max_approx"); !ok {
		return nil
	}
	row, err = MaxApproximations(c, g.images, Caption(label, "max-approximation error", measured.Values, "max_approx"))
	if errors.Is(err, metrics.ErrNoAtoms) {
		return nil
	}
	g.maxApproximations = append(g.maxApproximations, row)
	return err
}

// shownAtoms is the number of atoms of each model that are drawn if there are several models.
const shownAtoms = 20

// Originals returns images as a row of a figure.
func Originals(shape []int, images []float32) figures.ImageRow {
	return figures.ImageRow{Caption: "originals", Shape: shape, Images: images}
}

// DilatedOriginals returns dilated images as a row of a figure.
func DilatedOriginals(shape []int, images []float32) (figures.ImageRow, error) {
	dilated, err := morph.Apply(morph.Dilation, morph.Disk, 1, images, shape)
	return figures.ImageRow{Caption: "dilated originals", Shape: shape, Images: dilated}, err
}

// Reconstructions returns the reconstructions of images by a coder.
func Reconstructions(c metrics.Coder, images []float32, caption string) (figures.ImageRow, error) {
	decoded, err := metrics.Reconstruct(c, images)
	return figures.ImageRow{Caption: caption, Shape: c.Shape(), Images: decoded}, err
}

// MaxApproximations returns the reconstructions of images by a coder with dilated atoms. It returns [metrics.ErrNoAtoms] for a
// coder without atoms.
func MaxApproximations(c metrics.Coder, images []float32, caption string) (figures.ImageRow, error) {
	operated, err := metrics.Dilation().Coder(c, false)
	if err != nil {
		return figures.ImageRow{}, err
	}
	if closer, ok := operated.(io.Closer); ok {
		defer closer.Close()
	}
	decoded, err := through(c, operated, images)
	return figures.ImageRow{Caption: caption, Shape: c.Shape(), Images: decoded}, err
}

// Codes returns a coder's codes of images.
func Codes(c metrics.Coder, images []float32, caption string) (figures.CodeRow, error) {
	codes, err := c.Encode(images)
	return figures.CodeRow{Caption: caption, Units: c.Units(), Codes: codes}, err
}

// FirstAtoms returns the first atoms of a coder and the number of all its atoms, 0 if it has no atoms.
func FirstAtoms(c metrics.Coder) (row figures.ImageRow, n int) {
	a := c.Atoms()
	if a == nil {
		return row, 0
	}
	n = min(shownAtoms, a.Count)
	return figures.ImageRow{Shape: a.Shape, Images: a.Values[:n*a.Pixels()], Tone: figures.Signed}, n
}

// Caption returns the name of a model with one of its values: "shallow: mse 0.0071". A value that is not applicable is
// omitted.
func Caption(label, what string, of metrics.Values, name string) string {
	number, ok := of.Number(name)
	if !ok {
		return label
	}
	return fmt.Sprintf("%s: %s %#.3g", label, what, number)
}

// through encodes with one coder and decodes with another.
func through(encoder, decoder metrics.Coder, images []float32) ([]float32, error) {
	codes, err := encoder.Encode(images)
	if err != nil {
		return nil, err
	}
	return decoder.Decode(codes)
}

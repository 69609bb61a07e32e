package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tessera"
	"tessera/apps/internal/study"
	"tessera/apps/show"
	"tessera/apps/show/figures"
	"tessera/data"
	"tessera/internal/train"
	"tessera/internal/train/evaluation"
	"tessera/internal/train/folder"
	"tessera/metrics"
)

func drawAtoms(w *figureCommand) (f *figures.Figure, err error) {
	runs, err := w.shown()
	if err != nil {
		return nil, err
	}
	var rows []figures.ImageRow
	err = w.each(func(label string, r *tessera.Run) error {
		a := r.Atoms()
		if a == nil {
			return usagef("%s has no atoms", label)
		}
		for _, atom := range w.Atoms {
			if atom < 0 || atom >= a.Count {
				return usagef("--atoms: got %d, want 0 to %d", atom, a.Count-1)
			}
		}
		if len(runs) == 1 && len(w.Atoms) == 0 {
			names := show.OutputNames(w.ctx, r)
			var bars []float64
			if bars, err = effects(w.ctx, r); err == nil {
				f, err = figures.WeighedAtoms(a, bars, names...)
			}
			if bars != nil {
				w.measures(label, r)
			}
			return err
		}
		row, n := study.FirstAtoms(r)
		row.Caption = fmt.Sprintf("%s: %d of %d atoms", label, n, a.Count)
		if len(w.Atoms) > 0 {
			row.Images, row.Caption = nil, label+": atoms "+strings.Trim(strings.ReplaceAll(fmt.Sprint(w.Atoms), " ", ", "), "[]")
			for _, atom := range w.Atoms {
				row.Names = append(row.Names, fmt.Sprint(atom))
				row.Images = append(row.Images, a.Values[atom*a.Pixels():(atom+1)*a.Pixels()]...)
			}
		}
		row.Values = show.OutputNames(w.ctx, r)
		if len(rows) > 0 && (len(row.Shape) == 1) != (len(rows[0].Shape) == 1) {
			return usagef("figure atoms: the atoms of %s are of the shape %v, those of the runs before of %v: draw vectors and images one by one", label, row.Shape, rows[0].Shape)
		}
		rows = append(rows, row)
		return nil
	})
	if err != nil || f != nil {
		return f, err
	}
	return drawRows(rows, figures.HeatMaps)
}

// effectImages is the maximum number of images whose codes give the effects of units.
const effectImages = 2000

// effects returns the effects of units, over the measured images, for the bars of a picture of atoms. It returns nil, which draws no bars,
// if the images are missing or the codes do not weigh the atoms: the atoms are worth drawing without them. An error is that of ctx.
func effects(ctx context.Context, r *tessera.Run) ([]float64, error) {
	a := r.Atoms()
	if a.Indirect != "" || r.Units() != a.Count {
		return nil, nil
	}
	sample, err := r.Sample(ctx, evaluation.PlanOf(r.Model).First)
	if err != nil {
		return nil, ctx.Err()
	}
	codes, err := r.Codes(ctx, evaluation.Spread(sample.Images, effectImages))
	if err != nil {
		return nil, ctx.Err()
	}
	of, err := a.Effects(codes)
	if err != nil {
		return nil, ctx.Err()
	}
	return of, nil
}

// drawRows draws rows of images; for rows of vectors it calls the given function.
func drawRows(rows []figures.ImageRow, vectors func(...figures.ImageRow) (*figures.Figure, error)) (*figures.Figure, error) {
	isVectors := func(r figures.ImageRow) bool { return len(r.Shape) == 1 }
	if slices.ContainsFunc(rows, isVectors) {
		return vectors(rows...)
	}
	return figures.ImageRows(rows...)
}

// display contains the images of a figure, and a run's results for all test images.
type display struct {
	label    string
	run      *tessera.Run
	coder    *tessera.Coder // computes with images
	images   []float32      // before scaling, or minus the shift of an exact scaling
	raw      []float32      // before scaling
	given    []float32      // the same images with NaN for missing and hidden entries
	samples  *data.Images   // the same images with their columns
	names    []string       // names of the images: their indices
	labels   []int          // their classes, negative if unknown; nil without any
	measured *metrics.Result
	of       string        // the measured samples, " of validation samples", where the images are of all
	shift    *data.Scaling // see [data.Scaling.Split]
	scaling  *data.Scaling // of images
}

// scale scales vectors like the inputs of the model, so that one axis can show all values. It returns images unchanged.
func (d display) scale(row figures.ImageRow) figures.ImageRow {
	if len(row.Shape) > 1 || d.scaling == nil {
		return row
	}
	row.Images = d.scaling.Unclipped(row.Images)
	return row
}

// displays calls do for each run, with the images of the figure. All runs must have the same images, by their values: the names
// of their data sets may differ.
func (w *figureCommand) displays(do func(display) error) error {
	var first *display
	indices := w.Images
	return w.each(func(label string, r *tessera.Run) error {
		sample, err := r.Sample(w.ctx, data.TestSplit)
		if err != nil {
			return err
		}
		all := sample.Images.Scaled(nil)
		if len(indices) == 0 {
			indices = figures.DisplayIndices(r.Model.Dataset.Name, all.Len())
		}
		if i := slices.IndexFunc(indices, func(i int) bool { return i < 0 || i >= all.Len() }); i >= 0 {
			return usagef("--images: got %d, want 0 to %d, the images of %s", indices[i], all.Len()-1, label)
		}
		d := display{label: label, run: r, coder: r.Centred(), raw: make([]float32, len(indices)*all.Pixels())}
		all.Batch(d.raw, indices)
		d.samples = all.Subset(indices)
		shift, scaling := sample.Images.Scaling().Split()
		d.shift, d.scaling, d.images = shift, scaling, d.samples.Scaled(shift).Float32()
		if first == nil {
			first = &d
		} else if !slices.Equal(r.Shape(), first.run.Shape()) {
			return usagef("%s: its samples have the shape %v, those of %s %v; runs of one figure need the same samples: draw them one by one", label, r.Shape(), first.label, first.run.Shape())
		} else if !slices.Equal(d.raw, first.raw) {
			return usagef("%s: it has other images than %s (data sets %s and %s); runs of one figure need the same images: draw them one by one",
				label, first.label, r.Model.Dataset.Name, first.run.Model.Dataset.Name)
		}
		if d.given = d.images; all.Holed() {
			if d.given = d.samples.Centred(shift); d.given == nil {
				d.given = d.samples.Raw()
			}
		}
		d.labels = d.samples.Labels()
		named := all.SampleNames()
		for _, i := range indices {
			if d.names = append(d.names, fmt.Sprintf("sample %d", i)); i < len(named) {
				d.names[len(d.names)-1] = named[i]
			}
		}
		if d.measured, err = r.EvaluateOn(w.ctx, w.measures(label, r), nil); err != nil {
			return err
		}
		if sample.Split == data.AllSplit && d.measured.Split == string(data.ValidationSplit) {
			d.of = " of " + d.measured.Split + " " + show.NounOf(r.Shape()) + "s"
			w.note("some of all %ss are drawn, the fitted ones among them", show.NounOf(r.Shape()))
		}
		return do(d)
	})
}

func drawReconstructions(w *figureCommand) (*figures.Figure, error) {
	var rows []figures.ImageRow
	err := w.displays(func(d display) error {
		if !decodes(d.run) {
			return usagef("figure reconstructions: %s has no decoder", d.label)
		}
		if err := d.run.Reconstructs(); err != nil {
			return usagef("figure reconstructions: %s: %v", d.label, err)
		}
		if rows == nil {
			rows = append(rows, study.Originals(d.run.Shape(), d.images))
			rows[0].Names = d.names
			rows[0].Values = show.ValueNames(w.ctx, d.run)
			if rows[0] = d.scale(rows[0]); len(rows[0].Shape) == 1 && d.scaling != nil {
				rows[0].Caption += ", scaled"
			}
		}
		row, err := study.Reconstructions(d.coder, d.given, study.Caption(d.label, "mse"+d.of, d.measured.Values, "mse"))
		if err == nil {
			rows = append(rows, d.scale(row))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return drawRows(rows, figures.Spectra)
}

func drawMaxApproximations(w *figureCommand) (*figures.Figure, error) {
	var rows []figures.ImageRow
	err := w.displays(func(d display) error {
		if len(d.run.Shape()) < 2 {
			return usagef("%s: max-approximations are of images, and its samples are vectors", d.label)
		}
		if rows == nil {
			dilated, err := study.DilatedOriginals(d.run.Shape(), d.images)
			if err != nil {
				return err
			}
			rows = append(rows, dilated)
		}
		if _, ok := d.measured.Number("max_approx"); !ok {
			return usagef("%s has no atoms that can be dilated", d.label)
		}
		row, err := study.MaxApproximations(d.coder, d.given, study.Caption(d.label, "max-approximation error"+d.of, d.measured.Values, "max_approx"))
		rows = append(rows, row)
		return err
	})
	if err != nil {
		return nil, err
	}
	return figures.ImageRows(rows...)
}

func drawCodes(w *figureCommand) (*figures.Figure, error) {
	var rows []figures.CodeRow
	err := w.displays(func(d display) error {
		codes, err := d.run.Codes(w.ctx, d.samples)
		rows = append(rows, figures.CodeRow{Caption: study.Caption(d.label, "mean Hoyer sparsity"+d.of, d.measured.Values, "hoyer"), Units: d.run.Units(), Codes: codes})
		return err
	})
	if err != nil {
		return nil, err
	}
	return figures.Histograms(rows...)
}

func drawTraining(w *figureCommand) (*figures.Figure, error) {
	var courses []figures.TrainingRun
	runs, err := w.shown()
	if err != nil {
		return nil, err
	}
	for _, run := range runs {
		course, err := readCourse(run)
		if err != nil {
			return nil, err
		}
		courses = append(courses, course)
	}
	return figures.Training(courses...)
}

// readCourse reads the metrics of a run.
func readCourse(shown shownRun) (figures.TrainingRun, error) {
	epochs, err := train.ReadHistory(shown.path)
	if err == nil && len(epochs) == 0 {
		err = noMetrics(shown.path)
	}
	status := train.StatusOf(shown.path)
	course := figures.TrainingRun{Label: shown.label, Epochs: epochs, Noun: show.NounOf(status.Shape)}
	if models, err := tessera.Load(filepath.Join(shown.path, folder.Config)); err == nil {
		if m, err := models.Model(status.Model); err == nil {
			course.Iterates = m.Training().Iterates
		}
	}
	return course, err
}

// noMetrics returns the error for a run without metrics to draw.
func noMetrics(run string) error {
	if _, err := os.Stat(filepath.Join(run, folder.Config)); err != nil {
		return folder.NotRun(run)
	}
	return usagef("%s: no %s to draw: no epoch has finished, or the file was removed", run, folder.Metrics)
}

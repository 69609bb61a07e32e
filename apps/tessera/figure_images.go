package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"tessera"
	"tessera/metrics"
	"tessera/morph"
	"tessera/report"
)

// shownAtoms is how many atoms of each run are drawn where there are several.
const shownAtoms = 20

// dilation is the study's operator.
var dilation = metrics.MaxApproximation{Operator: morph.Dilation, Radius: 1}

func drawAtoms(w *figureWork) (f *report.Figure, err error) {
	var rows []report.ImageRow
	err = w.each(func(label string, r *tessera.Run) error {
		a := r.Atoms()
		if a == nil || len(a.Shape) < 2 {
			return usagef("%s has no atoms that are images", label)
		}
		if len(w.runs) == 1 {
			f, err = report.Atoms(a)
			return err
		}
		n := min(shownAtoms, a.Count)
		rows = append(rows, report.ImageRow{Caption: fmt.Sprintf("%s: %d of %d atoms", label, n, a.Count), Shape: a.Shape,
			Images: a.Values[:n*a.Pixels()], Tone: report.Signed})
		return nil
	})
	if err != nil || f != nil {
		return f, err
	}
	return report.ImageRows(rows...)
}

// display is the images that a figure shows and what a run says of all test images.
type display struct {
	label    string
	run      *tessera.Run
	images   []float32
	measured *metrics.Report
}

// displays calls do for each run with the images that are shown of its data set, which must be the same for all.
func (w *figureWork) displays(do func(display) error) error {
	dataset := ""
	return w.each(func(label string, r *tessera.Run) error {
		if name := r.Model.Dataset.Name; dataset == "" {
			dataset = name
		} else if name != dataset {
			return usagef("%s is of %s, the runs before it are of %s: they show no common images", label, name, dataset)
		}
		all, err := r.Images(w.ctx)
		if err != nil {
			return err
		}
		indices := w.images
		if len(indices) == 0 {
			indices = report.DisplayIndices(dataset, all.Len())
		}
		if i := slices.IndexFunc(indices, func(i int) bool { return i < 0 || i >= all.Len() }); i >= 0 {
			return usagef("--images: got %d, want 0 to %d", indices[i], all.Len()-1)
		}
		d := display{label: label, run: r, images: make([]float32, len(indices)*all.Pixels())}
		all.Batch(d.images, indices)
		if d.measured, err = r.Evaluate(w.ctx, metrics.Options{}); err != nil {
			return err
		}
		return do(d)
	})
}

func drawReconstructions(w *figureWork) (*report.Figure, error) {
	var rows []report.ImageRow
	err := w.displays(func(d display) error {
		if rows == nil {
			rows = append(rows, report.ImageRow{Caption: "originals", Shape: d.run.Shape(), Images: d.images})
		}
		decoded, err := through(d.run, d.run, d.images)
		rows = append(rows, report.ImageRow{Caption: fmt.Sprintf("%s: mse %#.3g", d.label, d.measured.MSE), Shape: d.run.Shape(), Images: decoded})
		return err
	})
	if err != nil {
		return nil, err
	}
	return report.ImageRows(rows...)
}

func drawMaxApproximations(w *figureWork) (*report.Figure, error) {
	var rows []report.ImageRow
	err := w.displays(func(d display) error {
		if rows == nil {
			dilated, err := morph.Apply(dilation.Operator, dilation.Radius, d.images, d.run.Shape())
			if err != nil {
				return err
			}
			rows = append(rows, report.ImageRow{Caption: "dilated originals", Shape: d.run.Shape(), Images: dilated})
		}
		operated, err := dilation.Coder(d.run)
		if errors.Is(err, metrics.ErrNoAtoms) {
			return usagef("%s has no atoms that could be dilated", d.label)
		} else if err != nil {
			return err
		}
		if c, ok := operated.(io.Closer); ok {
			defer c.Close()
		}
		decoded, err := through(d.run, operated, d.images)
		rows = append(rows, report.ImageRow{Caption: fmt.Sprintf("%s: max-approximation error %#.3g", d.label, *d.measured.MaxApprox),
			Shape: d.run.Shape(), Images: decoded})
		return err
	})
	if err != nil {
		return nil, err
	}
	return report.ImageRows(rows...)
}

func drawCodes(w *figureWork) (*report.Figure, error) {
	var rows []report.CodeRow
	err := w.displays(func(d display) error {
		codes, err := d.run.Encode(d.images)
		rows = append(rows, report.CodeRow{Caption: fmt.Sprintf("%s: mean Hoyer sparsity %#.3g", d.label, d.measured.Hoyer),
			Units: d.run.Units(), Codes: codes})
		return err
	})
	if err != nil {
		return nil, err
	}
	return report.Histograms(rows...)
}

// through encodes with one coder and decodes with another.
func through(encoder, decoder metrics.Coder, images []float32) ([]float32, error) {
	codes, err := encoder.Encode(images)
	if err != nil {
		return nil, err
	}
	return decoder.Decode(codes)
}

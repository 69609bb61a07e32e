package page

import (
	"bytes"
	"context"
	"errors"
	"image/png"
	"slices"

	"tessera"
	"tessera/apps/show"
	"tessera/apps/show/doc"
	"tessera/apps/show/figures"
	"tessera/classical/generate"
	"tessera/config"
	"tessera/config/part"
	"tessera/data"
	"tessera/metrics"
)

// Section makes a part of the page of a run: usually one [doc.Group] with its title. images are those on which the run was measured.
// nil leaves the section out.
type Section func(ctx context.Context, run *tessera.Run, images *data.Images) ([]doc.Block, error)

// Sections holds the sections of the pages of runs besides those that every page has. A section of another module is one call of
// Register; pages show sections in the order of their names.
var Sections = part.New[Section]("section")

func init() {
	Sections.Register("drawn", "samples drawn from a generative model", func() Section { return drawn })
}

// sections makes the registered sections.
func (v *view) sections(ctx context.Context) (list []doc.Block, err error) {
	for _, e := range Sections.All() {
		blocks, err := e.New()(ctx, v.run, v.data)
		if err != nil {
			return nil, err
		}
		list = append(list, blocks...)
	}
	return list, nil
}

// Settings of the drawn samples.
const (
	drawnCount = 24
	drawnSteps = 25 // of a diffusion model
)

// drawn shows samples of a model that is a distribution.
func drawn(ctx context.Context, run *tessera.Run, _ *data.Images) ([]doc.Block, error) {
	if !generates(run) {
		return nil, nil
	}
	g := generate.New(run)
	var samples []float32
	var err error
	if has(run.Model.Encoder, "diffuse") { // a thousand steps would take minutes
		samples, err = g.DrawInSteps(ctx, drawnCount, 1, drawnSteps, 0)
	} else {
		samples, err = g.Draw(ctx, drawnCount, 1)
	}
	if errors.Is(err, metrics.ErrNoSampler) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	low, high := run.Range()
	var f *figures.Figure
	if shape := run.Shape(); len(shape) > 1 {
		f, err = figures.Grid(shape, drawnCount/2, low, high, samples)
	} else {
		f, err = figures.HeatMaps(figures.ImageRow{Caption: "drawn samples", Shape: shape, Images: samples, Values: show.ValueNames(ctx, run)})
	}
	if err != nil {
		return nil, err
	}
	return section("Drawn samples", "Samples that the model draws, with the seed 1.", f), nil
}

// generates reports whether a model is a distribution of samples.
func generates(run *tessera.Run) bool {
	m := run.Model
	switch {
	case run.Components() != nil, m.Kind == "factor_analysis":
		return true
	case m.Opposed() || m.TakesTurns():
		return true
	}
	return has(m.Encoder, "diffuse") || len(m.Decoder) > 0 && (has(m.Encoder, "gaussian") || has(m.Encoder, "vq"))
}

func has(list []config.Layer, kind string) bool {
	return slices.ContainsFunc(list, func(l config.Layer) bool { return l.Kind == kind })
}

func section(title, about string, f *figures.Figure) []doc.Block {
	var b bytes.Buffer
	_ = png.Encode(&b, f.Image()) // a buffer takes everything
	return []doc.Block{&doc.Group{Title: title, Blocks: []doc.Block{doc.Remark("%s", about), &doc.Figure{PNG: b.Bytes()}}}}
}

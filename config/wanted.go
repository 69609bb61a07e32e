package config

import (
	"fmt"
	"math"
	"slices"

	"tessera/data"
	"tessera/layers"
	"tessera/losses"
)

// Wanted is a requirement of a term or a layer on the values of a column.
type Wanted struct {
	Column string
	Holds  func(v float32) bool // reports whether a value meets the requirement
	Text   string               // text after the value in a message: who reads it, and the requirement
	Layer  bool                 // a layer reads the column, so that the requirement also holds after the training
}

// Wanted returns the requirements of the terms and layers of the model on columns other than images.
func (m *Model) Wanted(l *Layout) (list []Wanted) {
	inside := map[string][]string{} // by the path of a layer inside a block
	for p := range l.Layers() {
		columns := l.unchanged(p.From, inside)
		if l.at[p.Path] == nil && rearranges(p.Layer) {
			inside[p.Path] = columns
		}
		i, ok := p.Layer.(layers.Indexing)
		if !ok {
			continue
		}
		n := float32(i.Indices())
		for _, name := range columns {
			list = append(list, Wanted{Column: name, Layer: true,
				Holds: func(v float32) bool { return v >= 0 && v < n && v == float32(math.Trunc(float64(v))) },
				Text: fmt.Sprintf("but %s (%s) wants whole numbers from 0 to %g; save whole numbers as integers, because bytes are divided by 255; "+
					"for larger ones increase the vocabulary", p.Path, p.Kind, n-1)})
		}
	}
	for i, term := range m.Losses {
		if term.Loss == nil {
			continue
		}
		reads := term.Reads()
		add := func(key, column string, holds func(float32) bool, want string) {
			if column == "" || column == losses.Images {
				return
			}
			if column == losses.Labels && (key != "against" || !reads.Classes) { // a negative label means an unknown class
				known := holds
				holds, want = func(v float32) bool { return v >= 0 && known(v) }, want+" of a sample whose class is known"
			}
			list = append(list, Wanted{Column: column, Holds: holds,
				Text: fmt.Sprintf("but loss[%d] (%s) reads the column as %s and wants %s", i, term.Kind, key, want)})
		}
		units := float32(l.Size(term.On))
		add("mask", term.Mask, func(v float32) bool { return v == 0 || v == 1 }, "0 or 1; save masks as whole numbers, bool or floats, because bytes are divided by 255")
		add("sample_weight", term.SampleWeight, func(v float32) bool { return v >= 0 }, "a number >= 0")
		switch {
		case reads.Unit:
			add("against", reads.Against, func(v float32) bool { return v >= 0 && v <= 1 }, "a number in [0,1]")
		case reads.Groups > 0:
			add("against", reads.Against, func(v float32) bool { return v < float32(reads.Groups) }, fmt.Sprintf("a group less than %d, the number of groups (groups)", reads.Groups))
		case reads.Classes:
			add("against", reads.Against, func(v float32) bool { return v < units }, fmt.Sprintf("a class less than %g, the number of values of %q", units, term.On))
		case reads.Against == losses.Labels:
			add("against", reads.Against, func(float32) bool { return true }, "the number")
		}
	}
	return list
}

// unchanged returns the columns among names, and the columns that reach one of the names only through layers that rearrange
// values. inside has these columns for the layers inside blocks.
func (l *Layout) unchanged(names []string, inside map[string][]string) (columns []string) {
	for _, name := range names {
		columns = append(columns, inside[name]...)
		if _, column := l.Column(name); column {
			columns = append(columns, name)
		} else if p, published := l.Of(name); p != nil && published == "" && rearranges(p.Layer) {
			columns = append(columns, l.unchanged(p.From, inside)...)
		}
	}
	return columns
}

// rearranges reports whether a layer only rearranges the values of its input, or leaves some out.
func rearranges(l layers.Layer) bool {
	switch l.(type) {
	case *layers.Flatten, *layers.Reshape, *layers.Patches, *layers.Unpatch, *layers.Upsample, *layers.MaxPool, *layers.MaskPatches:
		return true
	}
	return false
}

// ReadsLabels reports whether a part of the model reads the labels of the training images.
func (m *Model) ReadsLabels() bool {
	for _, name := range m.namesRead() {
		if name == losses.Labels || slices.Contains(m.readByDraws(name), losses.Labels) {
			return true
		}
	}
	return false
}

// Unlabelled returns an error for samples without labels if the model reads labels in other ways than as the classes of
// a term.
func (m *Model) Unlabelled(dataset string, shape []int, samples *data.Images) error {
	if m.Baseline != nil || samples.Labels() != nil {
		return nil
	}
	layout, err := m.Layout(shape)
	if err != nil {
		return err
	}
	for _, w := range m.Wanted(layout) {
		if w.Column == losses.Labels {
			return &data.Error{Dataset: dataset, Problem: "its samples have no labels, " + w.Text, Hint: "name them with the key labels, or name another column"}
		}
	}
	for p := range layout.Stacked() {
		if slices.Contains(p.Inputs(), losses.Labels) {
			return &data.Error{Dataset: dataset, Problem: fmt.Sprintf("its images have no labels, but %s (%s) reads them", p.Path, p.Kind),
				Hint: "name them with the key labels, or name another column in from"}
		}
	}
	return nil
}

// Unusable returns an error for the first value that violates a requirement of the model. It checks the samples in the
// given order and skips nil ones.
func (m *Model) Unusable(dataset string, shape []int, samples ...*data.Images) error {
	if m.Baseline != nil {
		return nil
	}
	layout, err := m.Layout(shape)
	if err != nil {
		return err
	}
	wanted := m.Wanted(layout)
	for _, images := range samples {
		if images == nil {
			continue
		}
		for _, w := range wanted {
			if place, v := images.FirstOutside(w.Column, w.Holds); place != "" {
				return &data.Error{Dataset: dataset, Problem: fmt.Sprintf("%s: got %v, %s", place, v, w.Text)}
			}
		}
	}
	return nil
}

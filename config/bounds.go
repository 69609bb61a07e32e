package config

import (
	"errors"
	"fmt"
	"strings"

	"tessera/data"
	"tessera/internal/volume"
	"tessera/layers"
	"tessera/part"
	"tessera/part/table"
)

const (
	// maxValues bounds the size of one tensor: a larger one is probably a typo and would fail later.
	maxValues = 1 << 31

	// maxExpanded bounds a parameter, and a layer's tensors for a batch: 2 GiB. Training stores several tensors of this
	// size.
	maxExpanded = 1 << 29
)

// bounded reports a placed layer whose output, parameters or tensors for a batch are too large.
func (w *walk) bounded(part string, p *Placed) bool {
	for _, q := range p.opened() {
		at := part + strings.TrimPrefix(placeOf(q.Path), placeOf(p.Path))
		if product(q.Out) > maxValues {
			s, _ := q.Layer.(layers.Sized)
			w.report(at, q.Kind, sizeKey(s), fmt.Sprintf("one output has more than %d values", maxValues), "")
			return false
		}
		w.expands(at, q)
	}
	for _, q := range p.Parameters {
		if n := product(q.Shape); n > maxExpanded {
			w.report(part, p.Kind, "", fmt.Sprintf("%s has %d values (%s), and training needs several times that: want at most %s",
				q.Name, n, bytesText(n), bytesText(maxExpanded)), "")
			return false
		}
	}
	return true
}

// expands reports a layer whose intermediate or output tensors for a training batch are too large. Coders use smaller
// batches instead.
func (w *walk) expands(part string, p Placed) {
	if w.model.origin.Doubt("train") != nil || w.model.origin.Doubt(part) != nil {
		return
	}
	batch := w.model.Train.Batch
	if limit := w.model.Dataset.Limit; limit > 0 { // a batch has at most the images of the data set
		batch = min(batch, limit)
	}
	plain, largest, what, advice := true, product(p.Out), "its outputs", "take fewer outputs"
	if e, ok := p.Layer.(layers.Expanding); ok && e.Largest(p.In) > largest {
		plain, largest = false, e.Largest(p.In)
		what, advice = e.Expands(p.In)
	}
	n := product([]int{batch, largest})
	if n <= maxExpanded || plain && w.large { // the layers after a large output are usually as large
		return
	}
	w.large = true
	w.report(part, p.Kind, "", fmt.Sprintf("%s, for each of %d images, take %s in one piece, and training needs several: want at most %s",
		what, batch, bytesText(n), bytesText(maxExpanded)), advice+" or a smaller train.batch")
}

// placeOf is the place in the declaration of the layer at a path: "encoder[1].layers[0]" for "encoder.1.0".
func placeOf(path string) string {
	keys := strings.Split(path, ".")
	part := keys[0]
	if part == "head" {
		part, keys = "head."+keys[1], keys[1:]
	}
	for i, index := range keys[1:] {
		if i > 0 || strings.HasPrefix(part, "head.") {
			part += ".layers"
		}
		part += "[" + index + "]"
	}
	return part
}

// bytesText prints the size of values in float32.
func bytesText(values int) string {
	bytes := 4 * float64(values)
	if bytes < 1e9 {
		return fmt.Sprintf("%.3g MB", bytes/1e6)
	}
	return fmt.Sprintf("%.3g GB", bytes/1e9)
}

// Fitted is a [Baseline] whose size depends on the images.
type Fitted interface {
	// Fits returns a [part.KeyError] for settings that do not fit the number of images or of pixels. 0 images means that
	// the number is not known yet.
	Fits(images, pixels int) error
}

// Bounded returns an error for a number of components for which a tensor of the baseline, for example the atoms, is too
// large. Each product is a number of values per component. The bound is the bound of a layer's parameters.
func Bounded(components int, what string, each ...int) error {
	n := volume.Of(append(each, components))
	if n <= maxExpanded {
		return nil
	}
	return part.KeyErrorf("components", "got %d, whose %s take %s, and training needs several times that: want at most %s",
		components, what, bytesText(n), bytesText(maxExpanded))
}

// fits reports settings of a baseline that do not fit images of shape input; nil means an unknown shape.
func (m *Model) fits(input []int) []table.Diagnostic {
	baseline, ok := m.Baseline.(Fitted)
	if !ok || input == nil || m.origin.Doubt("").Any(func(table.Field) bool { return true }) {
		return nil
	}
	err := baseline.Fits(0, product(input))
	var of part.KeyError
	if !errors.As(err, &of) {
		return nil
	}
	return []table.Diagnostic{m.finding("", "", of.Key, of.Error(), "")}
}

// input is the shape of the model's images, nil if unknown.
func (m *Model) input(shape func(data.Source) []int) []int {
	if m.Dataset.Source == nil || m.origin.Doubt("dataset") != nil {
		return nil
	}
	return shape(m.Dataset.Source)
}

// product is the number of values of a shape, 0 if unknown.
func product(shape []int) int {
	if shape == nil {
		return 0
	}
	return volume.Of(shape)
}

// shapeText prints a shape as "28x28 = 784", and a vector as "784".
func shapeText(shape []int) string {
	texts := make([]string, len(shape))
	for i, d := range shape {
		texts[i] = fmt.Sprint(d)
	}
	text := strings.Join(texts, "x")
	if len(shape) > 1 {
		text += fmt.Sprintf(" = %d", product(shape))
	}
	return text
}

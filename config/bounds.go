package config

import (
	"errors"
	"fmt"
	"strings"

	"tessera/data"
	"tessera/internal/volume"
	"tessera/layers"
	"tessera/part"
	"tessera/table"
)

const (
	// maxValues bounds the size of one tensor: larger ones are probably a typo, and would only fail later.
	maxValues = 1 << 31

	// maxExpanded bounds a parameter, and what a layer computes for a batch: 2 GiB, of which training holds several.
	maxExpanded = 1 << 29
)

// bounded refuses a placed layer whose output or parameters are absurdly large, or which makes too much of a batch.
func (w *walk) bounded(part string, p *Placed) bool {
	for _, q := range p.opened() {
		at := part + strings.TrimPrefix(partOf(q.Path), partOf(p.Path))
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

// expands refuses a layer that makes too much of a training batch, on its way or in the end. Batches of images that
// are only coded are cut to fit.
func (w *walk) expands(part string, p Placed) {
	if w.model.origin.Doubt("train") != nil || w.model.origin.Doubt(part) != nil {
		return
	}
	batch := w.model.Train.Batch
	if limit := w.model.Dataset.Limit; limit > 0 { // a batch has no more images than there are
		batch = min(batch, limit)
	}
	plain, largest, what, advice := true, product(p.Out), "its outputs", "take fewer outputs"
	if e, ok := p.Layer.(layers.Expanding); ok && e.Largest(p.In) > largest {
		plain, largest = false, e.Largest(p.In)
		what, advice = e.Expands(p.In)
	}
	n := product([]int{batch, largest})
	if n <= maxExpanded || plain && w.large { // what follows large outputs is as large, more often than not
		return
	}
	w.large = true
	w.report(part, p.Kind, "", fmt.Sprintf("%s, for each of %d images, take %s in one piece, and training needs several: want at most %s",
		what, batch, bytesText(n), bytesText(maxExpanded)), advice+" or a smaller train.batch")
}

// partOf is what the part at a path is called: "encoder[1].layers[0]" for "encoder.1.0".
func partOf(path string) string {
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
	// Fits refuses settings that do not fit the number of images or of pixels by a [part.KeyError]. 0 images
	// stand for a number that is not known yet.
	Fits(images, pixels int) error
}

// Bounded refuses a number of components for which a tensor of the baseline, the atoms for example, is too large. The product
// of each is the number of values per component. The bound is that of a layer's parameters.
func Bounded(components int, what string, each ...int) error {
	n := volume.Of(append(each, components))
	if n <= maxExpanded {
		return nil
	}
	return part.KeyError{Key: "components", Problem: fmt.Sprintf("got %d, whose %s take %s, and training needs several times that: want at most %s",
		components, what, bytesText(n), bytesText(maxExpanded))}
}

// fits finds what of a baseline does not go with images of shape input, nil where that is not known.
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

// input is the shape of the model's images, nil where it is not known.
func (m *Model) input(shape func(data.Source) []int) []int {
	if m.Dataset.Source == nil || m.origin.Doubt("dataset") != nil {
		return nil
	}
	return shape(m.Dataset.Source)
}

// product is the number of values of a shape, 0 where that is not known.
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

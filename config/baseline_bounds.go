package config

import (
	"errors"
	"fmt"

	"tessera/data"
	"tessera/internal/volume"
	"tessera/part"
	"tessera/table"
)

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

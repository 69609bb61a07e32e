package config

import (
	"fmt"
	"slices"

	"tessera/hooks"
)

// Warnings says, a line each, what is no error in a model, but probably not what its author wants.
func (m *Model) Warnings() (list []string) {
	stops := func(h Hook) bool { _, early := h.Hook.(*hooks.EarlyStopping); return early }
	if m.Dataset.Validation.Test && slices.ContainsFunc(m.AllHooks(), stops) {
		list = append(list, fmt.Sprintf("model %q: early stopping (train.patience) selects an epoch on the test images (dataset.validation = \"test\"), "+
			"so that what is measured on them is too good; hold out training images: dataset.validation = 0.1", m.Name))
	}
	return list
}

package config

import "fmt"

// Warnings says, a line each, what is no error in a model, but probably not what its author wants.
func (m *Model) Warnings() (list []string) {
	if m.Dataset.Validation.Test && m.Train.Patience > 0 {
		list = append(list, fmt.Sprintf("model %q: train.patience selects an epoch on the test images (dataset.validation = \"test\"), "+
			"so that what is measured on them is too good; hold out training images: dataset.validation = 0.1", m.Name))
	}
	return list
}

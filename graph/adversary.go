package graph

import "fmt"

// InputGradient returns the gradient, with respect to the input images, of the terms that compare the output with the clean
// images. It is computed without noise. Attacks need this method of a coder.
func (c *Coder) InputGradient(images, clean []float32) ([]float32, error) {
	if c.model == nil {
		return nil, ErrNoModel
	}
	pixels := c.model.Pixels()
	if len(images) != len(clean) {
		return nil, fmt.Errorf("model %q: gradient of the input: got %d values of images and %d of clean images, want equal numbers", c.model.Spec.Name, len(images), len(clean))
	}
	gradient, err := c.run(Request{Want: []string{InputGradient}}, pixels, images, clean)
	if err != nil {
		return nil, fmt.Errorf("model %q: gradient of the input: %w", c.model.Spec.Name, err)
	}
	return gradient, nil
}

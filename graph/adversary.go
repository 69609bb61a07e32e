package graph

import "fmt"

// InputGradient returns the gradient of the model's terms that compare the output with the images, without noise, with
// respect to images for which it should give back others, the clean ones. It makes a coder one that can be attacked.
func (c *Coder) InputGradient(images, clean []float32) ([]float32, error) {
	if c.model == nil {
		return nil, ErrNoModel
	}
	pixels := c.model.Pixels()
	if len(images) != len(clean) {
		return nil, fmt.Errorf("model %q: gradient of the input: got %d values and %d of clean images, want as many", c.model.Spec.Name, len(images), len(clean))
	}
	gradient, err := c.run(Request{Want: []string{InputGradient}}, pixels, images, clean)
	if err != nil {
		return nil, fmt.Errorf("model %q: gradient of the input: %w", c.model.Spec.Name, err)
	}
	return gradient, nil
}

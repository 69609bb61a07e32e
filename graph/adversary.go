package graph

import (
	"errors"
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/losses"
)

// Target is the name of the input that holds the images which should be given back, where those that are encoded are
// others: attacked ones.
const Target = "target"

// adversary adds the gradient of the reconstruction terms, as they are weighted, with respect to the images.
func (b *builder) adversary(images, output, target *gorgonia.Node) error {
	var loss *gorgonia.Node
	for i, declared := range b.model.Spec.Losses {
		if _, ok := declared.Loss.(losses.Reconstruction); !ok {
			continue
		}
		term, err := b.term(i, 1, images, nil, output, target)
		if err != nil {
			return fmt.Errorf("loss[%d] (%s): %w", i, declared.Kind, err)
		}
		if loss == nil {
			loss = term
		} else if loss, err = gorgonia.Add(loss, term); err != nil {
			return err
		}
	}
	if loss == nil || !ancestors(loss)[images] {
		return errors.New("no loss compares the output with the images: there is no error to raise")
	}
	grads, err := gorgonia.Grad(loss, images)
	if err != nil {
		return fmt.Errorf("differentiating the loss: %w", err)
	}
	return b.tap("gradient of input", grads[0])
}

// InputGradient returns the gradient of the model's reconstruction terms, without noise, with respect to images for which
// it should give back others, the clean ones. It makes a coder one that can be attacked.
func (c *Coder) InputGradient(images, clean []float32) ([]float32, error) {
	gradient, err := c.inputGradient(images, clean)
	if err != nil {
		return nil, fmt.Errorf("model %q: gradient of the input: %w", c.model.Spec.Name, err)
	}
	return gradient, nil
}

func (c *Coder) inputGradient(images, clean []float32) ([]float32, error) {
	pixels := c.model.Pixels()
	if len(images)%pixels != 0 || len(images) != len(clean) {
		return nil, fmt.Errorf("got %d and %d values, want as many, of whole images of %d", len(images), len(clean), pixels)
	}
	gradient := make([]float32, 0, len(images))
	batch := c.model.AtOnce(codingBatch) * pixels
	for from := 0; from < len(images); from += batch {
		to := min(from+batch, len(images))
		r, err := c.runner(&c.adversary, (to-from)/pixels)
		if err != nil {
			return nil, err
		}
		for i, values := range [][]float32{images[from:to], clean[from:to]} {
			if err := r.Bind(i, values); err != nil {
				return nil, err
			}
		}
		if err := r.Run(); err != nil {
			return nil, err
		}
		gradient = append(gradient, r.Tap(0)...)
	}
	return gradient, nil
}

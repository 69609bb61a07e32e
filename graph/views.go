package graph

import (
	"fmt"
	"math/rand/v2"

	"tessera/augment"
)

// HasViews implements [metrics.Viewer].
func (c *Coder) HasViews() bool { return c.model != nil && len(c.model.Spec.Views) > 0 }

// View implements [metrics.Viewer]. A model with one declared view draws both from it.
func (c *Coder) View(v int, images []float32, r *rand.Rand) ([]float32, error) {
	if !c.HasViews() {
		return nil, fmt.Errorf("view %d: the model declares no views", v)
	}
	declared := c.model.Spec.Views
	chain, err := augment.NewChain(declared[min(v, len(declared)-1)].Augment, c.model.Shape)
	if err != nil {
		return nil, fmt.Errorf("model %q: view %d: %w", c.model.Spec.Name, v, err)
	}
	view := make([]float32, len(images))
	return view, chain.Apply(view, images, r)
}

package laws

import (
	"fmt"
	"slices"

	"tessera/laws/gradcheck"
	"tessera/layers"
)

// noises are the inputs that the layer draws.
func (t layerTrial) noises() ([]*gradcheck.Leaf[float64], error) {
	built, err := gradcheck.Build(layerOn[float64](t, t.fresh()), false)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(built.Leaves, func(l *gradcheck.Leaf[float64]) bool { return l.Sampler == nil }), nil
}

func (t layerTrial) noiseless() error {
	if t.training {
		return nil
	}
	if left, err := t.noises(); err != nil {
		return err
	} else if len(left) > 0 {
		return fmt.Errorf("draws %d noise inputs", len(left))
	}
	noisy := t
	noisy.training = true
	if drawn, err := noisy.noises(); err != nil || len(drawn) == 0 {
		return err
	}
	return t.eachRun(func(given, got tensors[float64]) error {
		if err := near(got["output"], given["input"], 0); err != nil {
			return fmt.Errorf("output of a noisy layer, and its input: %w", err)
		}
		return nil
	})
}

func (t layerTrial) saysNoisy() error {
	t.training = true
	drawn, err := t.noises()
	if err != nil {
		return err
	}
	if says := layers.IsNoisy(t.fresh()); says != (len(drawn) > 0) {
		return fmt.Errorf("%d noise inputs, yet Noisy is %v", len(drawn), says)
	}
	return nil
}

// freshNoise uses enough images to make equal noise of two images or two runs impossible unless it is not drawn again.
func (t layerTrial) freshNoise() error {
	const images = 50
	t.training = true
	if drawn, err := t.noises(); err != nil || len(drawn) == 0 {
		return err
	}
	b, err := newLayerTrial(t.fresh, t.in, images, true, t.on).double()
	if err != nil {
		return err
	}
	first, second := b.given(0), b.given(1)
	for _, l := range b.leaves {
		values := first[l.Name]
		switch {
		case l.Sampler == nil:
		case len(values)%images != 0:
			return fmt.Errorf("%s has %d values for %d images", l.Name, len(values), images)
		case slices.Equal(values, slices.Repeat(portion(values, 0, images), images)):
			return fmt.Errorf("%s is the same for each of %d images", l.Name, images)
		case slices.Equal(values, second[l.Name]):
			return fmt.Errorf("%s is the same in run 1 and in run 2", l.Name)
		}
	}
	return nil
}

package laws

import "fmt"

// deterministic compares a layer with itself, applied again.
func (t layerTrial) deterministic() error {
	l := t.fresh()
	var first tensors[float64]
	for range 2 {
		b, err := layerBench[float64](t, l, t.on)
		if err != nil {
			return err
		}
		got, err := b.run(b.given(0))
		if err != nil {
			return err
		}
		if first == nil {
			first = got
		} else if err := got.near(first, 0); err != nil {
			return fmt.Errorf("applied again: %w", err)
		}
	}
	return nil
}

// imagewise compares a batch with its images one by one.
func (t layerTrial) imagewise() error {
	if t.training || t.batch == 1 {
		return nil
	}
	together, err := t.double()
	if err != nil {
		return err
	}
	alone, err := newLayerTrial(t.fresh, t.in, 1, t.training, t.on).double()
	if err != nil {
		return err
	}
	return together.eachRun(func(given, got tensors[float64]) error {
		for i := range t.batch {
			one, err := alone.run(together.ofImage(given, i, t.batch))
			if err != nil {
				return err
			}
			for _, name := range []string{"output", "gradient of input"} {
				if err := near(portion(got[name], i, t.batch), one[name], 1e-12); err != nil {
					return fmt.Errorf("%s of image %d in the batch, and alone: %w", name, i, err)
				}
			}
		}
		return nil
	})
}

// ofImage is what a run of the i-th of n images is given.
func (r *rig[T]) ofImage(given tensors[T], i, n int) tensors[T] {
	own := tensors[T]{}
	for _, l := range r.leaves {
		if own[l.Name] = given[l.Name]; !l.Parameter {
			own[l.Name] = portion(given[l.Name], i, n)
		}
	}
	return own
}

// portion is the i-th of n equal parts.
func portion[T any](values []T, i, n int) []T {
	size := len(values) / n
	return values[i*size : (i+1)*size]
}

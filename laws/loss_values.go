package laws

import (
	"fmt"
	"maps"
	"slices"

	"tessera/engine/ir"
	"tessera/losses"
)

// doubled tests losses that do not compare the images of a batch with each other.
func (t lossTrial) doubled() error {
	if t.fresh().Reads().Per == losses.Batch {
		return nil
	}
	return t.sameAfter(func(x []float64) []float64 { return slices.Concat(x, x) })
}

func (t lossTrial) reordered() error {
	return t.sameAfter(func(x []float64) []float64 {
		first := len(x) / t.rows
		return slices.Concat(x[first:], x[:first])
	})
}

// sameAfter tests that change, applied to a batch and everything read with it, does not change the value of a loss on
// images.
func (t lossTrial) sameAfter(change func([]float64) []float64) error {
	if t.fresh().Reads().Per == losses.Parameter {
		return nil
	}
	return t.eachRun(func(given, got tensors[float64]) error {
		after, err := t.value(given, change)
		if err != nil {
			return err
		}
		return near(after, got["output"], 1e-12)
	})
}

// meanOverImages is the property that allows micro-batches. Noise is drawn for a whole batch.
func (t lossTrial) meanOverImages() error {
	if reads := t.fresh().Reads(); reads.Per != losses.Image || reads.Jacobian {
		return nil
	}
	return t.eachRun(func(given, got tensors[float64]) error {
		mean := 0.0
		for i := range t.rows {
			one, err := t.value(given, func(x []float64) []float64 { return portion(x, i, t.rows) })
			if err != nil {
				return err
			}
			mean += one[0] / float64(t.rows)
		}
		return near(got["output"], []float64{mean}, 1e-12)
	})
}

// value is the loss on another batch: change is applied to a run's inputs per image, and to each of the two views.
func (t lossTrial) value(given tensors[float64], change func([]float64) []float64) ([]float64, error) {
	both := func(x []float64) []float64 {
		if !t.fresh().Reads().Views {
			return change(x)
		}
		return slices.Concat(change(x[:len(x)/2]), change(x[len(x)/2:]))
	}
	rows := len(both(given["x"])) * t.rows / len(given["x"])
	other, err := newLossTrial(t.fresh, rows, t.on).double()
	if err != nil {
		return nil, err
	}
	own := maps.Clone(given)
	for _, l := range other.leaves {
		if l.Batch {
			own[l.Name] = both(given[l.Name])
		}
	}
	got, err := other.run(own)
	return got["output"], err
}

// finite is also tested in float32, which overflows earlier.
func (t lossTrial) finite() error {
	return inBoth(t.stand,
		func(b bench[float64]) error { return finiteLoss(b, t.fresh()) },
		func(b bench[float32]) error { return finiteLoss(b, t.fresh()) })
}

// finiteLoss runs a loss on equal values, and on values of which one differs.
func finiteLoss[T ir.Float](b bench[T], l losses.Loss) error {
	edges := []T{0, 1, 0.5, 1e-30, 1e-8, 1 - 0x1p-24}
	if !l.Reads().Unit {
		edges = append(edges, -1, -1e-30, 100, -100)
	}
	given := b.given(0)
	for _, edge := range edges {
		for _, last := range []T{edge, 0, 1} {
			for _, wanted := range []T{0, 1} {
				x := slices.Repeat([]T{edge}, len(given["x"]))
				x[len(x)-1] = last
				given["x"], given["target"] = x, slices.Repeat([]T{wanted}, len(x))
				got, err := b.run(given)
				if err == nil {
					err = got.finite()
				}
				if err != nil {
					return fmt.Errorf("values of %v and %v, targets of %v: %w", edge, last, wanted, err)
				}
			}
		}
	}
	return nil
}

package laws

import (
	"fmt"
	"math"
	"slices"

	"tessera/engine/ir"
	"tessera/layers"
)

// inputRanges are intervals of images.
var inputRanges = []layers.Interval{{Low: 0, High: 1}, {Low: -1, High: 1}, {Low: 0.3, High: 0.6}, {Low: -60, High: 60}, {Low: -9, High: -2}}

// outputRange is also tested in float32, up to rounding.
func (t layerTrial) outputRange() error {
	return inBoth(t.stand,
		func(b bench[float64]) error { return inRange(b, t.fresh(), 1e-12) },
		func(b bench[float32]) error { return inRange(b, t.fresh(), 1e-6) })
}

// finite is also tested in float32, which overflows earlier.
func (t layerTrial) finite() error { return inBoth(t.stand, finiteRuns[float64], finiteRuns[float32]) }

// inBoth judges a part in both precisions.
func inBoth(s stand, double func(bench[float64]) error, single func(bench[float32]) error) error {
	d, err := s.double()
	if err != nil {
		return err
	}
	if err := double(d); err != nil {
		return err
	}
	f, err := s.single()
	if err != nil {
		return err
	}
	if err := single(f); err != nil {
		return fmt.Errorf("float32: %w", err)
	}
	return nil
}

// inRange runs a layer on images that reach the ends of intervals.
func inRange[T ir.Float](b bench[T], l layers.Layer, tolerance float64) error {
	for _, within := range inputRanges {
		declared := layers.OutputRange(l, within)
		if !(declared.Low <= declared.High) {
			return fmt.Errorf("range %v of inputs in %v", declared, within)
		}
		for i := range runs {
			given := b.given(i)
			x := uniform[T](len(given["input"]), within.Low, within.High)
			x[0], x[1] = T(within.Low), T(within.High)
			given["input"] = x
			got, err := b.run(given)
			if err == nil {
				err = bounded(got["output"], declared, tolerance)
			}
			if err != nil {
				return fmt.Errorf("run %d, of inputs in %v: %w", i+1, within, err)
			}
		}
	}
	return nil
}

func bounded[T ir.Float](values []T, by layers.Interval, tolerance float64) error {
	for i, v := range values {
		v, slack := float64(v), tolerance*math.Abs(float64(v))
		if !(v >= by.Low-slack && v <= by.High+slack) {
			return fmt.Errorf("output %d is %v, declared to lie in %v", i, v, by)
		}
	}
	return nil
}

// finiteRuns runs a layer on images of one value and of its opposite.
func finiteRuns[T ir.Float](b bench[T]) error {
	given := b.given(0)
	for i, v := range []T{0, 1e-30, -1e-30, 20, -20, 100, -100, 1e4, -1e4} {
		given["input"] = slices.Repeat([]T{v}, len(given["input"]))
		given["input"][0] = -v
		got, err := b.run(given)
		if err == nil {
			err = got.finite()
		}
		if err != nil {
			return fmt.Errorf("run %d, of inputs %v: %w", i+1, v, err)
		}
	}
	return nil
}

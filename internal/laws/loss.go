package laws

import (
	"fmt"
	"math"
	"slices"

	"tessera/internal/gradcheck"
	"tessera/layers"
	"tessera/losses"
)

// Loss is what every loss obeys.
var Loss = []Law[losses.Loss]{
	{"is taken on one thing, and by default on that", takenOn},
	{"is a scalar", scalar},
	{"is finite at the edges of its domain, gradients included", lossFinite},
	{"does not change when the batch is doubled", doubled},
	{"does not depend on the order of the images", reordered},
	{"is a mean over images where it sees them", meanOverImages},
}

const lossColumns = 6

func takenOn(fresh func() losses.Loss) error {
	l := fresh()
	var kinds []string
	if _, ok := l.(losses.Reconstruction); ok {
		kinds = append(kinds, "output")
	}
	if _, ok := l.(losses.CodePenalty); ok {
		kinds = append(kinds, "code")
	}
	if _, ok := l.(losses.JacobianPenalty); ok {
		kinds = append(kinds, "code")
	}
	if _, ok := l.(losses.AtomPenalty); ok {
		kinds = append(kinds, "atoms")
	}
	_, weights := l.(losses.WeightPenalty)
	if weights {
		kinds = append(kinds, l.On())
	}
	if len(kinds) != 1 || kinds[0] != l.On() || weights && slices.Contains([]string{"output", "code", "atoms", ""}, l.On()) {
		return fmt.Errorf("taken on %q by default, implements the interfaces of %q", l.On(), kinds)
	}
	return nil
}

// lossDomain is where l is defined.
func lossDomain(l losses.Loss) layers.Interval {
	if _, ok := l.(losses.UnitInterval); ok {
		return layers.Interval{Low: 0, High: 1}
	}
	return layers.Everything
}

// lossValues returns values of l's domain and targets for that many rows.
func lossValues(l losses.Loss, rows int) (x, target []float32) {
	x = gradcheck.Values[float32](rows*lossColumns, lossDomain(l), source())
	return x, uniform(rows*lossColumns, 0, 1)
}

func lossOf(l losses.Loss, x, target []float32) (value []float32, shape []int, err error) {
	return gradcheck.Evaluate(gradcheck.Loss(l, x, target, len(x)/lossColumns, lossColumns))
}

func scalar(fresh func() losses.Loss) error {
	for rows := 1; rows <= 5; rows++ {
		x, target := lossValues(fresh(), rows)
		value, shape, err := lossOf(fresh(), x, target)
		if err != nil {
			return err
		}
		if len(shape) != 0 || len(value) != 1 {
			return fmt.Errorf("%d rows: value %v of shape %v", rows, value, shape)
		}
	}
	return nil
}

func lossFinite(fresh func() losses.Loss) error {
	l := fresh()
	edges := []float32{0, 1, 0.5, 1e-30, 1e-8, 1 - 0x1p-24}
	if lossDomain(l) == layers.Everything {
		edges = append(edges, -1, -1e-30, 100, -100)
	}
	for _, edge := range edges {
		for _, last := range []float32{edge, 0, 1} { // all equal, and one that is not
			for _, wanted := range []float32{0, 1} {
				x := slices.Repeat([]float32{edge}, 2*lossColumns)
				x[len(x)-1] = last
				target := slices.Repeat([]float32{wanted}, len(x))
				value, _, err := lossOf(l, x, target)
				if err != nil {
					return err
				}
				if err := allFinite(value); err != nil {
					return fmt.Errorf("values of %v and %v, targets of %v: %w", edge, last, wanted, err)
				}
				if err := finiteGradients(gradcheck.Loss(l, x, target, 2, lossColumns)); err != nil {
					return fmt.Errorf("values of %v and %v, targets of %v: %w", edge, last, wanted, err)
				}
			}
		}
	}
	return nil
}

func doubled(fresh func() losses.Loss) error {
	return sameAfter(fresh(), "twice the batch", func(x []float32) []float32 { return slices.Concat(x, x) })
}

func reordered(fresh func() losses.Loss) error {
	return sameAfter(fresh(), "the batch in another order", func(x []float32) []float32 {
		return slices.Concat(x[2*lossColumns:], x[:2*lossColumns])
	})
}

// meanOverImages is what lets all images be taken a few at a time. A penalty of the code may look at all codes together.
func meanOverImages(fresh func() losses.Loss) error {
	l := fresh()
	_, reconstruction := l.(losses.Reconstruction)
	if _, atoms := l.(losses.AtomPenalty); !reconstruction && !atoms {
		return nil
	}
	const rows, first = 5, 2
	x, target := lossValues(l, rows)
	all, _, err := lossOf(l, x, target)
	if err != nil {
		return err
	}
	a, _, err := lossOf(l, x[:first*lossColumns], target[:first*lossColumns])
	if err != nil {
		return err
	}
	b, _, err := lossOf(l, x[first*lossColumns:], target[first*lossColumns:])
	if err != nil {
		return err
	}
	got, want := (first*float64(a[0])+(rows-first)*float64(b[0]))/rows, float64(all[0])
	if math.Abs(got-want) > 1e-5*(1e-3+math.Abs(want)) {
		return fmt.Errorf("%v, %v of two of five images and %v of the others", want, a[0], b[0])
	}
	return nil
}

// sameAfter wants the value of a loss on images to stay when change is done to a batch and its targets.
func sameAfter(l losses.Loss, what string, change func([]float32) []float32) error {
	if _, ok := l.(losses.WeightPenalty); ok {
		return nil
	}
	x, target := lossValues(l, 5)
	before, _, err := lossOf(l, x, target)
	if err != nil {
		return err
	}
	after, _, err := lossOf(l, change(x), change(target))
	if err != nil {
		return err
	}
	if a, b := float64(before[0]), float64(after[0]); math.Abs(a-b) > 1e-5*(1e-3+math.Abs(a)) {
		return fmt.Errorf("%v, for %s %v", a, what, b)
	}
	return nil
}

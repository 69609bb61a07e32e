package laws

import (
	"fmt"
	"slices"

	"tessera/gradcheck"
	"tessera/graph"
	"tessera/internal/random"
	"tessera/layers"
	"tessera/losses"
)

// Loss is what every loss obeys, in batches of 1, 2 and 5, on both back ends, in float64, in a first run of what was compiled
// and in a second.
var Loss Kit[losses.Loss] = trials[losses.Loss, lossTrial]{each: eachLossTrial, laws: []trialLaw[lossTrial]{
	{"is taken on one thing, and by default on that", lossTrial.takenOn},
	{"is a scalar", lossTrial.scalar},
	{"is finite at the edges of its domain, gradients included", lossTrial.finite},
	{"does not change when the batch is doubled", lossTrial.doubled},
	{"does not depend on the order of the images", lossTrial.reordered},
	{"is a mean over images where it sees them", lossTrial.meanOverImages},
	{"has the right gradients", lossTrial.gradients},
	{"keeps nothing of one run for the next", lossTrial.forgets},
	{"gives the same on both back ends", lossTrial.likeTape},
	{"gives in float32 what it gives in float64, rounded", lossTrial.rounds},
}}

const lossColumns = 6

// lossTrial is one way to run a loss.
type lossTrial struct {
	stand
	fresh func() losses.Loss
	rows  int
}

func (t lossTrial) String() string { return fmt.Sprintf("%d rows on the %s", t.rows, t.on) }

func eachLossTrial(fresh func() losses.Loss, try func(t lossTrial)) error {
	for _, rows := range batches {
		for _, on := range backends {
			try(newLossTrial(fresh, rows, on))
		}
	}
	return nil
}

func newLossTrial(fresh func() losses.Loss, rows int, on backend) lossTrial {
	t := lossTrial{fresh: fresh, rows: rows}
	t.stand = newStand(on,
		func(on backend) (bench[float64], error) { return lossBench[float64](t, on) },
		func(on backend) (bench[float32], error) { return lossBench[float32](t, on) })
	return t
}

func lossBench[T graph.Float](t lossTrial, on backend) (bench[T], error) {
	r, err := newRig(lossOn[T](t), on, true)
	return bench[T]{r, func(i int) tensors[T] { return lossData[T](t, i) }}, err
}

// lossOn is the loss on the values of the first run.
func lossOn[T graph.Float](t lossTrial) gradcheck.Expression[T] {
	data := lossData[T](t, 0)
	return gradcheck.Loss(t.fresh(), data["x"], data["target"], t.rows, lossColumns)
}

// lossData draws values of the loss's domain and targets for the i-th run.
func lossData[T graph.Float](t lossTrial, i int) tensors[T] {
	draw := func(name string, within layers.Interval) []T {
		stream := random.Stream(gradcheck.Seed, name, uint64(i))
		return converted[T](gradcheck.Values[float32](t.rows*lossColumns, within, stream))
	}
	return tensors[T]{"x": draw("x", lossDomain(t.fresh())), "target": draw("target", layers.Interval{Low: 0, High: 1})}
}

// lossDomain is where l is defined.
func lossDomain(l losses.Loss) layers.Interval {
	if _, ok := l.(losses.UnitInterval); ok {
		return layers.Interval{Low: 0, High: 1}
	}
	return layers.Everything
}

func (t lossTrial) takenOn() error {
	l := t.fresh()
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

func (t lossTrial) scalar() error {
	b, err := t.double()
	if err != nil {
		return err
	}
	return b.eachRun(func(_, got tensors[float64]) error {
		if len(b.shape) != 0 || len(got["output"]) != 1 {
			return fmt.Errorf("value %v of shape %v", got["output"], b.shape)
		}
		return nil
	})
}

// gradients holds a loss to the gradient gate, which has runs of its own.
func (t lossTrial) gradients() error {
	if t.on != onTape {
		return nil
	}
	return gradcheck.Check(lossOn[float64](t))
}

package laws

import (
	"fmt"
	"slices"

	"tessera/engine/ir"
	"tessera/internal/random"
	"tessera/laws/gradcheck"
	"tessera/layers"
	"tessera/losses"
)

// Loss contains the laws of losses: in batches of 1, 2 and 5, on both back ends, in float64, in a first and a second run of
// the compiled program.
var Loss Kit[losses.Loss] = trials[losses.Loss, lossTrial]{each: eachLossTrial, laws: []trialLaw[lossTrial]{
	{"is taken by default on what it reads", lossTrial.takenOn},
	{"is a scalar", lossTrial.scalar},
	{"is finite at the edges of its domain, gradients included", lossTrial.finite},
	{"does not change when the batch is doubled", lossTrial.doubled},
	{"does not depend on the order of the images", lossTrial.reordered},
	{"is a mean over images where it says so", lossTrial.meanOverImages},
	{"has the right gradients", lossTrial.gradients},
	{"keeps nothing of one run for the next", lossTrial.forgets},
	{"gives the same on both back ends", lossTrial.likeTape},
	{"gives on two processes what it gives on one", lossTrial.divided},
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

func lossBench[T ir.Float](t lossTrial, on backend) (bench[T], error) {
	r, err := newRig(lossOn[T](t), on, true)
	return bench[T]{r, func(i int) tensors[T] { return lossData[T](t, i) }}, err
}

// lossOn is the loss on the values of the first run.
func lossOn[T ir.Float](t lossTrial) gradcheck.Expression[T] {
	data := lossData[T](t, 0)
	return gradcheck.Loss(t.fresh(), data["x"], data["target"], t.given(), lossColumns)
}

// given is the number of rows of what the loss reads: two for each image where it reads views.
func (t lossTrial) given() int {
	if t.fresh().Reads().Views {
		return 2 * t.rows
	}
	return t.rows
}

// lossData draws values of the loss's domain and targets for the i-th run.
func lossData[T ir.Float](t lossTrial, i int) tensors[T] {
	draw := func(name string, within layers.Interval) []T {
		stream := random.Stream(gradcheck.Seed, name, uint64(i))
		return converted[T](gradcheck.Values[float32](t.given()*lossColumns, within, stream))
	}
	return tensors[T]{"x": draw("x", lossDomain(t.fresh())), "target": draw("target", layers.Interval{Low: 0, High: 1})}
}

// lossDomain is the domain of l.
func lossDomain(l losses.Loss) layers.Interval {
	if l.Reads().Unit {
		return layers.Interval{Low: 0, High: 1}
	}
	return layers.Everything
}

func (t lossTrial) takenOn() error {
	l := t.fresh()
	reads, on := l.Reads(), l.On()
	named := slices.Contains([]string{losses.Code, losses.Output}, on)
	wrong := ""
	switch {
	case on == "":
		wrong = "is taken on nothing"
	case reads.Per == losses.Parameter && (named || on == losses.Atoms || reads.On || reads.Images || reads.Labels || reads.Atoms || reads.Jacobian):
		wrong = "reads parameters, and something else"
	case reads.Per != losses.Parameter && reads.Atoms != (on == losses.Atoms):
		wrong = "reads the atoms only if it is taken on them"
	case reads.Per != losses.Parameter && !reads.Atoms && !reads.On:
		wrong = "is taken on a value that it does not read"
	}
	if wrong != "" {
		return fmt.Errorf("%s: on %q by default, and reads %+v", wrong, on, reads)
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

// gradients applies the gradient check, which compiles separate programs, to a loss.
func (t lossTrial) gradients() error {
	if t.on != onTape {
		return nil
	}
	return gradcheck.Check(lossOn[float64](t))
}

package laws

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"tessera/internal/engine/ir"
	"tessera/internal/random"
	"tessera/internal/volume"
	"tessera/laws/gradcheck"
	"tessera/layers"
	"tessera/losses"
)

// Loss contains the laws of losses: in batches of 1 and 3, on both back ends, in float64, in two runs of the compiled
// program. All values have the shape (6).
var Loss = LossOf(Inputs{On: []int{lossColumns}, Against: lossColumns})

// Inputs are the inputs of a loss whose values have other shapes than (6).
type Inputs struct {
	On        []int            // shape of the value `on`
	Against   int              // number of values of `against`; 0 means as many as `on` has
	Whole     int              // if > 0, the values of `against` are whole numbers below it
	Published map[string][]int // shapes of the published values that differ from On
}

// LossOf returns the laws of [Loss] for losses of other inputs.
func LossOf(in Inputs) Kit[losses.Loss] {
	if in.Against == 0 {
		in.Against = volume.Of(in.On)
	}
	return inTrials(func(fresh func() losses.Loss, try func(t lossTrial)) error {
		return eachLossTrial(in, fresh, try)
	}, lossLaws)
}

var lossLaws = []law[lossTrial]{
	{"is applied by default to a value that it reads", lossTrial.appliedTo},
	{"is a scalar", lossTrial.scalar},
	{"is finite at the edges of its domain, gradients included", lossTrial.finite},
	{"does not change when the batch is doubled", lossTrial.doubled},
	{"does not depend on the order of the images", lossTrial.reordered},
	{"is a mean over images if it says so", lossTrial.meanOverImages},
	{"has the right gradients", lossTrial.gradients},
	{"has no memory of earlier runs", lossTrial.forgets},
	{"gives the same on both back ends", lossTrial.likeTape},
	{"gives on two processes what it gives on one", lossTrial.divided},
	{"gives in float32 what it gives in float64, rounded", lossTrial.rounds},
}

const lossColumns = 6

// lossTrial is one way to run a loss.
type lossTrial struct {
	stand
	in    Inputs
	fresh func() losses.Loss
	rows  int
	like  func(rows int) lossTrial // returns the trial with the given number of rows on the same back end, compiled once
}

func (t lossTrial) String() string { return fmt.Sprintf("%d rows on the %s", t.rows, t.on) }

func eachLossTrial(in Inputs, fresh func() losses.Loss, try func(t lossTrial)) error {
	trials := map[int]map[backend]lossTrial{} // by the number of rows
	var like func(rows int, on backend) lossTrial
	like = func(rows int, on backend) lossTrial {
		if trials[rows] == nil {
			trials[rows] = map[backend]lossTrial{}
			t := lossTrial{in: in, fresh: fresh, rows: rows}
			for _, s := range newStands(func(on backend) (*rig, error) { return t.compileLoss(on, false) }, t.compileLoss) {
				trials[rows][s.on] = lossTrial{s, in, fresh, rows, func(rows int) lossTrial { return like(rows, s.on) }}
			}
		}
		return trials[rows][on]
	}
	for _, rows := range batches {
		for _, on := range backends {
			try(like(rows, on))
		}
	}
	return nil
}

func (t lossTrial) compileLoss(on backend, single bool) (*rig, error) {
	if single {
		return compile(lossOn[float32](t), on, true, t.data)
	}
	return compile(lossOn[float64](t), on, true, t.data)
}

// lossOn returns the loss for the values of the first run.
func lossOn[T ir.Float](t lossTrial) gradcheck.Expression[T] {
	data := t.data(0)
	return gradcheck.LossOf(t.fresh(), converted[T](data["x"]), converted[T](data["target"]), t.given(), t.in.On, t.in.Published)
}

// given returns the number of rows of the loss's inputs: two for each image if the loss reads views.
func (t lossTrial) given() int {
	if t.fresh().Reads().Views {
		return 2 * t.rows
	}
	return t.rows
}

// data draws values of the loss's domain and targets for the i-th run.
func (t lossTrial) data(i int) tensors {
	unit := layers.Interval{Low: 0, High: 1}
	domain := layers.Everything
	if t.fresh().Reads().Unit {
		domain = unit
	}
	draw := func(name string, columns int, within layers.Interval) []float64 {
		stream := random.Stream(gradcheck.Seed, name, uint64(i))
		return converted[float64](gradcheck.Values[float32](t.given()*columns, within, stream))
	}
	target := draw("target", t.in.Against, unit)
	for j := 0; t.in.Whole > 0 && j < len(target); j++ {
		target[j] = math.Floor(target[j] * float64(t.in.Whole))
	}
	return tensors{"x": draw("x", volume.Of(t.in.On), domain), "target": target}
}

func (t lossTrial) appliedTo() error {
	l := t.fresh()
	reads, on := l.Reads(), l.On()
	named := slices.Contains([]string{losses.Code, losses.Output}, on)
	wrong := ""
	switch {
	case on == "":
		wrong = "has no default value"
	case reads.Per == losses.Parameter && (named || on == losses.Atoms || reads.On || reads.Against != "" || reads.Atoms || reads.Jacobian):
		wrong = "reads parameters and other values"
	case reads.Per != losses.Parameter && reads.Atoms != (on == losses.Atoms) && len(reads.Published) == 0:
		wrong = "must read the atoms if and only if it applies to them"
	case reads.Per != losses.Parameter && !reads.Atoms && !reads.On && len(reads.Published) == 0:
		wrong = "applies to a value that it does not read"
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
	return b.eachRun(func(_, got tensors) error {
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

// doubled checks, for losses that do not compare images with each other, that duplicating the batch does not change the value.
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

// sameAfter checks that change, applied to all inputs of a batch, does not change the value of a loss on images.
func (t lossTrial) sameAfter(change func([]float64) []float64) error {
	if t.fresh().Reads().Per == losses.Parameter {
		return nil
	}
	return t.eachRun(func(given, got tensors) error {
		after, err := t.value(given, change)
		if err != nil {
			return err
		}
		return near(after, got["output"], 1e-12)
	})
}

// meanOverImages checks the property that makes micro-batches possible: the loss is a mean over images. Noise is drawn for the
// complete batch.
func (t lossTrial) meanOverImages() error {
	if reads := t.fresh().Reads(); reads.Per != losses.Image || reads.Jacobian {
		return nil
	}
	return t.eachRun(func(given, got tensors) error {
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

// value returns the loss of a changed batch. change is applied to the list of images of each input, and separately to each of
// two views.
func (t lossTrial) value(given tensors, change func([]float64) []float64) ([]float64, error) {
	both := func(x []float64) []float64 {
		if !t.fresh().Reads().Views {
			return change(x)
		}
		return slices.Concat(change(x[:len(x)/2]), change(x[len(x)/2:]))
	}
	rows := len(both(given["x"])) * t.rows / len(given["x"])
	other, err := t.like(rows).double()
	if err != nil {
		return nil, err
	}
	own := maps.Clone(given)
	for _, l := range other.leaves {
		if l.batch {
			own[l.name] = both(given[l.name])
		}
	}
	got, err := other.run(own)
	return got["output"], err
}

// finite checks the results, also in float32, which overflows earlier: on equal values, and on values of which one differs.
func (t lossTrial) finite() error {
	edges := []float64{0, 1, 0.5, 1e-30, 1e-8, 1 - 0x1p-24}
	if !t.fresh().Reads().Unit {
		edges = append(edges, -1, -1e-30, 100, -100)
	}
	return t.inBoth(func(r *rig) error {
		given := r.given(0)
		for _, edge := range edges {
			for _, last := range []float64{edge, 0, 1} {
				for _, wanted := range []float64{0, max(1, float64(t.in.Whole)-1)} {
					x := slices.Repeat([]float64{edge}, len(given["x"]))
					x[len(x)-1] = last
					given["x"], given["target"] = x, slices.Repeat([]float64{wanted}, len(given["target"]))
					got, err := r.run(given)
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
	})
}

func (t lossTrial) divided() error { return t.stand.divided(t.rows) }

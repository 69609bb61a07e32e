package hooks

import "math"

// Average makes a moving average of the parameters the model of a run: what is validated, kept and opened. Training continues
// with the parameters themselves. After step t the average is
//
//	a = (1-decay) / (1-decay^t) sum over the steps s = 1..t of decay^(t-s) w_s
//
// where w_s are the parameters after step s and its projection, running averages of layers included. It is the mean of the
// parameters so far, each step weighted decay times as much as the one after it: the first draw has no part in it. The
// model that is shown is the average after a further projection, for a set that is not convex does not hold averages of its
// points.
//
// Source: Polyak and Juditsky, Acceleration of Stochastic Approximation by Averaging, 1992; the correction of the first steps
// is that of Adam's moments.
type Average struct {
	Decay float64 `toml:"decay" want:"in (0,1)" doc:"decay of the exponential moving average"`
}

func init() {
	Registry.Register("average", "the run's model is a moving average of the parameters", func() Hook {
		a := &Average{}
		a.Defaults()
		return a
	})
}

// Defaults sets a decay of 0.999.
func (a *Average) Defaults() { a.Decay = 0.999 }

// NeedsSteps implements [NeedsSteps].
func (a *Average) NeedsSteps() (problem, hint string) {
	return "%s takes no small steps that an average would smooth: every iteration is lower than the last", "leave the average out"
}

// Stage implements [Staged].
func (*Average) Stage() Stage { return Follow }

// Attach implements [Hook].
func (a *Average) Attach(t Training) (*Active, error) {
	m, active := follow(t, func(step int) float32 {
		return float32((1 - a.Decay) / -math.Expm1(float64(step)*math.Log(a.Decay)))
	})
	active.Shown = func(p *Parameter) []float32 { return m.values[p.Index] }
	return active, nil
}

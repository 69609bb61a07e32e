package hooks

import "math"

// Average replaces the model of the run, which is validated, saved and opened, by a moving average of the parameters.
// Training itself uses the current parameters. After step t the average is
//
//	a = (1-decay) / (1-decay^t) sum over the steps s = 1..t of decay^(t-s) w_s
//
// where w_s are the parameters after step s and its projection, including the running averages of layers. It is a weighted
// mean over the steps; the weight decreases by the factor decay for each earlier step. The initial values do not contribute.
// The constraints project the average as well, because the average of points of a non-convex set may lie outside the set.
//
// Source: Polyak and Juditsky, Acceleration of Stochastic Approximation by Averaging, 1992; the bias correction is that of
// Adam.
type Average struct {
	Decay float64 `toml:"decay" want:"in (0,1)" doc:"decay of the exponential moving average"`
}

func init() {
	Registry.Register("average", "the run's model is a moving average of the parameters", func() Hook { return &Average{Decay: 0.999} })
}

func (a *Average) NeedsSteps() (problem, hint string) {
	return "%s has no noisy steps to average: every iteration decreases the objective", "remove the hook"
}

func (*Average) Stage() Stage             { return Follow }
func (*Average) Replicated() (state bool) { return false }

func (a *Average) Attach(t Training) (*Active, error) {
	active, _ := movingAverage(t, func(*Step) float32 {
		return float32((1 - a.Decay) / -math.Expm1(float64(t.Step()+1)*math.Log(a.Decay)))
	})
	active.Substitute = active.Average
	return active, nil
}

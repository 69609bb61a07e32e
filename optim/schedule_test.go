package optim_test

import (
	"math"
	"testing"

	"tessera/internal/expect"
	"tessera/optim"
)

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	expect.Near(t, got, want, 1e-12*(1+math.Abs(want)), what)
}

func TestStepFallsAtTheFirstStepOfEachStair(t *testing.T) {
	s := &optim.Step{Epochs: 10, Ratio: 0.5}
	for epoch, want := range map[float64]float64{0: 1, 9.999: 1, 10: 0.5, 19.999: 0.5, 20: 0.25, 95: math.Pow(0.5, 9)} {
		near(t, "factor", s.Factor(epoch, 100), want)
	}
	// the first step of an epoch is found for every number of steps per epoch
	for _, stepsPerEpoch := range []int{1, 3, 7, 469} {
		first := 10*stepsPerEpoch + 1
		near(t, "rate before", optim.Rate(1, s, 0, first-1, stepsPerEpoch, 100), 1)
		near(t, "rate at", optim.Rate(1, s, 0, first, stepsPerEpoch, 100), 0.5)
	}
}

func TestExponentialIsTheRatioToThePowerOfTheEpoch(t *testing.T) {
	s := &optim.Exponential{Ratio: 0.9}
	near(t, "start", s.Factor(0, 50), 1)
	near(t, "two epochs", s.Factor(2, 50), 0.81)
	near(t, "half an epoch", s.Factor(0.5, 50), math.Sqrt(0.9))
}

func TestCosineRunsFromOneToFinal(t *testing.T) {
	s := &optim.Cosine{Final: 0.1}
	for epoch, want := range map[float64]float64{
		0: 1, 25: 0.1 + 0.45*(1+math.Sqrt2/2), 50: 0.55, 75: 0.1 + 0.45*(1-math.Sqrt2/2), 100: 0.1, 130: 0.1,
	} {
		near(t, "factor", s.Factor(epoch, 100), want)
	}
	near(t, "a run of no epochs", s.Factor(0, 0), 0.1)
}

func TestLinearRunsFromOneToFinal(t *testing.T) {
	s := &optim.Linear{Final: 0.2}
	for epoch, want := range map[float64]float64{0: 1, 25: 0.8, 50: 0.6, 100: 0.2, 130: 0.2} {
		near(t, "factor", s.Factor(epoch, 100), want)
	}
	near(t, "a run of no epochs", s.Factor(0, 0), 0.2)
}

// The expected factors are those of PyTorch's OneCycleLR with total_steps = 101, pct_start = 31/101 and otherwise its
// defaults.
func TestOneCycleRisesAndFalls(t *testing.T) {
	s := optim.Schedules
	e, _ := s.Lookup("one_cycle")
	for epoch, want := range map[float64]float64{0: 0.040000000000000036, 10: 0.28, 29: 0.9973705097767712, 30: 1.0, 31: 0.9994965352845243, 65: 0.500002, 99: 0.0005074647154757879, 100: 4e-06} {
		near(t, "factor", e.New().Factor(epoch, 100), want)
	}
	near(t, "without a rise", (&optim.OneCycle{Start: 0.5, Final: 0.1}).Factor(0, 10), 1)
}

func TestWarmUpRisesLinearlyToTheScheduledRate(t *testing.T) {
	const base, stepsPerEpoch, epochs = 0.01, 4, 10
	constant := optim.Constant{}
	for step, want := range map[int]float64{1: base / 8, 2: base / 4, 7: base * 7 / 8, 8: base, 9: base, 40: base} {
		near(t, "two epochs of four steps", optim.Rate(base, constant, 2, step, stepsPerEpoch, epochs), want)
	}
	near(t, "no warm-up", optim.Rate(base, constant, 0, 1, stepsPerEpoch, epochs), base)
	near(t, "a fraction of an epoch", optim.Rate(base, constant, 0.5, 1, stepsPerEpoch, epochs), base/2)

	cosine := &optim.Cosine{}
	near(t, "over a cosine", optim.Rate(base, cosine, 2, 5, stepsPerEpoch, epochs), base*5/8*cosine.Factor(1, epochs))
	near(t, "a cosine's last step", optim.Rate(base, cosine, 2, 40, stepsPerEpoch, epochs), base*cosine.Factor(9.75, epochs))
}

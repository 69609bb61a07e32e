package parts

import (
	"os"
	"testing"

	"tessera/apps/cli"
	"tessera/attack"
	"tessera/classical"
	"tessera/constraints"
	"tessera/data"
	"tessera/data/augment"
	"tessera/hooks"
	"tessera/laws"
	"tessera/layers"
	"tessera/losses"
	"tessera/metrics"
	"tessera/optim"
	"tessera/posthoc"
)

// TestMain is the command if the tests of package cli say so: they use this binary for both.
func TestMain(m *testing.M) {
	if os.Getenv("CLI_TEST_AS_COMMAND") != "" {
		cli.Main()
	}
	os.Exit(m.Run())
}

func TestThePartsObeyTheLaws(t *testing.T) {
	obeys(t, "softsign", laws.Layer, func() layers.Layer { return &Softsign{Scale: 1} })
	obeys(t, "centre", laws.Layer, func() layers.Layer { return &Centre{} })
	obeys(t, "twice", laws.Layer, func() layers.Layer { return &Twice{Layers: []layers.Layer{&layers.PRelu{Slope: 0.25}}} })
	obeys(t, "pair_spread", laws.Loss, func() losses.Loss { return &PairSpread{Epsilon: 1e-12} })
	obeys(t, "darken", laws.Augmentation, func() augment.Augmentation { return &Darken{By: 0.5} })
	obeys(t, "signs", laws.Init, func() layers.Init { return &Signs{Scale: 1} })
	obeys(t, "lognormal", laws.Draw, func() data.Draw { return &Lognormal{Stddev: 1} })
	obeys(t, "mean_code", laws.Metric, func() metrics.Metric { return meanCode{} })
	obeys(t, "at_least", laws.Constraint, func() constraints.Constraint { return &AtLeast{Low: -0.5} })
	obeys(t, "signed", laws.Rule, func() optim.Rule { return &Signed{Rate: 0.001} })
	obeys(t, "row_scaled", laws.Rule, func() optim.Rule { return &RowScaled{Rate: 0.01} })
	obeys(t, "row_scaled on matrices", laws.Whole, func() optim.Whole { return &RowScaled{Rate: 0.01} })
	obeys(t, "root", laws.Schedule, func() optim.Schedule { return &Root{Epochs: 10} })
	obeys(t, "cyclic", laws.Weight, func() losses.Weight { return &Cyclic{Peak: 1, Epochs: 10} })
	obeys(t, "alternating", laws.Weight, func() losses.Weight { return &Alternating{From: 1} })
	obeys(t, "shrink", laws.Hook, func() hooks.Hook { return &Shrink{By: 0.9} })
	obeys(t, "wobble", laws.Hook, func() hooks.Hook { return &Wobble{Size: 0.5} })
	obeys(t, "noise", laws.Attack, func() attack.Attack { return &Noise{Tries: 5} })
	obeys(t, "errors", laws.Criterion, func() posthoc.Criterion { return &Errors{} })
	obeys(t, "halved", laws.Calibration, func() posthoc.Method { return &Halved{} })
	obeys(t, "square_root", laws.Scaling, func() data.Scaler { return &SquareRoot{} })
	obeys(t, "stripes", laws.Source, func() data.Source { return &Stripes{Count: 30} })
	obeys(t, "medians", laws.Baseline, func() classical.Method { return &Medians{Components: 3, Iterations: 5} })
}

// obeys runs the law tests for one part.
func obeys[T any](t *testing.T, name string, kit laws.Kit[T], fresh func() T) {
	t.Run(name, func(t *testing.T) { laws.Check(t, kit, fresh) })
}

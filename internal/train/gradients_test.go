package train

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"tessera/hooks"
	"tessera/internal/expect"
)

// The running averages of batch normalisation must not change when sharpness computes the second gradient of a step.
func TestSharpnessResumesToTheSameBytes(t *testing.T) {
	text := strings.Replace(everything, `kind = "dense"`, `kind = "batch_norm"
[[model.everything.encoder]]
kind = "dense"`, 1) + "[model.everything.hook.sharpness]\n"
	killedAgain(t, model(t, text, "train.epochs=3", "train.batch=64"), 1)
	m := model(t, text, "train.epochs=2")
	first := distributed(t, 2, m, plain)
	sameRun(t, distributed(t, 2, m, func(o *Options) { o.CheckWeights = 1 }), first)
	if slices.EqualFunc(tensorsOf(t, first), tensorsOf(t, distributed(t, 2, model(t, text, "train.epochs=2", "hook.sharpness=false"), plain)), slices.Equal) {
		t.Error("the hook changes nothing")
	}
}

// A step of gradient descent on the loss (w - x)² uses the gradient at w + rho g / |g|.
func TestSharpnessTakesTheGradientNearby(t *testing.T) {
	const rho, rate = 0.25, 0.125
	m := model(t, `
[model.m]
dataset = { name = "bars", count = 40 }
encoder = [{ kind = "dense", units = 3 }]
loss = [{ kind = "weight_decay", on = "*.weight" }, { kind = "mse", weight = 0 }]
optimizer = { kind = "sgd", learning_rate = 0.125 }
train = { epochs = 1, batch = 40 }
hook.sharpness.rho = 0.25
`)
	before := tensorsOf(t, trained(t, m, Options{}).Run)
	start := tensorsOf(t, trained(t, model(t, string(m.Text()), "optimizer.learning_rate=1e-30"), Options{}).Run)
	square := 0.0
	for _, w := range start { // biases are 0
		for _, v := range w {
			square += float64(v) * float64(v)
		}
	}
	for i, w := range start {
		for k, v := range w {
			// the gradient of |w|²/2 is w
			want := float64(v) * (1 - rate*(1+rho/math.Sqrt(square)))
			if got := float64(before[i][k]); math.Abs(got-want) > 1e-6*(1+math.Abs(want)) {
				t.Fatalf("value %d of parameter %d: got %v, want %v", k, i, got, want)
			}
		}
	}
}

// accumulate is a user-defined hook that updates the parameters in every second step, by the mean of two gradients.
type accumulate struct{}

func init() {
	hooks.Registry.Register("accumulate", "adds up two gradients", func() hooks.Hook { return &accumulate{} })
}

func (*accumulate) Attach(t hooks.Training) (*hooks.Active, error) {
	sums := map[int][]float32{}
	return &hooks.Active{
		Gradients: func(g *hooks.Gradients) error {
			for i, v := range g.Values {
				if t.Step()%2 == 0 {
					sums[i] = slices.Clone(v)
					g.Values[i] = nil
					continue
				}
				for k := range v {
					sums[i][k] = (sums[i][k] + v[k]) / 2
				}
				g.Values[i] = sums[i]
			}
			return nil
		},
		Save: func(s *hooks.State) {
			for i, p := range t.Parameters("*") {
				if sums[i] != nil {
					s.Put(p.Path, p.Shape, sums[i])
				}
			}
		},
		Restore: func(s *hooks.State) error {
			for i, p := range t.Parameters("*") {
				if slices.ContainsFunc(s.Tensors, func(t hooks.Tensor) bool { return t.Name == p.Path }) {
					sums[i] = make([]float32, len(p.Data))
					if err := s.Load(p.Path, p.Shape, sums[i]); err != nil {
						return err
					}
				}
			}
			return nil
		},
	}, nil
}

// Accumulating the gradients of two batches of 20 images equals one batch of 40.
func TestAHookAccumulatesGradients(t *testing.T) {
	declared := func(batch, hook string) string {
		return fmt.Sprintf(`
[model.m]
dataset = { name = "bars", count = 80, validation = 0 }
encoder = [{ kind = "dense", units = 3 }]
optimizer = { kind = "sgd", learning_rate = 0.5 }
train = { epochs = 3, batch = %s, checkpoint_seconds = 0 }
%s
`, batch, hook)
	}
	want := tensorsOf(t, trained(t, model(t, declared("40", "")), Options{}).Run)
	m := model(t, declared("20", "hook.accumulate = {}"))
	got := tensorsOf(t, trained(t, m, Options{}).Run)
	for i := range want {
		for k, v := range want[i] {
			if d := float64(got[i][k] - v); math.Abs(d) > 1e-6 {
				t.Fatalf("value %d of parameter %d: got %v, want %v", k, i, got[i][k], v)
			}
		}
	}
	interruptedEverywhere(t, m, apart())
}

// climb is a hook that changes every parameter between the two gradients of a step, and counts the weights that are 0 when the
// second one is computed.
type climb struct{}

// prunedZeros is the number of encoder weights that were 0 when the last second gradient was computed.
var prunedZeros int

func init() {
	hooks.Registry.Register("climb", "moves the parameters between two gradients", func() hooks.Hook { return &climb{} })
}

func (*climb) Attach(hooks.Training) (*hooks.Active, error) {
	return &hooks.Active{Gradients: func(g *hooks.Gradients) error {
		for _, p := range g.Of {
			for k := range p.Data {
				p.Data[k]++
			}
		}
		err := g.Again()
		prunedZeros = 0
		for _, p := range g.Of {
			for k, v := range p.Data {
				if p.Path == "encoder.0.weight" && v == 0 {
					prunedZeros++
				}
				p.Data[k]--
			}
		}
		return err
	}}, nil
}

// The second gradient of a step is that of the pruned network.
func TestPrunedWeightsAreZeroAtTheSecondGradient(t *testing.T) {
	trained(t, model(t, `
[model.m]
dataset = { name = "bars", count = 40 }
encoder = [{ kind = "dense", units = 4 }]
train = { epochs = 1, batch = 20 }
hook.prune = { on = "encoder.*.weight", fraction = 0.5 }
hook.climb = {}
`), Options{})
	expect.Equal(t, prunedZeros, 128)
}

// addsUp is a hook that checks in every step that the gradients of the terms add up to the gradient of the objective.
type addsUp struct{}

// addedUp counts, by term, the values that addsUp has compared.
var addedUp map[string]int

func init() {
	hooks.Registry.Register("adds_up", "compares the gradients of the terms with their sum", func() hooks.Hook { return &addsUp{} })
}

func (*addsUp) Separates() []string { return nil }

func (*addsUp) Attach(hooks.Training) (*hooks.Active, error) {
	return &hooks.Active{Gradients: func(g *hooks.Gradients) error {
		for i, whole := range g.Values {
			sum := make([]float64, len(whole))
			for _, of := range g.Terms {
				for k, v := range of.Values[i] {
					sum[k] += float64(v)
					addedUp[of.Term]++
				}
				if whole == nil && of.Values[i] != nil {
					return fmt.Errorf("%s has a gradient of %s, but none of the objective", g.Of[i].Path, of.Term)
				}
			}
			for k, v := range whole {
				if math.Abs(float64(v)-sum[k]) > 1e-6 {
					return fmt.Errorf("value %d of %s: the terms give %v, want %v", k, g.Of[i].Path, sum[k], v)
				}
			}
		}
		return nil
	}}, nil
}

// The gradients of a term belong to the player that minimises the term. They are those of the last gradient of the step.
func TestGradientsOfTermsAddUp(t *testing.T) {
	for name, further := range map[string]string{
		"one player": "",
		"turns":      "player.coder = { trains = [\"encoder.*\", \"decoder.*\"], losses = [\"mse\", \"l1\"], steps = 1 }\nplayer.judge = { trains = \"head.*\", losses = [\"far\", \"weight_decay\"], steps = 2 }",
		"at once":    "player.coder = { trains = [\"encoder.*\", \"decoder.*\"], losses = [\"mse\", \"l1\"] }\nplayer.judge = { trains = \"head.*\", losses = [\"far\", \"weight_decay\"] }",
	} {
		t.Run(name, func(t *testing.T) {
			addedUp = map[string]int{}
			trained(t, model(t, `
[model.m]
dataset = { name = "bars", count = 60, validation = 0 }
encoder = [{ kind = "dense", units = 4, activation = "sigmoid" }]
head.far.layers = [{ kind = "dense", units = 3 }]
loss = [{ kind = "mse" }, { kind = "l1", weight = 0.1 }, { kind = "l1", name = "far", on = "far", weight = { kind = "linear", from = 0.5, to = 1, epochs = 2 } }, { kind = "weight_decay", on = "head.*.weight" }]
train = { epochs = 2, batch = 25 }
hook.adds_up = {}
hook.sharpness = { rho = 0.5 }
`+further+"\n"), Options{})
			expect.Equal(t, len(addedUp), 4, "compared", addedUp, "want values of all four terms")
		})
	}
}

// A run that is killed at random disk operations and a run by two processes both have the bytes of the uninterrupted run.
func TestSurgeryResumesToTheSameBytes(t *testing.T) {
	text := everything + "[model.everything.hook.surgery]\n"
	killedAgain(t, model(t, text, "train.epochs=3", "train.batch=64"), 1)
	m := model(t, text, "train.epochs=2")
	with := tensorsOf(t, trained(t, m, Options{}).Run)
	if slices.EqualFunc(with, tensorsOf(t, trained(t, model(t, text, "train.epochs=2", "hook.surgery=false"), Options{}).Run), slices.Equal) {
		t.Error("the hook changes nothing")
	}
	first := distributed(t, 2, m, plain)
	sameRun(t, distributed(t, 2, m, func(o *Options) { o.CheckWeights = 1 }), first)
}

// repeats computes the gradients again, at the stage of the other hooks.
type repeats struct{}

func init() {
	hooks.Registry.Register("z_repeats", "computes the gradients again", func() hooks.Hook { return &repeats{} })
}

func (repeats) Attach(hooks.Training) (*hooks.Active, error) {
	return &hooks.Active{Gradients: func(g *hooks.Gradients) error { return g.Again() }}, nil
}

// writes writes to the gradients, which it may only replace.
type writes struct{}

func init() {
	hooks.Registry.Register("writes", "writes to the gradients", func() hooks.Hook { return &writes{} })
}

func (writes) Attach(hooks.Training) (*hooks.Active, error) {
	return &hooks.Active{Gradients: func(g *hooks.Gradients) error {
		g.Values[0][0] *= 2
		return nil
	}}, nil
}

// Again would lose what an earlier hook has changed: sharpness comes before surgery, and a hook that comes later is an error.
func TestGradientsAreComputedAgainBeforeTheyAreChanged(t *testing.T) {
	text := everything + "[model.everything.hook.surgery]\n"
	m := model(t, text, "train.epochs=1", `hook.z_repeats={ kind = "z_repeats" }`)
	expect.Error(t, expect.Err(Run(t.Context(), m, Options{Out: place(t)})), "again after hook.surgery has changed them")
	m = model(t, everything, "train.epochs=1", "hook.writes={}", `hook.z_repeats={ kind = "z_repeats" }`)
	expect.Error(t, expect.Err(Run(t.Context(), m, Options{Out: place(t)})), "again after hook.writes has changed them")
	both := trained(t, model(t, text, "train.epochs=1", "hook.sharpness={}"), Options{}).Run
	alone := trained(t, model(t, everything, "train.epochs=1", "hook.sharpness={}"), Options{}).Run
	if slices.EqualFunc(tensorsOf(t, both), tensorsOf(t, alone), slices.Equal) {
		t.Error("sharpness has overwritten the surgery")
	}
}

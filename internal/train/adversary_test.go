package train

import (
	"context"
	"slices"
	"strings"
	"testing"

	"tessera/attack"
	"tessera/config"
	"tessera/graph"
	"tessera/graph/tape"
	"tessera/hooks"
	"tessera/internal/engine"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/parallel/team"
)

// attackedBatches adds adversarial training to a model of helpers_test.go.
const attackedBatches = `
[model.everything.hook.adversarial]
norm = "l2"
epsilon = 0.5
steps = 2
share = 0.6
`

// taught returns the coder of a small auto-encoder. With an attack, the auto-encoder is trained on adversarial examples.
func taught(t *testing.T, a *attack.Ball) *graph.Coder {
	t.Helper()
	const text = `
[model.taught]
dataset = "bars"
encoder = [{ kind = "dense", units = 12, activation = "sigmoid" }]
optimizer = { kind = "adam", learning_rate = 0.02 }
train = { epochs = 40, batch = 50, checkpoint_seconds = 1000 }
`
	m := model(t, text)
	if a != nil {
		m.Hooks = map[string]hooks.Hook{"adversarial": &hooks.Adversarial{Attack: &attack.PGD{Steps: 4}, Ball: *a, Share: 1}}
	}
	team := team.New(1)
	t.Cleanup(team.Close)
	backend := engine.Backend{Team: team}
	r, err := trainNew(t.Context(), m, Options{Backend: backend, Team: team, Out: place(t)})
	fatal.If(t, err)
	opened, err := Open(r.Run)
	fatal.If(t, err)
	c := graph.NewCoder(opened.Model, backend)
	t.Cleanup(func() { c.Close() })
	return c
}

func TestAttackedImagesEqualTheAttack(t *testing.T) {
	m := model(t, everything+attackedBatches, "train.batch=20")
	s, splits, err := newSession(context.Background(), m, Options{Backend: tape.Backend{}}, nil)
	fatal.If(t, err)
	defer s.close()
	fatal.If(t, s.learner.begin(context.Background(), splits, true))
	n := s.learner.(*network)
	b := taken(t, n.loader)
	clean := slices.Clone(b.values[0])
	if !slices.Equal(clean, b.values[targetInput]) {
		t.Fatal("the batch does not hold the images twice")
	}
	fatal.If(t, n.hooks.each(func(a *attached) error {
		return a.BeforeStep(&hooks.Step{Images: b.values[0], Clean: b.values[1], Size: b.size})
	}))
	coder := graph.NewCoder(n.model, tape.Backend{})
	defer coder.Close()
	pixels := n.model.Pixels()
	by := m.Hooks["adversarial"].(*hooks.Adversarial)
	want, err := (&attack.Trial{Attack: by.Attack, Ball: by.Ball}).Perturb(t.Context(), coder, clean[:12*pixels]) // a share of 0.6 of 20
	fatal.If(t, err)
	if slices.Equal(want, clean[:12*pixels]) {
		t.Error("the attack does not move the images")
	}
	expect.Slice(t, b.values[0], slices.Concat(want, clean[12*pixels:]), "the batch holds other images than the attack's and the clean rest")
	expect.Slice(t, b.values[targetInput], clean, "the target images are not clean")
}

// Programs that differentiate with respect to images, or read adversarial examples, cannot use decompositions of the clean
// images.
func TestDecomposedImagesAreAttackedToo(t *testing.T) {
	const decomposed = `
[model.decomposed]
dataset = "bars"
encoder = [{ kind = "pado", levels = 1 }, { kind = "dense", units = 5, activation = "sigmoid" }]
loss = [{ kind = "mse" }, { kind = "contractive", weight = 0.01 }]
train = { epochs = 2, batch = 50 }
`
	team := team.New(1)
	defer team.Close()
	plain := trained(t, model(t, decomposed), Options{Backend: engine.Backend{Team: team}})
	attacked := trained(t, model(t, decomposed, "hook.adversarial.epsilon=0.2"), Options{Backend: engine.Backend{Team: team}})
	before, after := lines(t, plain.Run)[1], lines(t, attacked.Run)[1]
	if !(before["contractive"].(float64) > 0) || !(after["mse"].(float64) > before["mse"].(float64)) {
		t.Errorf("trained on clean images %v, on attacked ones %v: want a penalty, and a larger error under attack", before, after)
	}
}

// The result does not depend on the number of threads of the attack, to the bit. It may depend on the number of threads of the
// matrix products, which changes the order of additions.
func TestTheNumberOfThreadsDoesNotChangeAnAttack(t *testing.T) {
	m := model(t, everything+attackedBatches, "train.epochs=2")
	want := trained(t, m, Options{})
	for _, threads := range []int{2, 3} {
		team := team.New(threads)
		sameResult(t, trained(t, m, Options{Team: team}).Run, want.Run)
		team.Close()
	}
}

func TestAdversarialTrainingMakesRobust(t *testing.T) {
	for _, a := range []attack.Ball{{Norm: attack.LInf, Epsilon: 0.1}, {Norm: attack.L2, Epsilon: 1.5}} {
		t.Run(string(a.Norm), func(t *testing.T) {
			plain, twin := taught(t, nil), taught(t, &a)
			images := bars(t)
			var reports []*attack.Report
			for _, c := range []*graph.Coder{plain, twin} {
				r, err := attack.Measure(context.Background(), c, images, []attack.Trial{{Attack: &attack.FGSM{}, Ball: a}, {Attack: &attack.PGD{Steps: 20}, Ball: a}})
				fatal.If(t, err)
				if one, many := r.Attacks[0].MSE, r.Attacks[1].MSE; !(r.MSE < one && one <= many) {
					t.Errorf("clean mse %v, fgsm %v, pgd %v: want them to grow", r.MSE, one, many)
				}
				reports = append(reports, r)
			}
			if before, after := reports[0].Attacks[1].MSE, reports[1].Attacks[1].MSE; !(after < 0.95*before) {
				t.Errorf("mse under attack: %v, of the adversarially trained twin %v, want less by a twentieth", before, after)
			}
			t.Logf("clean %.4f and %.4f; pgd %.4f and %.4f", reports[0].MSE, reports[1].MSE, reports[0].Attacks[1].MSE, reports[1].Attacks[1].MSE)
		})
	}
}

// bars returns images of bars.
func bars(t *testing.T) []float32 {
	t.Helper()
	m := model(t, everything)
	set, err := Options{}.load(context.Background(), &m.Dataset)
	fatal.If(t, err)
	images, err := set.Evaluation()
	fatal.If(t, err)
	return images.Float32()
}

// attackedClasses returns a classifier that is trained on adversarial examples for its head.
func attackedClasses(t *testing.T, loss, hook string) string {
	t.Helper()
	return "[model.m]\ndataset = " + labelledFiles(t, 60) + `
encoder = [{ kind = "dense", units = 5, activation = "relu" }, { kind = "dropout", rate = 0.2 }]
decoder = []
head.class = { layers = [{ kind = "dense" }] }
loss = [` + loss + `]
train = { epochs = 2, batch = 16 }
[model.m.hook.adversarial]
epsilon = 0.1
steps = 2
` + hook
}

// The adversarial examples of a step equal the result of the attack on the head, with the current parameters.
func TestAttackedImagesOfAClassifierEqualTheAttack(t *testing.T) {
	m := model(t, attackedClasses(t, `{ kind = "cross_entropy" }`, `objective = "margin"`))
	s, splits, err := newSession(context.Background(), m, Options{Backend: tape.Backend{}}, nil)
	fatal.If(t, err)
	defer s.close()
	fatal.If(t, s.learner.begin(context.Background(), splits, true))
	n := s.learner.(*network)
	labels := n.loader.batches[n.loader.next].indices
	b := taken(t, n.loader)
	clean := slices.Clone(b.values[0])
	classes := make([]int, b.size)
	var rows []float32
	for i, in := range n.loader.inputs[b.size] {
		if in.Name == graph.Labels {
			rows = b.values[i]
		}
	}
	for k, i := range slices.Clone(labels[:b.size]) {
		if classes[k] = n.images.Labels()[i]; rows[2*k+classes[k]] != 1 {
			t.Fatalf("image %d: labels %v", k, rows[2*k:2*k+2])
		}
	}
	fatal.If(t, n.hooks.each(func(a *attached) error {
		return a.BeforeStep(&hooks.Step{Images: b.values[0], Clean: b.values[targetInput], Labels: rows, Size: b.size})
	}))
	coder := graph.NewCoder(n.model, tape.Backend{})
	defer coder.Close()
	head, err := coder.Head("class")
	fatal.If(t, err)
	want, by := slices.Clone(clean), m.Hooks["adversarial"].(*hooks.Adversarial)
	task, err := attack.NewTask(t.Context(), attack.Trial{Attack: by.Attack, Ball: by.Ball, Objective: attack.Margin}, head, clean, classes)
	fatal.If(t, err)
	fatal.If(t, by.Attack.Perturb(task, want))
	if !slices.Equal(b.values[0], want) || slices.Equal(want, clean) {
		t.Error("the batch holds other images than those of the attack")
	}
}

// Without a hook that changes the images, the term trades would equal the cross entropy.
func TestTradesNeedsAHookThatChangesImages(t *testing.T) {
	text, _, _ := strings.Cut(attackedClasses(t, `{ kind = "trades" }`, ""), "[model.m.hook")
	f, err := config.Load("test.toml", []byte(text))
	fatal.If(t, err)
	expect.Error(t, expect.Err(f.Model("m")), "no hook of the model changes images")
}

// The gradient of an error over the entries that are there is also computed from which these are.
func TestImagesWithHolesAreNotAttacked(t *testing.T) {
	_, err := Run(context.Background(), model(t, everything+attackedBatches, "dataset.hide=0.4"), Options{Out: place(t)})
	if err == nil || !strings.Contains(err.Error(), `is also computed from "observed"`) || strings.Contains(err.Error(), "panicked") {
		t.Errorf("got %v, want an error that names the input", err)
	}
}

package tessera_test

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"tessera"
	"tessera/attack"
	"tessera/config"
	"tessera/data"
	"tessera/hooks"
	"tessera/layers"
	"tessera/losses"
	"tessera/metrics"
)

// A linear classifier of two classes of scaled samples is attacked in the values before scaling. The expected accuracy comes
// from a plain loop over the worst sample of each ball, within the range of the fitted samples.
func TestAHeadOfScaledSamplesIsAttackedBeforeTheScaling(t *testing.T) {
	text := strings.Replace(species(t), `validation = 0`, `validation = 0, scale = "standardise"`, 1)
	r := untrained(t, text, tessera.Options{Threads: 1})
	images, err := r.Images(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	x, labels := images.Float32(), images.Labels()
	low, high := r.Range()
	if low != 0 || high != 4 {
		t.Fatalf("the range is %v to %v", low, high)
	}
	difference := func(x []float32) float64 { // of the logits, linear in x
		z, err := r.Value("kind", x)
		if err != nil {
			t.Fatal(err)
		}
		return float64(z[1]) - float64(z[0])
	}
	at := difference([]float32{1, 1})
	slopes := []float64{difference([]float32{2, 1}) - at, difference([]float32{1, 2}) - at}
	const epsilon = 0.45
	want := 0
	for i, c := range labels {
		sign := float64(2*c - 1)
		margin := sign * difference(x[2*i:2*i+2])
		for j, w := range slopes {
			v := float64(x[2*i+j])
			worst := min(v+epsilon, float64(high)) - v
			if sign*w > 0 {
				worst = max(v-epsilon, float64(low)) - v
			}
			margin += sign * w * worst
		}
		if margin > 0 {
			want++
		}
	}
	if want == 0 || want == len(labels) {
		t.Fatalf("%d of %d resist: the test shows nothing", want, len(labels))
	}
	a := attack.Attack{Method: attack.FGSM, Norm: attack.LInf, Epsilon: epsilon}
	j, err := r.AttackHead(t.Context(), tessera.HeadAttack{Trials: []attack.Trial{{Attack: a, Objective: attack.Margin}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := j.Trials[0].Accuracy.Value; math.Abs(got-float64(want)/float64(len(labels))) > 1e-9 {
		t.Errorf("accuracy %v, want %d of %d", got, want, len(labels))
	}
	if j.Range != [2]float32{0, 4} || j.Head != "kind" || j.Images != len(labels) || j.From != "" {
		t.Errorf("got %+v", j)
	}
	chosen, err := metrics.Select("robust_accuracy", "adversarial_risk")
	for _, setting := range []string{"epsilon=0.45", "steps=1", "objective=margin"} {
		if err == nil {
			err = chosen.SetText(setting)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	measured, err := r.EvaluateOn(t.Context(), data.TestSplit, chosen)
	if err != nil {
		t.Fatal(err)
	}
	pgd := a
	pgd.Method, pgd.Steps = attack.PGD, 1
	same, err := r.AttackHead(t.Context(), tessera.HeadAttack{Trials: []attack.Trial{{Attack: pgd, Objective: attack.Margin}}})
	if err != nil {
		t.Fatal(err)
	}
	robust, _ := measured.Number("robust_accuracy")
	if risk, _ := measured.Number("adversarial_risk"); robust != same.Trials[0].Accuracy.Value || math.Abs(risk-same.Trials[0].Risk) > 1e-5 {
		t.Errorf("the metric gives %v and %v, the attack %v and %v", robust, risk, same.Trials[0].Accuracy.Value, same.Trials[0].Risk)
	}
	other := untrained(t, strings.Replace(text, "batch = 1", "batch = 1, seed = 5", 1), tessera.Options{Threads: 1})
	from, err := r.AttackHead(t.Context(), tessera.HeadAttack{Trials: []attack.Trial{{Attack: a}}, From: other, Limit: 7})
	if err != nil || from.From != other.Path || from.Images != 7 {
		t.Errorf("transfer: got %+v, %v", from, err)
	}
}

// No attack that knows less finds more: on the same images and balls, neither one step, nor examples of another model, nor a black box leaves
// fewer correct predictions than projected gradient steps on the model itself. The models are a plain one and an adversarially trained one.
func TestNoAttackIsStrongerThanTheWhiteBox(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var x []float32
	var labels []int
	for i := range 150 {
		for j := range 8 {
			v := 0.4 + 0.15*r.NormFloat64()
			if j%3 == i%3 {
				v += 0.25
			}
			x = append(x, float32(min(1, max(0, v))))
		}
		labels = append(labels, i%3)
	}
	memory, err := data.FromFloats(x, []int{8}, labels)
	if err != nil {
		t.Fatal(err)
	}
	models := map[string]*tessera.Run{}
	for name, hook := range map[string]map[string]hooks.Hook{"plain": nil, "robust": {"adversarial": &hooks.Adversarial{On: "class", Share: 1,
		Attack: attack.Attack{Method: attack.PGD, Norm: attack.LInf, Epsilon: 0.1, Steps: 3}}}} {
		m, err := tessera.Declare(config.Model{Name: name, Dataset: config.Dataset{Source: memory}, Decoder: []config.Layer{}, Hooks: hook,
			Encoder: []config.Layer{{Layer: &layers.Dense{Units: 12, Activation: "relu"}}},
			Heads:   map[string]config.Head{"class": {Layers: []config.Layer{{Layer: &layers.Dense{Units: 3}}}}},
			Losses:  []config.Loss{{Loss: &losses.CrossEntropy{}}}, Train: config.Train{Epochs: 40, Batch: 15}})
		if err != nil {
			t.Fatal(err)
		}
		if models[name], err = tessera.Train(t.Context(), m, tessera.Options{Threads: 1, Out: filepath.Join(t.TempDir(), name), Images: memory}); err != nil {
			t.Fatal(err)
		}
		defer models[name].Close()
	}
	for name, other := range map[string]string{"plain": "robust", "robust": "plain"} {
		for norm, epsilon := range map[attack.Norm]float64{attack.LInf: 0.1, attack.L2: 0.25} {
			trial := func(method attack.Method) attack.Trial {
				a := attack.Trial{Attack: attack.Attack{Method: method, Norm: norm, Epsilon: epsilon, Seed: 1}, Objective: attack.Margin, Queries: 200}
				if method == attack.PGD {
					a.Steps, a.Restarts, a.Queries = 20, 3, 0
				}
				return a
			}
			trials := []attack.Trial{trial(attack.PGD), trial(attack.FGSM), trial(attack.Score), trial(attack.Decision)}
			if norm == attack.LInf {
				trials = append(trials, trial(attack.Square))
			}
			own, err := models[name].AttackHead(t.Context(), tessera.HeadAttack{Trials: trials})
			if err != nil {
				t.Fatal(err)
			}
			moved, err := models[name].AttackHead(t.Context(), tessera.HeadAttack{From: models[other], Trials: []attack.Trial{trial(attack.PGD), trial(attack.FGSM)}})
			if err != nil {
				t.Fatal(err)
			}
			white := own.Trials[0].Accuracy.Value
			if !(white < own.Accuracy.Value-0.05) {
				t.Errorf("%s, %s: the white box leaves %v of %v: the test shows nothing", name, norm, white, own.Accuracy.Value)
			}
			for _, weaker := range append(own.Trials[1:], moved.Trials...) {
				if weaker.Accuracy.Value < white {
					t.Errorf("%s, %s: %s leaves %v, the white box %v", name, norm, weaker.Method, weaker.Accuracy.Value, white)
				}
			}
		}
	}
}

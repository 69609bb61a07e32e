package coder_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tessera"
	"tessera/attack"
	"tessera/attack/runs"
	"tessera/config"
	"tessera/data"
	"tessera/hooks"
	"tessera/internal/expect"
	"tessera/internal/fatal"
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
	fatal.If(t, err)
	x, labels := images.Float32(), images.Labels()
	low, high := r.Range()
	if low != 0 || high != 4 {
		t.Fatalf("the range is %v to %v", low, high)
	}
	difference := func(x []float32) float64 { // of the logits, linear in x
		z, err := r.Value("kind", x)
		fatal.If(t, err)
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
	a := attack.Trial{Attack: &attack.FGSM{}, Ball: attack.Ball{Norm: attack.LInf, Epsilon: epsilon}, Objective: attack.Margin}
	j, err := runs.Judge(t.Context(), r, runs.HeadAttack{Trials: []attack.Trial{a}})
	fatal.If(t, err)
	expect.Near(t, j.Trials[0].Accuracy.Value, float64(want)/float64(len(labels)), 1e-9, "accuracy", want, len(labels))
	if j.Range != [2]float32{0, 4} || j.Head != "kind" || j.Images != len(labels) || j.From != "" {
		t.Errorf("got %+v", j)
	}
	chosen, err := metrics.Select("robust_accuracy", "adversarial_risk")
	for _, setting := range []string{"epsilon=0.45", "steps=1", "objective=margin"} {
		if err == nil {
			err = chosen.SetText(setting)
		}
	}
	fatal.If(t, err)
	measured, err := r.EvaluateOn(t.Context(), data.TestSplit, chosen)
	fatal.If(t, err)
	pgd := a
	pgd.Attack = &attack.PGD{Steps: 1}
	same, err := runs.Judge(t.Context(), r, runs.HeadAttack{Trials: []attack.Trial{pgd}})
	fatal.If(t, err)
	robust, _ := measured.Number("robust_accuracy")
	if risk, _ := measured.Number("adversarial_risk"); robust != same.Trials[0].Accuracy.Value || math.Abs(risk-same.Trials[0].Risk) > 1e-5 {
		t.Errorf("the metric gives %v and %v, the attack %v and %v", robust, risk, same.Trials[0].Accuracy.Value, same.Trials[0].Risk)
	}
	other := untrained(t, strings.Replace(text, "batch = 1", "batch = 1, seed = 5", 1), tessera.Options{Threads: 1})
	from, err := runs.Judge(t.Context(), r, runs.HeadAttack{Trials: []attack.Trial{a}, From: other, Limit: 7})
	if err != nil || from.From != other.Path || from.Images != 7 {
		t.Errorf("transfer: got %+v, %v", from, err)
	}
}

// A head on another column than the labels is compared with that column, and one of two heads can be chosen as the source.
func TestAHeadOnAnotherColumnIsAttackedByItsOwnClasses(t *testing.T) {
	two := func(seed string) *tessera.Run {
		return untrained(t, `dataset = { name = "credit", count = 60, test = 50 }
encoder = [{ kind = "dense", units = 4, activation = "relu" }]
decoder = []
head.class.layers = [{ kind = "dense" }]
head.place.layers = [{ kind = "dense" }]
loss = [{ kind = "cross_entropy", on = "class" }, { kind = "cross_entropy", on = "place", against = "group" }]
train = { epochs = 1, seed = `+seed+` }`, tessera.Options{Threads: 1})
	}
	r, other := two("1"), two("2")
	sample, err := r.Sample(t.Context(), data.TestSplit, "group")
	fatal.If(t, err)
	p, err := r.Predict("place", sample.Images.Scaled(nil).Float32())
	fatal.If(t, err)
	right, ofLabels := 0, 0
	for i, c := range sample.Images.Classes("group") {
		if p.Labels[i] == c {
			right++
		}
		if p.Labels[i] == sample.Images.Labels()[i] {
			ofLabels++
		}
	}
	if right == ofLabels {
		t.Fatalf("%d predictions equal the group, and as many the label: the test shows nothing", right)
	}
	judged := func(a runs.HeadAttack) *attack.Judgement {
		t.Helper()
		a.Trials = []attack.Trial{{Attack: &attack.FGSM{}, Ball: attack.Ball{Norm: attack.LInf, Epsilon: 0.3}}}
		j, err := runs.Judge(t.Context(), r, a)
		fatal.If(t, err)
		return j
	}
	expect.Near(t, judged(runs.HeadAttack{Head: "place"}).Accuracy.Value, float64(right)/50, 1e-9, "clean accuracy", right)
	same, named, swapped := judged(runs.HeadAttack{Head: "place", From: other}), judged(runs.HeadAttack{Head: "place", From: other, FromHead: "place"}),
		judged(runs.HeadAttack{Head: "place", From: other, FromHead: "class"})
	if same.Trials[0].Risk != named.Trials[0].Risk || same.Trials[0].Risk == swapped.Trials[0].Risk || swapped.From != other.Path+", head class" {
		t.Errorf("risks %v, %v and %v, from %q", same.Trials[0].Risk, named.Trials[0].Risk, swapped.Trials[0].Risk, swapped.From)
	}
	expect.Error(t, expect.Err(runs.Judge(t.Context(), r, runs.HeadAttack{Head: "place", From: other, FromHead: "age"})), `head: got "age", want one of "class", "place"`)
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
	fatal.If(t, err)
	models := map[string]*tessera.Run{}
	for name, hook := range map[string]map[string]hooks.Hook{"plain": nil, "robust": {"adversarial": &hooks.Adversarial{On: "class", Share: 1,
		Attack: &attack.PGD{Steps: 3}, Ball: attack.Ball{Norm: attack.LInf, Epsilon: 0.1}}}} {
		m, err := tessera.Declare(config.Model{Name: name, Dataset: config.Dataset{Source: memory}, Decoder: []config.Layer{}, Hooks: hook,
			Encoder: []config.Layer{{Layer: &layers.Dense{Units: 12, Activation: "relu"}}},
			Heads:   map[string]config.Head{"class": {Layers: []config.Layer{{Layer: &layers.Dense{Units: 3}}}}},
			Losses:  []config.Loss{{Loss: &losses.CrossEntropy{}}}, Train: config.Train{Epochs: 40, Batch: 15}})
		fatal.If(t, err)
		if models[name], err = tessera.Train(t.Context(), m, tessera.Options{Threads: 1, Out: filepath.Join(t.TempDir(), name), Images: memory}); err != nil {
			t.Fatal(err)
		}
		defer models[name].Close()
	}
	for name, other := range map[string]string{"plain": "robust", "robust": "plain"} {
		for norm, epsilon := range map[attack.Norm]float64{attack.LInf: 0.1, attack.L2: 0.25} {
			trial := func(a attack.Attack) attack.Trial {
				return attack.Trial{Attack: a, Ball: attack.Ball{Norm: norm, Epsilon: epsilon}, Seed: 1, Objective: attack.Margin}
			}
			pgd := trial(&attack.PGD{Steps: 20, Restarts: 3})
			trials := []attack.Trial{pgd, trial(&attack.FGSM{}), trial(&attack.Score{Queries: 200, Estimator: attack.NES, Samples: 20}), trial(&attack.Decision{Queries: 200})}
			if norm == attack.LInf {
				trials = append(trials, trial(&attack.Square{Queries: 200}))
			}
			own, err := runs.Judge(t.Context(), models[name], runs.HeadAttack{Trials: trials})
			fatal.If(t, err)
			moved, err := runs.Judge(t.Context(), models[name], runs.HeadAttack{From: models[other], Trials: trials[:2]})
			fatal.If(t, err)
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

// Test values beyond the range of the fitted ones are clipped by scale = "minmax", for the model. The metric attacks the values of the file.
func TestTheMetricOfRobustnessAttacksWhatTheCommandAttacks(t *testing.T) {
	folder := t.TempDir()
	path := func(name string) string { return filepath.ToSlash(filepath.Join(folder, name)) }
	write := func(name string, factor float64) {
		var text strings.Builder
		text.WriteString("a,b,label\n")
		for i := range 60 {
			fmt.Fprintf(&text, "%g,%g,%d\n", factor*(float64(i%2)+0.13*float64(i%11)), factor*0.3*float64(i%7), i%2)
		}
		fatal.If(t, os.WriteFile(path(name), []byte(text.String()), 0o600))
	}
	write("x.csv", 1)
	write("test.csv", 2)
	run, err := trainedIn(t, fmt.Sprintf(`dataset = { name = "csv", file = %q, test_images = %q, scale = "minmax", validation = 0 }
encoder = [{ kind = "dense", units = 4, activation = "tanh" }]
decoder = []
loss    = [{ kind = "cross_entropy", on = "class" }]
train   = { epochs = 40, batch = 20 }
optimizer = { kind = "adam", learning_rate = 0.05 }
head.class.layers = [{ kind = "dense" }]
`, path("x.csv"), path("test.csv")), filepath.Join(folder, "run"))
	fatal.If(t, err)
	defer run.Close()
	metric := &metrics.Robustness{By: &attack.PGD{Steps: 20}, Ball: attack.Ball{Norm: attack.LInf, Epsilon: 0.6}, Objective: attack.CrossEntropy}
	measured, err := run.EvaluateOn(t.Context(), data.TestSplit, metrics.Selection{{Metric: metric}})
	fatal.If(t, err)
	j, err := runs.Judge(t.Context(), run, runs.HeadAttack{Trials: []attack.Trial{{Objective: attack.CrossEntropy,
		Attack: &attack.PGD{Steps: 20}, Ball: attack.Ball{Norm: attack.LInf, Epsilon: 0.6}}}})
	fatal.If(t, err)
	got, _ := measured.Number("adversarial_risk")
	if want := j.Trials[0].Risk; math.Abs(got-want) > 1e-6*want || want < 0.01 {
		t.Errorf("the metric has the risk %v, the attack %v", got, want)
	}
}

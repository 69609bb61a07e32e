package tessera_test

import (
	"math"
	"strings"
	"testing"

	"tessera"
	"tessera/attack"
	"tessera/data"
	"tessera/metrics"
)

// A linear classifier of two classes of scaled samples is attacked in the values before scaling: the accuracy is that of a plain loop
// over the worst sample of each ball, within the range of the fitted samples.
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

package attack_test

import (
	"context"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"tessera/attack"
	"tessera/config/part"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// blind is a classifier without gradients.
type blind struct{ *plane }

func (blind) Gradient() {}

// Every black-box attack comes close to the robust accuracy of a linear classifier, which is known. Finite differences
// of every pixel reach it.
func TestBlackBoxesComeNearTheWorstPerturbation(t *testing.T) {
	p, x, labels := twoClasses(150)
	by := func(a attack.Attack, objective attack.Objective) attack.Trial {
		return attack.Trial{Attack: a, Objective: objective}
	}
	for _, norm := range []attack.Norm{attack.LInf, attack.L2} {
		white := in(&attack.PGD{Steps: 10}, norm, 0.1)
		white.Objective = attack.Margin
		j, err := attack.Judge(context.Background(), p, nil, x, labels, []attack.Trial{white})
		fatal.If(t, err)
		best := j.Trials[0].Accuracy.Value
		for name, c := range map[string]struct {
			attack.Trial
			slack float64
		}{
			"coordinates": {by(&attack.Score{Estimator: attack.Coordinates, Queries: 130, Samples: 1}, attack.Margin), 0.01},
			"nes":         {by(&attack.Score{Estimator: attack.NES, Queries: 400, Samples: 20}, ""), 0.05},
			"spsa":        {by(&attack.Score{Estimator: attack.SPSA, Samples: 10, Queries: 400}, ""), 0.05},
			"square":      {by(&attack.Square{Queries: 200}, ""), 0.05},
			"decision":    {by(&attack.Decision{Queries: 1000}, ""), 0.08},
		} {
			if c.Norm = norm; norm == attack.L2 && name == "square" {
				continue // this method needs larger images
			}
			c.Epsilon = 0.1
			queries := c.Attack.(attack.BlackBox).Budget()
			run := func() *attack.Judgement {
				j, err := attack.Judge(context.Background(), blind{p}, nil, x, labels, []attack.Trial{c.Trial})
				fatal.If(t, err, name, norm)
				return j
			}
			j := run()
			r := j.Trials[0]
			if !(r.Accuracy.Value >= best-1e-9 && r.Accuracy.Value <= best+c.slack) || !(r.Largest <= r.Epsilon) {
				t.Errorf("%s %s: accuracy %v, of the white box %v, perturbations to %v", name, norm, r.Accuracy.Value, best, r.Largest)
			}
			last := 1.0
			for _, point := range r.Curve {
				if point.Accuracy > last || point.Queries > queries {
					t.Errorf("%s %s: the curve rises or goes beyond the queries: %v", name, norm, r.Curve)
				}
				last = point.Accuracy
			}
			if r.Settings["queries"] != queries || math.Abs(last-r.Accuracy.Value) > 0.01 {
				t.Errorf("%s %s: the curve of %d queries ends at %v, the accuracy is %v", name, norm, queries, last, r.Accuracy.Value)
			}
			if !reflect.DeepEqual(j, run()) {
				t.Errorf("%s %s: a second run gives another result", name, norm)
			}
		}
	}
}

// wide is a linear classifier of images of 8 x 8 pixels.
type wide struct{ weights []float64 }

func (wide) Shape() []int { return []int{8, 8} }
func (wide) Classes() int { return 2 }
func (w wide) Logits(images []float32) (logits []float32, err error) {
	for at := 0; at < len(images); at += 64 {
		z := 0.0
		for i, v := range w.weights {
			z += v * (float64(images[at+i]) - 0.5)
		}
		logits = append(logits, float32(z), 0)
	}
	return logits, nil
}

// The square attack in l2 uses the whole length epsilon and finds most of the examples that exist.
func TestSquaresOfLengthEpsilon(t *testing.T) {
	w := wide{make([]float64, 64)}
	length := 0.0
	for i := range w.weights {
		w.weights[i] = math.Sin(float64(i) / 5)
		length += w.weights[i] * w.weights[i]
	}
	const n, epsilon = 40, 0.8
	x, labels := make([]float32, n*64), make([]int, n)
	for i := range labels { // at distances of 0 to 2 epsilon from the boundary, in the direction of the weights
		at := 2 * epsilon * float64(i) / n
		for k, v := range w.weights {
			x[i*64+k] = float32(0.5 + v*at/math.Sqrt(length))
		}
	}
	j, err := attack.Judge(context.Background(), w, nil, x, labels, []attack.Trial{in(&attack.Square{Queries: 600}, attack.L2, epsilon)})
	fatal.If(t, err)
	if r := j.Trials[0]; !(r.Accuracy.Value >= 0.5 && r.Accuracy.Value < 0.75) || !(r.Largest <= epsilon && r.Largest > 0.99*epsilon) {
		t.Errorf("got %+v, want an accuracy of a little more than 0.5", r)
	}
}

// saturated is a classifier with logits so large that its probabilities are 0 and 1 in float32. Cross entropy then has
// no gradient.
type saturated struct{ *plane }

func (s saturated) Logits(images []float32) ([]float32, error) {
	logits, err := s.plane.Logits(images)
	for i := range logits {
		logits[i] *= 1e5
	}
	return logits, err
}

func (s saturated) Gradient(objective attack.Objective, images, targets []float32) (gradient, logits []float32, err error) {
	steep := &plane{rows: make([][]float64, len(s.rows))}
	for j, row := range s.rows {
		for _, w := range row {
			steep.rows[j] = append(steep.rows[j], 1e5*w)
		}
	}
	return steep.Gradient(objective, images, targets)
}

// A gradient attack that is weaker than an attack by decisions alone is reported, because its gradients are masked.
func TestMaskedGradientsAreReported(t *testing.T) {
	p, x, labels := twoClasses(60)
	pgd, decision := in(&attack.PGD{Steps: 10}, attack.LInf, 0.1), in(&attack.Decision{Queries: 1000}, attack.LInf, 0.1)
	j, err := attack.Judge(context.Background(), saturated{p}, nil, x, labels, []attack.Trial{pgd, decision})
	fatal.If(t, err)
	if len(j.Masked) != 1 || !strings.Contains(j.Masked[0], "linf 0.1: decision leaves an accuracy of") || j.Trials[0].Accuracy.Value != 1 {
		t.Errorf("got %q, %+v", j.Masked, j.Trials)
	}
	margin := pgd
	margin.Objective = attack.Margin
	for name, trials := range map[string][]attack.Trial{"a plain head": {pgd, decision}, "the margin": {pgd, margin, decision}} {
		model := attack.Classifier(saturated{p})
		if name == "a plain head" {
			model = p
		}
		if j, err = attack.Judge(context.Background(), model, nil, x, labels, trials); err != nil || len(j.Masked) > 0 {
			t.Errorf("%s: got %q, %v", name, j.Masked, err)
		}
	}
}

func TestAnEstimateNeedsItsQueries(t *testing.T) {
	p, x, labels := twoClasses(5)
	few := in(&attack.Score{Estimator: attack.Coordinates, Queries: 12, Samples: 1}, attack.LInf, 0.1)
	expect.Error(t, expect.Err(attack.Judge(context.Background(), p, nil, x, labels, []attack.Trial{few})), "one estimate of coordinates takes 13 queries, more than 12")
}

// flat has the images of wide as vectors.
type flat struct{ wide }

func (flat) Shape() []int { return []int{64} }

// In l2, squares need images: of the model whose gradients or logits make the examples, and before anything is computed.
func TestSquaresInL2NeedImages(t *testing.T) {
	w := wide{make([]float64, 64)}
	x, labels := make([]float32, 2*64), make([]int, 2)
	trials := []attack.Trial{in(&attack.Square{Queries: 5}, attack.L2, 0.5)}
	for name, c := range map[string]struct {
		model, source attack.Classifier
		want          bool
	}{
		"vectors": {flat{w}, nil, false}, "images": {w, nil, true}, "from vectors": {w, flat{w}, false}, "from images": {flat{w}, w, true},
	} {
		_, err := attack.Judge(context.Background(), c.model, c.source, x, labels, trials)
		if key, ok := errors.AsType[part.KeyError](err); (err == nil) != c.want || err != nil && (!ok || key.Key != "norm") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

package attack_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tessera/attack"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// plane is a linear classifier of 6 pixels in plain loops: z_j = w_j x. It has one class per row of weights.
type plane struct {
	rows [][]float64
	runs int // number of calls with images
}

func (*plane) Shape() []int   { return []int{2, 3} }
func (p *plane) Classes() int { return len(p.rows) }

func (p *plane) Logits(images []float32) (logits []float32, err error) {
	p.runs++
	for x := range slices.Chunk(images, 6) {
		for _, w := range p.rows {
			z := 0.0
			for i, v := range x {
				z += w[i] * float64(v)
			}
			logits = append(logits, float32(z))
		}
	}
	return logits, nil
}

func (p *plane) Gradient(objective attack.Objective, images, targets []float32) (gradient, logits []float32, err error) {
	logits, err = p.Logits(images)
	classes := len(p.rows)
	probabilities := attack.Softmax(logits, classes)
	for at := 0; at < len(logits); at += classes {
		slopes := make([]float64, classes)
		best := -1
		for j := range classes {
			slopes[j] = float64(probabilities[at+j] - targets[at+j])
			if targets[at+j] == 0 && (best < 0 || logits[at+j] > logits[at+best]) {
				best = j
			}
		}
		if objective == attack.Margin {
			for j := range classes {
				slopes[j] = -float64(targets[at+j])
			}
			slopes[best]++
		}
		for i := range 6 {
			g := 0.0
			for j, w := range p.rows {
				g += slopes[j] * w[i]
			}
			gradient = append(gradient, float32(g))
		}
	}
	return gradient, logits, err
}

// twoClasses returns a classifier, n images with known margins, and their classes.
func twoClasses(n int) (*plane, []float32, []int) {
	p := &plane{rows: [][]float64{{1, -2, 0.5, 0, 1, -1}, {-1, 1, 0.25, 0.5, -1, 1}}}
	x := images(n, 0.35, 0.65)
	logits, _ := p.Logits(x)
	labels := make([]int, n)
	for i := range labels {
		if logits[2*i+1] > logits[2*i] {
			labels[i] = 1
		}
	}
	return p, x, labels
}

// A linear classifier of two classes can be made to misclassify an image exactly within the distance of the image from
// the boundary. This distance is the margin divided by the dual norm of the difference of the weights.
func TestRobustAccuracyOfALinearClassifierIsKnown(t *testing.T) {
	p, x, labels := twoClasses(700)
	const epsilon = 0.1
	l1, l2 := 0.0, 0.0
	for i, w := range p.rows[0] {
		l1, l2 = l1+math.Abs(w-p.rows[1][i]), l2+math.Pow(w-p.rows[1][i], 2)
	}
	logits, _ := p.Logits(x)
	want := map[attack.Norm]int{}
	for i := range labels {
		margin := math.Abs(float64(logits[2*i]) - float64(logits[2*i+1]))
		if margin > epsilon*l1 {
			want[attack.LInf]++
		}
		if margin > epsilon*math.Sqrt(l2) {
			want[attack.L2]++
		}
	}
	var trials []attack.Trial
	for _, norm := range []attack.Norm{attack.LInf, attack.L2} {
		for _, objective := range []attack.Objective{attack.CrossEntropy, attack.Margin} {
			for _, a := range []attack.Attack{&attack.FGSM{}, &attack.PGD{Steps: 8}, &attack.PGD{Steps: 8, Restarts: 2}, &attack.PGD{Steps: 8, StopEarly: true, RandomStart: true}} {
				one := in(a, norm, epsilon)
				one.Objective = objective
				trials = append(trials, one)
			}
		}
	}
	j, err := attack.Judge(context.Background(), p, nil, x, labels, trials)
	fatal.If(t, err)
	expect.Equal(t, j.Accuracy.Value, 1, j, "of clean images")
	expect.Equal(t, j.Images, 700, j, "of clean images")
	early := func(r attack.TrialResult) bool { return r.Settings["stop_early"] == true }
	for i, r := range j.Trials {
		if got := int(math.Round(r.Accuracy.Value * 700)); got < want[r.Norm] || got > want[r.Norm] && (!early(r) || got > want[r.Norm]+10) {
			t.Errorf("trial %d: %s %s by %s: %d right, want %d", i, r.Norm, r.Method, r.Objective, got, want[r.Norm])
		}
		if !(r.Largest <= epsilon) {
			t.Errorf("trial %d: a perturbation of %.17g, more than %g", i, r.Largest, epsilon)
		}
		if early(r) != (i%4 == 3) || !(r.Risk > j.Risk) || early(r) && !(r.Risk < j.Trials[i-1].Risk) {
			t.Errorf("trial %d: risk %v, of clean images %v", i, r.Risk, j.Risk)
		}
	}
}

// Pixels stay in their range, which need not be [0,1], and every perturbation stays in its ball. The ball is measured
// in float64, in which 0.3 is not a float32 number.
func TestExamplesOfClassifiersStayInTheBallAndInTheRange(t *testing.T) {
	p, x, labels := twoClasses(40)
	for i := range x {
		x[i] = 200 + 55*x[i]
	}
	for _, b := range []attack.Ball{{Epsilon: 0.3}, {Epsilon: 45.3}, {Epsilon: 0.7, Norm: attack.L2}, {Epsilon: 77.7, Norm: attack.L2}} {
		if b.Norm == "" {
			b.Norm = attack.LInf
		}
		b.Range = [2]float32{200, 255}
		j, err := attack.Judge(context.Background(), p, nil, x, labels, []attack.Trial{{Attack: &attack.PGD{Steps: 5, Restarts: 1}, Ball: b}})
		fatal.If(t, err)
		if r := j.Trials[0]; !(r.Largest > 0 && r.Largest <= b.Epsilon) || j.Range != b.Range {
			t.Errorf("%s %g: the largest perturbation is %.17g, range %v", b.Norm, b.Epsilon, r.Largest, j.Range)
		}
	}
}

func TestWilsonsInterval(t *testing.T) {
	p, x, labels := twoClasses(50)
	for i := range 10 { // 10 of 50 images are wrong
		labels[i] = 1 - labels[i]
	}
	j, err := attack.Judge(context.Background(), p, nil, x, labels, []attack.Trial{usual()})
	fatal.If(t, err)
	// Wilson's interval for 0.8 of 50 images
	if a := j.Accuracy; a.Value != 0.8 || math.Abs(a.Low-0.6696289) > 1e-6 || math.Abs(a.High-0.8875625) > 1e-6 {
		t.Errorf("got %+v", a)
	}
}

// An attack with the gradients of the attacked model is at least as strong as one with the gradients of another model.
func TestTransferIsNotStrongerThanTheWhiteBox(t *testing.T) {
	p, x, labels := twoClasses(300)
	r := rand.New(rand.NewPCG(5, 6))
	other := &plane{rows: [][]float64{slices.Clone(p.rows[0]), slices.Clone(p.rows[1])}}
	for _, row := range other.rows {
		for i := range row {
			row[i] += r.NormFloat64()
		}
	}
	trial := []attack.Trial{usual()}
	own, err := attack.Judge(context.Background(), p, nil, x, labels, trial)
	fatal.If(t, err)
	moved, err := attack.Judge(context.Background(), p, other, x, labels, trial)
	fatal.If(t, err)
	if white, black := own.Trials[0].Accuracy.Value, moved.Trials[0].Accuracy.Value; !(white < black && black < 1) {
		t.Errorf("white box %v, transfer %v, want a weaker transfer that still works", white, black)
	}
}

func TestTrialsOnClassifiersSayWhatIsWrong(t *testing.T) {
	p, x, labels := twoClasses(5)
	usual := usual()
	var none context.Context
	for want, call := range map[string]func() error{
		"no context": func() error { _, err := attack.Judge(none, p, nil, x, labels, []attack.Trial{usual}); return err },
		"nothing to attack": func() error {
			_, err := attack.Judge(t.Context(), nil, nil, x, labels, []attack.Trial{usual})
			return err
		},
		"no attacks":             func() error { _, err := attack.Judge(t.Context(), p, nil, x, labels, nil); return err },
		"no samples whose class": func() error { _, err := attack.Judge(t.Context(), p, nil, nil, nil, []attack.Trial{usual}); return err },
		"got 30 values of samples, want": func() error {
			_, err := attack.Judge(t.Context(), p, nil, x, labels[:4], []attack.Trial{usual})
			return err
		},
		"has the class 7": func() error {
			_, err := attack.Judge(t.Context(), p, nil, x, []int{0, 1, 7, 0, 1}, []attack.Trial{usual})
			return err
		},
		"of 6 values and 3 classes, want 6 and 2": func() error {
			_, err := attack.Judge(t.Context(), p, &plane{rows: make([][]float64, 3)}, x, labels, []attack.Trial{usual})
			return err
		},
	} {
		expect.Error(t, call(), want)
	}
}

package laws

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"tessera/attack"
	"tessera/internal/lists"
)

// Attack contains the laws of attacks, tested on a linear classifier of three classes, in both norms and by both objectives. Some samples
// have values outside of the range, and some are classified wrong without an attack.
var Attack = inTrials(eachAttackTrial, []law[attackTrial]{
	{"stays in the ball and in the range of values", attackTrial.stays},
	{"gives the same examples for the same seed", attackTrial.repeatable},
	{"leaves the samples and their classes as they are", attackTrial.preserves},
	{"lowers neither the margin nor the loss, and makes no wrong sample right", attackTrial.worsens},
	{"ends with the context of its task", attackTrial.ends},
})

// attackTrial is an attack with its task.
type attackTrial struct {
	fresh  func() attack.Attack
	trial  attack.Trial
	images []float32
	labels []int
}

func (t attackTrial) String() string {
	return fmt.Sprintf("%s %g by %s", t.trial.Norm, t.trial.Epsilon, t.trial.Objective)
}

// shots is a linear classifier of images of 6 x 6 pixels.
type shots struct{ weights [][]float64 }

const shotPixels = 36

func (shots) Shape() []int { return []int{6, 6} }

func (s shots) Classes() int { return len(s.weights) }

func (s shots) Logits(images []float32) (logits []float32, err error) {
	for x := range slices.Chunk(images, shotPixels) {
		for _, w := range s.weights {
			z := 0.0
			for i, v := range x {
				z += w[i] * float64(v)
			}
			logits = append(logits, float32(z))
		}
	}
	return logits, nil
}

func (s shots) Gradient(objective attack.Objective, images, targets []float32) (gradient, logits []float32, err error) {
	logits, err = s.Logits(images)
	slopes := attack.Softmax(logits, len(s.weights))
	for at := 0; at < len(logits); at += len(s.weights) {
		best := -1
		for j := range s.weights {
			if slopes[at+j] -= targets[at+j]; targets[at+j] == 0 && (best < 0 || logits[at+j] > logits[at+best]) {
				best = j
			}
		}
		if objective == attack.Margin {
			for j := range s.weights {
				slopes[at+j] = -targets[at+j]
			}
			slopes[at+best]++
		}
		for i := range shotPixels {
			g := 0.0
			for j, w := range s.weights {
				g += float64(slopes[at+j]) * w[i]
			}
			gradient = append(gradient, float32(g))
		}
	}
	return gradient, logits, err
}

func (attackTrial) classifier() shots {
	r := source()
	var s shots
	for range 3 {
		w := lists.Of(shotPixels, func(int) float64 { return r.NormFloat64() })
		s.weights = append(s.weights, w)
	}
	return s
}

func eachAttackTrial(fresh func() attack.Attack, try func(t attackTrial)) error {
	for _, b := range []attack.Ball{{Norm: attack.LInf, Epsilon: 0.1}, {Norm: attack.L2, Epsilon: 0.7, Range: [2]float32{-1, 3}}} {
		for _, objective := range []attack.Objective{attack.CrossEntropy, attack.Margin} {
			r := rand.New(rand.NewPCG(3, 4))
			t := attackTrial{fresh: fresh, trial: attack.Trial{Ball: b, Objective: objective, Seed: 5}}
			for range 12 * shotPixels {
				t.images = append(t.images, float32(0.5+0.2*r.NormFloat64()))
			}
			t.images[3], t.images[shotPixels+8] = -1.5, 3.25
			logits, _ := t.classifier().Logits(t.images)
			for z := range slices.Chunk(logits, 3) {
				t.labels = append(t.labels, slices.Index(z, slices.Max(z)))
			}
			t.labels[7], t.labels[8] = (t.labels[7]+1)%3, (t.labels[8]+2)%3
			try(t)
		}
	}
	return nil
}

// perturbed returns the examples of a fresh attack, and the task.
func (t attackTrial) perturbed(ctx context.Context) ([]float32, *attack.Task, error) {
	t.trial.Attack = t.fresh()
	task, err := attack.NewTask(ctx, t.trial, t.classifier(), t.images, t.labels)
	if err != nil {
		return nil, nil, err
	}
	x := slices.Clone(t.images)
	return x, task, t.trial.Attack.Perturb(task, x)
}

func (t attackTrial) stays() error {
	x, _, err := t.perturbed(context.Background())
	if err != nil {
		return err
	}
	low, high := float32(0), float32(1)
	if t.trial.Range != [2]float32{} {
		low, high = t.trial.Range[0], t.trial.Range[1]
	}
	for at := 0; at < len(x); at += shotPixels {
		largest, squares := 0.0, 0.0
		for i := at; i < at+shotPixels; i++ {
			d := math.Abs(float64(x[i]) - float64(t.images[i]))
			largest, squares = max(largest, d), squares+d*d
			if !(x[i] >= min(low, t.images[i]) && x[i] <= max(high, t.images[i])) {
				return fmt.Errorf("sample %d: a value is %v, the clean one %v", at/shotPixels, x[i], t.images[i])
			}
		}
		if t.trial.Norm == attack.L2 {
			largest = math.Sqrt(squares)
		}
		if !(largest <= t.trial.Epsilon*(1+1e-5)) {
			return fmt.Errorf("sample %d moves by %v", at/shotPixels, largest)
		}
	}
	return nil
}

func (t attackTrial) repeatable() error {
	first, _, err := t.perturbed(context.Background())
	if err != nil {
		return err
	}
	second, _, err := t.perturbed(context.Background())
	return errors.Join(err, differ("examples of a second attack", second, first))
}

func (t attackTrial) preserves() error {
	images, labels := slices.Clone(t.images), slices.Clone(t.labels)
	_, task, err := t.perturbed(context.Background())
	if err != nil {
		return err
	}
	if !slices.Equal(task.Labels, labels) {
		return errors.New("the attack changes the classes")
	}
	return differ("clean samples after the attack", task.Clean, images)
}

// worsens compares means: an attack without gradients may lower single values.
func (t attackTrial) worsens() error {
	x, task, err := t.perturbed(context.Background())
	if err != nil {
		return err
	}
	of := lists.Range(0, len(t.labels))
	clean, err := task.Outcomes(t.images, of)
	if err != nil {
		return err
	}
	o, err := task.Outcomes(x, of)
	if err != nil {
		return err
	}
	margin, loss := 0.0, 0.0
	for i := range of {
		margin, loss = margin+o.Margin[i]-clean.Margin[i], loss+o.Loss[i]-clean.Loss[i]
		if clean.Wrong[i] && !o.Wrong[i] {
			return fmt.Errorf("sample %d was wrong and is right", i)
		}
	}
	if margin < -1e-4 || loss < -1e-4 {
		return fmt.Errorf("the margins grow by %.4g and the losses by %.4g, want no decrease", margin, loss)
	}
	return nil
}

func (t attackTrial) ends() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := t.perturbed(ctx); !errors.Is(err, context.Canceled) {
		return fmt.Errorf("got %v after the context was cancelled, want its error", err)
	}
	return nil
}

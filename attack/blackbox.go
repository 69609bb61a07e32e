package attack

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"tessera/internal/random"
)

// The black-box attacks. They use only the answers of a classifier to queries, no gradients. One query is one image.
const (
	// Square changes random squares and reads the logits (Andriushchenko, Croce, Flammarion and Hein, Square Attack: a
	// Query-Efficient Black-box Adversarial Attack via Random Search, 2020).
	Square Method = "square"
	// Score takes the steps of pgd along a gradient that is estimated from finite differences of logits ([Estimator]).
	Score Method = "score"
	// Decision is HopSkipJump. It reads only the predicted class and moves along the boundary between the classes
	// (Chen, Jordan and Wainwright, HopSkipJumpAttack: A Query-Efficient Decision-Based Attack, 2020).
	Decision Method = "decision"
)

// blackBox reports whether the method needs no gradients.
func (m Method) blackBox() bool { return m == Square || m == Score || m == Decision }

// Estimator selects how score estimates the gradient of a function f. An estimate takes 2 n queries with differences of
// length h, which is 0.001 of the range of pixel values.
type Estimator string

// The estimators.
const (
	// Coordinates uses the central difference for every pixel: n is the number of pixels.
	Coordinates Estimator = "coordinates"
	// NES is the mean of (f(x + hu) - f(x - hu)) u / 2h over n normal directions u (Ilyas, Engstrom, Athalye and Lin 2018).
	NES Estimator = "nes"
	// SPSA is the same mean over directions of random signs (Spall 1992; Uesato, O'Donoghue, van den Oord and Kohli
	// 2018).
	SPSA Estimator = "spsa"
)

// Choices lists the estimators.
func (Estimator) Choices() []string {
	return []string{string(Coordinates), string(NES), string(SPSA)}
}

// The defaults of the black-box attacks.
const (
	usualQueries = 1000
	usualSamples = 20 // number of directions of an estimate
	mostQueries  = 1_000_000
)

// budget returns the maximum number of queries for one image.
func (t *Trial) budget() int {
	if t.Queries > 0 {
		return t.Queries
	}
	return usualQueries
}

// pieces lists the batch sizes of the queries, largest first. A program is compiled once for each.
var pieces = []int{500, 50, 5, 1}

// ask returns the outcomes of any number of images with the given labels.
func (s *subject) ask(x []float32, labels []int) (all outcomes, err error) {
	for len(labels) > 0 {
		n := pieces[slices.IndexFunc(pieces, func(size int) bool { return size <= len(labels) })]
		if err := s.ctx.Err(); err != nil {
			return all, err
		}
		o, err := s.judge(s.model, x[:n*s.pixels], labels[:n])
		if err != nil {
			return all, err
		}
		all.wrong, all.margin, all.loss = append(all.wrong, o.wrong...), append(all.margin, o.margin...), append(all.loss, o.loss...)
		x, labels = x[n*s.pixels:], labels[n:]
	}
	return all, nil
}

// value returns the objective that the attack maximises, for image k.
func (t *Trial) value(o outcomes, k int) float64 {
	if t.objective() == Margin {
		return o.margin[k]
	}
	return o.loss[k]
}

// byQueries returns the examples of a black-box attack. spent is the number of queries after which each image was
// misclassified: 0 for an image that is misclassified without an attack, -1 for an image that is never misclassified.
func (t *Trial) byQueries(s *subject) (x []float32, spent []int, err error) {
	x, spent = slices.Clone(s.images), make([]int, s.inputs)
	clean, err := s.ask(s.images, s.labels)
	if err != nil {
		return nil, nil, err
	}
	attack := map[Method]func(*subject, int, []float32, *rand.Rand) (int, error){Square: t.square, Score: t.score, Decision: t.decision}[t.Method]
	for i := range s.inputs {
		if clean.wrong[i] {
			continue
		}
		r := random.Stream(t.Seed, "attack/"+string(t.Method), uint64(i))
		if spent[i], err = attack(s, i, s.image(x, i), r); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", t.Method, err)
		}
	}
	t.settle(x, s.images, s.pixels)
	return x, spent, nil
}

// score attacks image i by estimated gradients. It starts from x and moves x. It returns the number of queries after
// which the image was misclassified, or -1.
func (t *Trial) score(s *subject, i int, x []float32, r *rand.Rand) (int, error) {
	n := usualSamples
	switch {
	case t.Estimator == Coordinates:
		n = s.pixels
	case t.Samples > 0:
		n = t.Samples
	}
	steps := max(1, t.budget()/(2*n+1))
	move := t.Attack
	move.Method, move.Steps = PGD, steps
	if t.Estimator == Coordinates && t.budget() < 2*n+1 {
		return -1, fmt.Errorf("one estimate of %s takes %d queries, more than %d: raise queries or take another estimator", t.Estimator, 2*n+1, t.budget())
	}
	low, high := t.span()
	h := 0.001 * (high - low)
	directions, rows := make([]float32, n*s.pixels), make([]float32, 2*n*s.pixels)
	labels := slices.Repeat([]int{s.labels[i]}, 2*n)
	gradient := make([]float32, s.pixels)
	for step := range steps {
		t.draw(directions, s.pixels, r)
		for k := range n {
			u, up, down := s.image(directions, k), s.image(rows, 2*k), s.image(rows, 2*k+1)
			for j, v := range x {
				up[j], down[j] = v+h*u[j], v-h*u[j]
			}
		}
		o, err := s.ask(rows, labels)
		if err != nil {
			return -1, err
		}
		clear(gradient)
		for k := range n {
			slope := float32((t.value(o, 2*k) - t.value(o, 2*k+1)) / float64(2*h))
			for j, u := range s.image(directions, k) {
				gradient[j] += slope * u
			}
		}
		move.Move(x, s.image(s.images, i), gradient, s.pixels)
		if o, err = s.ask(x, labels[:1]); err != nil || o.wrong[0] {
			return (step + 1) * (2*n + 1), err
		}
	}
	return -1, nil
}

// draw sets the directions of one estimate.
func (t *Trial) draw(directions []float32, pixels int, r *rand.Rand) {
	for k := range directions {
		switch t.Estimator {
		case Coordinates:
			directions[k] = 0
			if k/pixels == k%pixels {
				directions[k] = 1
			}
		case SPSA:
			directions[k] = float32(2*r.IntN(2) - 1)
		default:
			directions[k] = float32(r.NormFloat64())
		}
	}
}

// CurvePoint is a point of the curve of the accuracy against the number of queries per image.
type CurvePoint struct {
	Queries  int     `json:"queries"`
	Accuracy float64 `json:"accuracy"`
}

// curve returns the accuracy after 1, 2, 5, 10, 20, 50, ... queries and after budget queries.
func curve(spent []int, budget int) (points []CurvePoint) {
	at := func(queries int) {
		right := 0
		for _, n := range spent {
			if n < 0 || n > queries {
				right++
			}
		}
		points = append(points, CurvePoint{queries, float64(right) / float64(len(spent))})
	}
	for tens := 1; ; tens *= 10 {
		for _, n := range []int{tens, 2 * tens, 5 * tens} {
			if n >= budget {
				at(budget)
				return points
			}
			at(n)
		}
	}
}

// masked lists the black-box attacks that are stronger than the gradient attacks in the same ball: their accuracy is
// lower by more than 0.01. The gradients are then misleading (Athalye, Carlini and Wagner, Obfuscated Gradients Give a
// False Sense of Security, 2018).
func masked(results []TrialResult) (list []string) {
	for _, black := range results {
		if !black.Method.blackBox() {
			continue
		}
		best := math.Inf(1)
		for _, white := range results {
			if !white.Method.blackBox() && white.Norm == black.Norm && white.Epsilon == black.Epsilon {
				best = min(best, white.Accuracy.Value)
			}
		}
		if !math.IsInf(best, 1) && best > black.Accuracy.Value+0.01 {
			list = append(list, fmt.Sprintf("%s %g: %s leaves an accuracy of %.4f, the attacks by gradients only %.4f: the gradients are masked, do not judge the model by them",
				black.Norm, black.Epsilon, black.Method, black.Accuracy.Value, best))
		}
	}
	return list
}

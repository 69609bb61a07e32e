package attack

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"tessera/config/part"
)

func init() {
	Registry.Register("score", "steps of pgd along estimated gradients", func() Attack { return &Score{Queries: usualQueries, Estimator: NES, Samples: 20} })
}

// The limits of queries.
const (
	usualQueries = 1000
	mostQueries  = 1_000_000
)

// Score takes the steps of pgd along a gradient of the objective f of the logits that is estimated from finite differences, with h
// = 0.001 of the range of the values:
//
//	coordinates: (f(x + h e_i) - f(x - h e_i)) / 2h for every value i
//	nes, spsa: the mean of (f(x + hu) - f(x - hu)) u / 2h over normal directions u, over random signs u
//
// An estimate takes 2 queries for each direction or value, and one for the new sample. The number of queries determines the number of
// steps.
//
// Sources: Ilyas, Engstrom, Athalye and Lin, Black-box Adversarial Attacks with Limited Queries and Information, 2018; Uesato et al.,
// Adversarial Risk and the Dangers of Evaluating Against Weak Attacks, 2018 (spsa).
type Score struct {
	Queries   int       `toml:"queries" want:"in [1,1000000]" doc:"maximum number of queries for one sample"`
	Estimator Estimator `toml:"estimator" doc:"how score estimates gradients"`
	Samples   int       `toml:"samples" want:"in [1,499999]" doc:"number of directions of one estimate of nes and spsa"`
}

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

var _ BlackBox = (*Score)(nil)

// Check returns the first invalid setting as a part.KeyError.
func (s *Score) Check() error {
	if !slices.Contains(s.Estimator.Choices(), string(s.Estimator)) {
		return part.KeyErrorf("estimator", "got %v, want one of %v", s.Estimator, s.Estimator.Choices())
	}
	if err := within("queries", s.Queries, 1, mostQueries); err != nil {
		return err
	}
	return within("samples", s.Samples, 1, mostQueries/2-1)
}

func (s *Score) Budget() int { return s.Queries }

func (s *Score) Perturb(t *Task, x []float32) error {
	n := s.Samples
	if s.Estimator == Coordinates {
		n = t.Pixels
	}
	if s.Queries < 2*n+1 {
		return fmt.Errorf("one estimate of %s takes %d queries, more than %d: raise queries, lower samples or take another estimator", s.Estimator, 2*n+1, s.Queries)
	}
	steps := s.Queries / (2*n + 1)
	return t.EachRight(x, func(i int, x []float32, r *rand.Rand) (int, error) {
		for step := range steps {
			gradient, err := s.estimate(t, x, i, n, r)
			if err != nil {
				return -1, err
			}
			t.Move(x, t.Sample(t.Clean, i), gradient, t.Pixels, 2.5*t.Epsilon/float64(steps))
			if o, err := t.Outcomes(x, []int{i}); err != nil || o.Wrong[0] {
				return (step + 1) * (2*n + 1), err
			}
		}
		return -1, nil
	})
}

// estimate returns an estimate of the gradient at x, a version of sample i, from n directions.
func (s *Score) estimate(t *Task, x []float32, i, n int, r *rand.Rand) ([]float32, error) {
	low, high := t.span()
	h := 0.001 * (high - low)
	directions, rows := make([]float32, n*t.Pixels), make([]float32, 2*n*t.Pixels)
	s.draw(directions, t.Pixels, r)
	for k := range n {
		u, up, down := t.Sample(directions, k), t.Sample(rows, 2*k), t.Sample(rows, 2*k+1)
		for j, v := range x {
			up[j], down[j] = v+h*u[j], v-h*u[j]
		}
	}
	o, err := t.Outcomes(rows, slices.Repeat([]int{i}, 2*n))
	if err != nil {
		return nil, err
	}
	gradient := make([]float32, t.Pixels)
	for k := range n {
		slope := float32((t.Value(o, 2*k) - t.Value(o, 2*k+1)) / float64(2*h))
		for j, u := range t.Sample(directions, k) {
			gradient[j] += slope * u
		}
	}
	return gradient, nil
}

// draw sets the directions of one estimate.
func (s *Score) draw(directions []float32, pixels int, r *rand.Rand) {
	for k := range directions {
		switch s.Estimator {
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

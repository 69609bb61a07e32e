package attack

import (
	"math"
	"math/rand/v2"
	"slices"
)

func init() {
	Registry.Register("decision", "HopSkipJump: a walk along the boundary of the classes", func() Attack { return &Decision{Queries: usualQueries} })
}

// Decision is HopSkipJump. It reads only the predicted class: from a misclassified image it moves along the boundary between the classes
// towards the clean image.
//
// Source: Chen, Jordan and Wainwright, HopSkipJumpAttack: A Query-Efficient Decision-Based Attack, 2020.
type Decision struct {
	Queries int `toml:"queries" want:"in [1,1000000]" doc:"maximum number of queries for one sample"`
}

var _ BlackBox = (*Decision)(nil)

// Check returns the first invalid setting as a part.KeyError.
func (d *Decision) Check() error { return within("queries", d.Queries, 1, mostQueries) }

func (d *Decision) Budget() int { return d.Queries }

// Perturb implements [Attack]. It sets the row of an image to the nearest misclassified image that it finds in the ball.
func (d *Decision) Perturb(t *Task, x []float32) error {
	return t.EachRight(x, func(i int, x []float32, r *rand.Rand) (int, error) {
		h := &hop{t, t.Sample(t.Clean, i), i, 0, d.Queries, r}
		far, err := h.begin()
		if err != nil || far == nil {
			return -1, err
		}
		near, err := h.bisect(far)
		for round := 1; err == nil && h.away(near) > t.Epsilon && h.asked < h.budget; round++ {
			near, err = h.round(near, round)
		}
		if err != nil || h.away(near) > t.Epsilon {
			return -1, err
		}
		copy(x, near)
		return h.asked, nil
	})
}

// hop is HopSkipJump for one image. The attack moves a misclassified image closer to the clean one.
type hop struct {
	*Task
	clean  []float32
	index  int
	asked  int
	budget int
	random *rand.Rand
}

// away returns the distance of x from the clean image in the norm of the attack.
func (h *hop) away(x []float32) float64 { return h.Task.away(x, h.clean) }

// wrong reports for each image whether it is misclassified. It counts the queries.
func (h *hop) wrong(x []float32) ([]bool, error) {
	n := len(x) / h.Pixels
	h.asked += n
	o, err := h.Outcomes(x, slices.Repeat([]int{h.index}, n))
	return o.Wrong, err
}

// begin returns a misclassified image, or nil if it finds none. It tries random images first, then the other images of
// the attack.
func (h *hop) begin() ([]float32, error) {
	low, high := h.span()
	for k := range min(50, h.budget) + h.Samples {
		if h.asked >= h.budget {
			break
		}
		x := make([]float32, h.Pixels)
		if k < 50 {
			for i := range x {
				x[i] = low + (high-low)*float32(h.random.Float64())
			}
		} else if j := k - 50; j >= h.Samples || h.Labels[j] == h.Labels[h.index] {
			continue
		} else {
			copy(x, h.Sample(h.Clean, j))
		}
		if wrong, err := h.wrong(x); err != nil || wrong[0] {
			return x, err
		}
	}
	return nil, nil
}

// theta returns the relative width of the interval at which a bisection ends.
func (h *hop) theta() float64 {
	d := float64(h.Pixels)
	if h.Norm == L2 {
		return 1 / (math.Sqrt(d) * d)
	}
	return 1 / (d * d)
}

// between returns an image between the clean image and x. In l2 it lies at the fraction share of the way. In linf it is
// x clipped to the ball whose radius is the fraction share of the distance.
func (h *hop) between(x []float32, share float64) []float32 {
	y := make([]float32, len(x))
	radius := share * h.away(x)
	for i, c := range h.clean {
		d := float64(x[i]) - float64(c)
		if h.Norm == L2 {
			d *= share
		} else {
			d = min(max(d, -radius), radius)
		}
		y[i] = h.shifted(c, d)
	}
	return y
}

// bisect returns a misclassified image next to the boundary, between the clean image and x. x must be misclassified.
func (h *hop) bisect(x []float32) ([]float32, error) {
	low, high, best := 0.0, 1.0, x
	for high-low > max(h.theta(), 1e-6) && h.asked < h.budget {
		middle := (low + high) / 2
		y := h.between(x, middle)
		wrong, err := h.wrong(y)
		if err != nil {
			return nil, err
		}
		if wrong[0] {
			high, best = middle, y
		} else {
			low = middle
		}
	}
	return best, nil
}

// round makes one iteration from x. It estimates the direction of the boundary's normal. Then it takes the longest step
// that leaves the image misclassified, of length dist/sqrt(round) times a power of 1/2, and returns to the boundary.
func (h *hop) round(x []float32, round int) ([]float32, error) {
	low, high := h.span()
	away, d := h.away(x), float64(h.Pixels)
	radius := math.Sqrt(d) * h.theta() * away
	if h.Norm == LInf {
		radius = d * h.theta() * away
	}
	if round == 1 {
		radius = 0.1 * float64(high-low)
	}
	direction, err := h.normal(x, max(radius, 1e-4*float64(high-low)), min(int(100*math.Sqrt(float64(round))), h.budget-h.asked))
	if err != nil || direction == nil {
		return x, err
	}
	for step := away / math.Sqrt(float64(round)); h.asked < h.budget && step > 1e-9*away; step /= 2 {
		y := make([]float32, len(x))
		for i, v := range x {
			y[i] = h.bounded(v+float32(step*direction[i]), h.clean[i])
		}
		wrong, err := h.wrong(y)
		if err != nil {
			return nil, err
		}
		if !wrong[0] {
			continue
		}
		if y, err = h.bisect(y); err == nil && h.away(y) < away {
			x = y
		}
		return x, err
	}
	return x, nil
}

// normal estimates the direction in which images become misclassified, from the answers to n random images around x. It
// returns nil if n < 1.
func (h *hop) normal(x []float32, radius float64, n int) ([]float64, error) {
	if n < 1 {
		return nil, nil
	}
	rows, u := make([]float32, 0, n*len(x)), make([]float64, len(x))
	for range n {
		squares := 0.0
		for i := range u {
			if u[i] = h.random.NormFloat64(); h.Norm == LInf {
				u[i] = 2*h.random.Float64() - 1
			}
			squares += u[i] * u[i]
		}
		for i, v := range x {
			rows = append(rows, h.bounded(v+float32(radius*u[i]/math.Sqrt(squares)), h.clean[i]))
		}
	}
	wrong, err := h.wrong(rows)
	if err != nil {
		return nil, err
	}
	mean := 0.0
	for _, w := range wrong {
		if mean--; w {
			mean += 2
		}
	}
	if mean /= float64(n); math.Abs(mean) == 1 { // all answers are equal: the estimate is the mean of the directions
		mean = 0
	}
	g, squares := make([]float64, len(x)), 0.0
	for k, w := range wrong {
		answer := -1.0
		if w {
			answer = 1
		}
		for i, v := range h.Sample(rows, k) {
			g[i] += (answer - mean) * (float64(v) - float64(x[i]))
		}
	}
	for _, v := range g {
		squares += v * v
	}
	for i, v := range g {
		if g[i] = v / max(math.Sqrt(squares), 1e-300); h.Norm == LInf {
			g[i] = 0
			if v != 0 {
				g[i] = math.Copysign(1, v)
			}
		}
	}
	return g, nil
}

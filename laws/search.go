package laws

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"tessera/optim"
)

// Search contains the laws of full-batch optimizers.
var Search = once([]law[func() optim.Search]{
	{"gives the same bits twice", searchRepeatable},
	{"resumes from its state to the same bits, at every iteration", searchResumes},
	{"never goes up", monotone},
	{"finds the minimum of a quadratic", findsMinimum},
	{"finds the minimum of a quadratic in a box", findsMinimumInABox},
	{"stays where the gradient is zero", searchRests},
	{"returns from points where the objective is not finite", comesBack},
	{"reports an objective that is not finite at the start", reportsNotFinite},
	{"changes no weight if an evaluation fails", unchangedByErrors},
	{"uses all of its state and no more", searchState},
})

const searchDim = 40

// searchIterations is the number of iterations within which a search must find the minimum of a quadratic function.
const searchIterations = 400

func searchRepeatable(fresh func() optim.Search) error {
	start := normal(source(), searchDim, 3)
	o := fresh()
	first := newSearching(o, newValley(true).objective(nil), start)
	again := newSearching(o, newValley(true).objective(nil), start)
	other := newSearching(fresh(), newValley(true).objective(nil), start)
	for i := range 40 {
		if err := first.together(i, again, other); err != nil {
			return err
		}
	}
	return nil
}

func searchResumes(fresh func() optim.Search) error {
	for _, project := range []func([]float32){nil, within(-0.5, 0.5)} {
		f := newValley(true).objective(project)
		start := normal(source(), searchDim, 0.2)
		s, resumed := newSearching(fresh(), f, start), newSearching(fresh(), f, start)
		for i := range 60 {
			resumed = resumed.continued(fresh(), f)
			if err := s.together(i, resumed); err != nil {
				return err
			}
		}
	}
	return nil
}

func monotone(fresh func() optim.Search) error {
	for _, project := range []func([]float32){nil, within(-0.3, 2)} {
		v := newValley(true)
		s := newSearching(fresh(), v.objective(project), converted[float32](uniform(searchDim, 0, 1)))
		g := make([]float32, searchDim)
		before, _ := v.evaluate(s.w, g)
		_, err := s.toTheEnd(100, func(i int) error {
			now, _ := v.evaluate(s.w, g)
			if !(now < before) {
				return fmt.Errorf("iteration %d leads from %g to %g", i+1, before, now)
			}
			if now != s.saved.Value {
				return fmt.Errorf("iteration %d leads to %g, but the search state says %g", i+1, now, s.saved.Value)
			}
			before = now
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func findsMinimum(fresh func() optim.Search) error {
	v := newValley(false)
	s := newSearching(fresh(), v.objective(nil), normal(source(), searchDim, 3))
	return s.reaches(v.target)
}

// findsMinimumInABox checks that a search finds the minimum of a quadratic function in a box. The curvatures are along the
// axes, so that this is the point of the box nearest to the unconstrained minimum.
func findsMinimumInABox(fresh func() optim.Search) error {
	v := newValley(false)
	box := within(-0.5, 0.5)
	s := newSearching(fresh(), v.objective(box), make([]float32, searchDim))
	want := slices.Clone(v.target)
	box(want)
	if err := s.reaches(want); err != nil {
		return err
	}
	inBox := slices.Clone(s.w)
	box(inBox)
	return differ("outside the box", s.w, inBox)
}

func searchRests(fresh func() optim.Search) error {
	v := newValley(false)
	for _, project := range []func([]float32){nil, func([]float32) {}} {
		s := newSearching(fresh(), v.objective(project), v.target)
		for range 3 {
			if err := s.Next(); !errors.Is(err, optim.ErrMinimum) {
				return fmt.Errorf("at the minimum: %v", err)
			}
			if err := differ("at the minimum", s.w, v.target); err != nil {
				return err
			}
		}
	}
	return nil
}

// comesBack checks that a search recovers from a step to a point where the objective is not finite. The search starts near the
// minimum and near the boundary of the finite region, so that the first step ends beyond the boundary.
func comesBack(fresh func() optim.Search) error {
	v := newValley(false)
	v.edge = 0.03
	start := slices.Clone(v.target)
	for i := range start {
		start[i] -= 0.1
	}
	s := newSearching(fresh(), v.objective(nil), start)
	if _, err := s.toTheEnd(200, nil); err != nil {
		return err
	}
	g := make([]float32, searchDim)
	before, _ := v.evaluate(start, g)
	if now, _ := v.evaluate(s.w, g); !(now < 1e-3*before) {
		return fmt.Errorf("from %g to %g only", before, now)
	}
	return nil
}

func reportsNotFinite(fresh func() optim.Search) error {
	for name, evaluate := range map[string]func(w, g []float32) (float64, error){
		"a value of NaN":      func(w, g []float32) (float64, error) { return math.NaN(), nil },
		"an infinite value":   func(w, g []float32) (float64, error) { return math.Inf(-1), nil },
		"a gradient of NaN":   func(w, g []float32) (float64, error) { g[1] = float32(math.NaN()); return 1, nil },
		"an infinite element": func(w, g []float32) (float64, error) { g[0] = float32(math.Inf(1)); return 1, nil },
	} {
		s := newSearching(fresh(), optim.Objective{Evaluate: evaluate}, make([]float32, 2))
		if err := s.Next(); !errors.Is(err, optim.ErrNotFinite) {
			return fmt.Errorf("%s: %v", name, err)
		}
	}
	return nil
}

// unchangedByErrors makes each evaluation fail in turn. A restarted search must give the same result as a search without
// failures.
func unchangedByErrors(fresh func() optim.Search) error {
	start := normal(source(), searchDim, 3)
	for fail := 1; fail <= 25; fail++ {
		v := newValley(true)
		v.fail = fail
		s := newSearching(fresh(), v.objective(nil), start)
		want := newSearching(fresh(), newValley(true).objective(nil), start)
		before := slices.Clone(s.w)
		iterations, err := s.toTheEnd(30, func(int) error {
			copy(before, s.w)
			return nil
		})
		switch {
		case err == nil:
			return fmt.Errorf("%d iterations make fewer than %d evaluations", iterations, fail)
		case !errors.Is(err, errEvaluation):
			return err
		case !slices.Equal(before, s.w):
			return fmt.Errorf("evaluation %d fails, and the weights have changed", fail)
		}
		resumed := s.continued(fresh(), v.objective(nil))
		for range iterations {
			if err := want.Next(); err != nil {
				return err
			}
		}
		for i := range 5 {
			if err := want.together(iterations+i, s, resumed); err != nil {
				return fmt.Errorf("evaluation %d failed: %w", fail, err)
			}
		}
	}
	return nil
}

// searchState checks that a search uses all vectors of its state and does not write beyond their ends.
func searchState(fresh func() optim.Search) error {
	o := fresh()
	all, state := paddedState(slices.Repeat([]int{searchDim}, o.States()))
	s := &searching{w: normal(source(), searchDim, 3), state: state}
	s.begin(o, newValley(true).objective(nil))
	if _, err := s.toTheEnd(o.States(), nil); err != nil {
		return err
	}
	for i, v := range state {
		if !slices.ContainsFunc(v, func(v float32) bool { return v != 0 }) {
			return fmt.Errorf("state %d of %d is empty after as many iterations", i, o.States())
		}
	}
	return outsideAll(all)
}

// searching is a search in progress with its state.
type searching struct {
	w     []float32
	state [][]float32
	saved optim.SearchState
	optim.Descent
}

func newSearching(o optim.Search, f optim.Objective, w []float32) *searching {
	s := &searching{w: slices.Clone(w), state: newState(slices.Repeat([]int{len(w)}, o.States()))}
	return s.begin(o, f)
}

// begin starts the search from its weights and state.
func (s *searching) begin(o optim.Search, f optim.Objective) *searching {
	s.Descent = o.Begin(f, s.w, s.state, &s.saved)
	return s
}

// continued returns a new search that starts from the state of this one.
func (s *searching) continued(o optim.Search, f optim.Objective) *searching {
	c := &searching{w: slices.Clone(s.w), saved: s.saved}
	for _, values := range s.state {
		c.state = append(c.state, slices.Clone(values))
	}
	return c.begin(o, f)
}

// together runs the i-th iteration of this search and of others. All must give the same bits.
func (s *searching) together(i int, others ...*searching) error {
	want := s.Next()
	if want != nil && !errors.Is(want, optim.ErrMinimum) {
		return fmt.Errorf("iteration %d: %w", i+1, want)
	}
	for _, other := range others {
		if err := other.Next(); !errors.Is(err, want) {
			return fmt.Errorf("iteration %d: %v, want %v", i+1, err, want)
		}
		if err := differAll(fmt.Sprintf("iteration %d", i+1), append(other.state, other.w), append(s.state, s.w)); err != nil {
			return err
		}
		if other.saved != s.saved {
			return fmt.Errorf("iteration %d: search state %v, want %v", i+1, other.saved, s.saved)
		}
	}
	return nil
}

// toTheEnd iterates until the search converges, at most limit iterations, and calls after (if not nil) after each iteration.
func (s *searching) toTheEnd(limit int, after func(i int) error) (iterations int, err error) {
	for i := range limit {
		if err := s.Next(); errors.Is(err, optim.ErrMinimum) {
			return i, nil
		} else if err != nil {
			return i, err
		}
		if after == nil {
			continue
		}
		if err := after(i); err != nil {
			return i, err
		}
	}
	return limit, nil
}

// reaches returns an error if the search ends at another point.
func (s *searching) reaches(want []float32) error {
	n, err := s.toTheEnd(searchIterations, nil)
	if err != nil {
		return err
	}
	for i := range want {
		if d := math.Abs(float64(s.w[i] - want[i])); !(d < 1e-3) {
			return fmt.Errorf("after %d iterations element %d is %g from its minimum", n, i, d)
		}
	}
	return nil
}

// within returns the projection onto a box.
func within(low, high float32) func([]float32) {
	return func(w []float32) {
		for i, v := range w {
			w[i] = min(max(v, low), high)
		}
	}
}

// valley is the objective of the laws. It is quadratic along all directions but the last, along which it is flat near its
// minimum and no quadratic model fits.
type valley struct {
	curvature, target []float32
	quartic           bool
	evaluations       int
	fail              int // number of the evaluation that fails; 0 for none
	edge              float64
}

func newValley(quartic bool) *valley {
	v := &valley{target: normal(source(), searchDim, 1), quartic: quartic, edge: math.Inf(1)}
	for i := range searchDim {
		v.curvature = append(v.curvature, float32(math.Pow(100, float64(i)/(searchDim-1)))/10)
	}
	return v
}

func (v *valley) objective(project func([]float32)) optim.Objective {
	return optim.Objective{Evaluate: v.evaluate, Project: project}
}

var errEvaluation = errors.New("a failing evaluation")

func (v *valley) evaluate(w, g []float32) (sum float64, err error) {
	if v.evaluations++; v.evaluations == v.fail {
		return 0, errEvaluation
	}
	for i := range w {
		c, d := float64(v.curvature[i]), float64(w[i])-float64(v.target[i])
		sum += c * d * d / 2
		slope := c * d
		if v.quartic {
			sum += d * d * d * d
			slope += 4 * d * d * d
		}
		if d > v.edge {
			sum = math.NaN()
		}
		g[i] = float32(slope)
	}
	return sum, nil
}

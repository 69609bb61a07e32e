package laws

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"tessera/optim"
)

// Search contains the laws of full-batch optimizers.
var Search = Laws[optim.Search]{
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
}

const searchDim = 40

func searchRepeatable(fresh func() optim.Search) error {
	start := normal(source(), searchDim, 3)
	o := fresh()
	a := newSearching(o, optim.Objective{Evaluate: newValley(searchDim, true).evaluate}, start)
	again := newSearching(o, optim.Objective{Evaluate: newValley(searchDim, true).evaluate}, start)
	other := newSearching(fresh(), optim.Objective{Evaluate: newValley(searchDim, true).evaluate}, start)
	for i := range 40 {
		want := a.Next()
		for _, s := range []*searching{again, other} {
			if err := s.Next(); !errors.Is(err, want) {
				return fmt.Errorf("iteration %d: %v, want %v", i+1, err, want)
			}
			if err := s.differ(fmt.Sprintf("iteration %d", i+1), a); err != nil {
				return err
			}
		}
	}
	return nil
}

func searchResumes(fresh func() optim.Search) error {
	for _, project := range []func([]float32){nil, within(-0.5, 0.5)} {
		f := optim.Objective{Evaluate: newValley(searchDim, true).evaluate, Project: project}
		start := normal(source(), searchDim, 0.2)
		s := newSearching(fresh(), f, start)
		resumed := newSearching(fresh(), f, start)
		for i := range 60 {
			resumed = resumed.continued(fresh(), f)
			want := s.Next()
			if err := resumed.Next(); !errors.Is(err, want) {
				return fmt.Errorf("iteration %d: %v, want %v", i+1, err, want)
			}
			if err := resumed.differ(fmt.Sprintf("iteration %d", i+1), s); err != nil {
				return err
			}
		}
	}
	return nil
}

// comesBack starts near the minimum and near the boundary of the finite region: the first step ends beyond the boundary.
func comesBack(fresh func() optim.Search) error {
	v := newValley(searchDim, false)
	v.edge = 0.03
	start := slices.Clone(v.target)
	for i := range start {
		start[i] -= 0.1
	}
	s := newSearching(fresh(), optim.Objective{Evaluate: v.evaluate}, start)
	if _, err := s.toTheEnd(200); err != nil {
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

// unchangedByErrors lets each evaluation fail in turn; a restarted search must give the same result as a search without
// failures.
func unchangedByErrors(fresh func() optim.Search) error {
	start := normal(source(), searchDim, 3)
	for fail := 1; fail <= 25; fail++ {
		v := newValley(searchDim, true)
		v.fail = fail
		f := optim.Objective{Evaluate: v.evaluate}
		s := newSearching(fresh(), f, start)
		want := newSearching(fresh(), optim.Objective{Evaluate: newValley(searchDim, true).evaluate}, start)
		iterations, failed := 0, false
		for ; iterations < 30 && !failed; iterations++ {
			before := slices.Clone(s.w)
			err := s.Next()
			switch {
			case errors.Is(err, errEvaluation):
				if failed = true; !slices.Equal(before, s.w) {
					return fmt.Errorf("evaluation %d fails, and the weights have changed", fail)
				}
				iterations--
			case err != nil:
				return err
			}
		}
		if !failed {
			return fmt.Errorf("%d iterations make fewer than %d evaluations", iterations, fail)
		}
		resumed := s.continued(fresh(), f)
		for range iterations + 5 {
			if err := want.Next(); err != nil {
				return err
			}
		}
		for _, t := range []*searching{s, resumed} {
			for range 5 {
				if err := t.Next(); err != nil {
					return err
				}
			}
			if err := t.differ(fmt.Sprintf("evaluation %d failed", fail), want); err != nil {
				return err
			}
		}
	}
	return nil
}

// searchState fills the state and checks for unused vectors and for writes beyond their ends.
func searchState(fresh func() optim.Search) error {
	const guard, mark = 8, -77
	o := fresh()
	var padded, state [][]float32
	for range o.States() {
		p := slices.Repeat([]float32{mark}, searchDim+guard)
		clear(p[:searchDim])
		padded, state = append(padded, p), append(state, p[:searchDim:searchDim])
	}
	var held optim.SearchState
	w := normal(source(), searchDim, 3)
	d := o.Begin(optim.Objective{Evaluate: newValley(searchDim, true).evaluate}, w, state, &held)
	for range o.States() {
		if err := d.Next(); errors.Is(err, optim.ErrMinimum) {
			break
		} else if err != nil {
			return err
		}
	}
	for i, p := range padded {
		if !slices.ContainsFunc(p[:searchDim], func(v float32) bool { return v != 0 }) {
			return fmt.Errorf("state %d of %d is empty after as many iterations", i, o.States())
		}
		if slices.ContainsFunc(p[searchDim:], func(v float32) bool { return v != mark }) {
			return fmt.Errorf("state %d: writes beyond its end", i)
		}
	}
	return nil
}

// searching is a search in progress with its state.
type searching struct {
	w     []float32
	state [][]float32
	saved optim.SearchState
	optim.Descent
}

func newSearching(o optim.Search, f optim.Objective, w []float32) *searching {
	s := &searching{w: slices.Clone(w)}
	for range o.States() {
		s.state = append(s.state, make([]float32, len(w)))
	}
	s.Descent = o.Begin(f, s.w, s.state, &s.saved)
	return s
}

// continued is another search that starts from this state.
func (s *searching) continued(o optim.Search, f optim.Objective) *searching {
	c := &searching{w: slices.Clone(s.w), saved: s.saved}
	for _, values := range s.state {
		c.state = append(c.state, slices.Clone(values))
	}
	c.Descent = o.Begin(f, c.w, c.state, &c.saved)
	return c
}

func (s *searching) differ(what string, want *searching) error {
	if err := differ(what+": weights", s.w, want.w); err != nil {
		return err
	}
	if s.saved != want.saved {
		return fmt.Errorf("%s: search state %v, want %v", what, s.saved, want.saved)
	}
	for i := range s.state {
		if err := differ(fmt.Sprintf("%s: state %d", what, i), s.state[i], want.state[i]); err != nil {
			return err
		}
	}
	return nil
}

// toTheEnd iterates until the search converges, at most limit iterations.
func (s *searching) toTheEnd(limit int) (iterations int, err error) {
	for ; iterations < limit; iterations++ {
		if err := s.Next(); errors.Is(err, optim.ErrMinimum) {
			return iterations, nil
		} else if err != nil {
			return iterations, err
		}
	}
	return iterations, nil
}

func monotone(fresh func() optim.Search) error {
	for _, project := range []func([]float32){nil, within(-0.3, 2)} {
		v := newValley(searchDim, true)
		s := newSearching(fresh(), optim.Objective{Evaluate: v.evaluate, Project: project}, uniform[float32](searchDim, 0, 1))
		g := make([]float32, searchDim)
		before, _ := v.evaluate(s.w, g)
		for i := range 100 {
			if err := s.Next(); errors.Is(err, optim.ErrMinimum) {
				break
			} else if err != nil {
				return err
			}
			now, _ := v.evaluate(s.w, g)
			if !(now < before) {
				return fmt.Errorf("iteration %d leads from %g to %g", i+1, before, now)
			}
			if now != s.saved.Value {
				return fmt.Errorf("iteration %d leads to %g, but the search state says %g", i+1, now, s.saved.Value)
			}
			before = now
		}
	}
	return nil
}

func findsMinimum(fresh func() optim.Search) error {
	v := newValley(searchDim, false)
	s := newSearching(fresh(), optim.Objective{Evaluate: v.evaluate}, normal(source(), searchDim, 3))
	n, err := s.toTheEnd(400)
	if err != nil {
		return err
	}
	for i, want := range v.target {
		if d := math.Abs(float64(s.w[i] - want)); !(d < 1e-3) {
			return fmt.Errorf("after %d iterations element %d is %g from its minimum", n, i, d)
		}
	}
	return nil
}

// within projects to a box.
func within(low, high float32) func([]float32) {
	return func(w []float32) {
		for i, v := range w {
			w[i] = min(max(v, low), high)
		}
	}
}

// findsMinimumInABox uses curvatures along the axes: the minimum in the box is the point of the box nearest to the minimum.
func findsMinimumInABox(fresh func() optim.Search) error {
	v := newValley(searchDim, false)
	box := within(-0.5, 0.5)
	s := newSearching(fresh(), optim.Objective{Evaluate: v.evaluate, Project: box}, make([]float32, searchDim))
	want := slices.Clone(v.target)
	box(want)
	n, err := s.toTheEnd(400)
	if err != nil {
		return err
	}
	for i := range want {
		if !(s.w[i] >= -0.5 && s.w[i] <= 0.5) {
			return fmt.Errorf("element %d is %g, outside the box", i, s.w[i])
		}
		if d := math.Abs(float64(s.w[i] - want[i])); !(d < 1e-3) {
			return fmt.Errorf("after %d iterations element %d is %g from its minimum", n, i, d)
		}
	}
	return nil
}

func searchRests(fresh func() optim.Search) error {
	v := newValley(searchDim, false)
	for _, project := range []func([]float32){nil, func([]float32) {}} {
		s := newSearching(fresh(), optim.Objective{Evaluate: v.evaluate, Project: project}, v.target)
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

// valley is the objective of the laws: quadratic along most directions, flat near its minimum along the last, where a
// quadratic model of it is wrong everywhere.
type valley struct {
	curvature, target []float32
	quartic           bool
	evaluations       int
	fail              int // the evaluation that fails; 0 for none
	edge              float64
}

func newValley(n int, quartic bool) *valley {
	v := &valley{target: normal(source(), n, 1), quartic: quartic, edge: math.Inf(1)}
	for i := range n {
		v.curvature = append(v.curvature, float32(math.Pow(100, float64(i)/float64(max(n-1, 1))))/10)
	}
	return v
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

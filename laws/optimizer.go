package laws

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"tessera/losses"
	"tessera/optim"
)

// Optimizer contains the laws of optimizers. Mini-batch rules also obey [Rule], full-batch optimizers [Search].
var Optimizer = Laws[optim.Optimizer]{
	{"is a rule or a search, and not both", oneSort},
}

func oneSort(fresh func() optim.Optimizer) error {
	_, rule := fresh().(optim.Rule)
	_, search := fresh().(optim.Search)
	if rule == search {
		return fmt.Errorf("%T: a Rule is %v, a Search is %v", fresh(), rule, search)
	}
	return nil
}

// Rule contains the laws of elementwise optimizers.
var Rule = Laws[optim.Rule]{
	{"gives the same bits twice", repeatable},
	{"updates parts like the whole", splittable},
	{"descends on a quadratic", descends},
	{"changes no weight without gradient and decay", restful},
	{"changes no weight at a learning rate of zero", rateless},
	{"stays finite at zeros, denormals and large gradients", finite},
	{"never writes the gradient", readsGradient},
	{"uses all of its state and no more", usesState},
	{"takes its base rate from learning_rate", rateKey},
	{"does not allocate", ruleAllocates},
}

// training is one parameter in training.
type training struct {
	w     []float32
	state [][]float32
	steps int
}

func newTraining(o optim.Rule, w []float32) *training {
	t := &training{w: slices.Clone(w)}
	for range o.States() {
		t.state = append(t.state, make([]float32, len(w)))
	}
	return t
}

// step updates the parameter with gradient g, in pieces of at most size elements.
func (t *training) step(o optim.Rule, g []float32, lr float64, size int) {
	t.steps++
	state := make([][]float32, len(t.state))
	for from := 0; from < len(t.w); from += size {
		to := min(from+size, len(t.w))
		for i := range state {
			state[i] = t.state[i][from:to]
		}
		o.Update(t.w[from:to], g[from:to], state, lr, t.steps)
	}
}

// differ compares weights and state bit by bit.
func (t *training) differ(what string, want *training) error {
	if err := differ(what+": weights", t.w, want.w); err != nil {
		return err
	}
	for i := range t.state {
		if err := differ(fmt.Sprintf("%s: state %d", what, i), t.state[i], want.state[i]); err != nil {
			return err
		}
	}
	return nil
}

// lengths of parameters: shorter than any vector register, odd, and longer than several.
var lengths = []int{1, 3, 7, 16, 31, 100, 1025}

func repeatable(fresh func() optim.Rule) error {
	return compareRuns(fresh, func(int, *rand.Rand) int { return math.MaxInt32 })
}

func splittable(fresh func() optim.Rule) error {
	return compareRuns(fresh, func(n int, r *rand.Rand) int { return 1 + r.IntN(n) })
}

// compareRuns trains a parameter as a whole and in pieces of sizes that differ from step to step.
func compareRuns(fresh func() optim.Rule, piece func(n int, r *rand.Rand) int) error {
	r := source()
	for _, n := range lengths {
		w := normal(r, n, 1)
		o, again := fresh(), fresh()
		a, b := newTraining(o, w), newTraining(again, w)
		for range 12 {
			g := normal(r, n, 0.1)
			a.step(o, g, o.LearningRate(), n)
			b.step(again, g, o.LearningRate(), piece(n, r))
			if err := b.differ(fmt.Sprintf("%d elements, step %d", n, a.steps), a); err != nil {
				return err
			}
		}
	}
	return nil
}

// descends minimises a quadratic with curvatures from 0.1 to 1.
func descends(fresh func() optim.Rule) error {
	const n, steps = 64, 400
	o, err := withoutDecay(fresh())
	if err != nil {
		return err
	}
	r := source()
	target := normal(r, n, 1)
	value := func(w, g []float32) float64 {
		sum := 0.0
		for i := range w {
			curvature := 0.1 + 0.9*float64(i)/(n-1)
			d := float64(w[i]) - float64(target[i])
			g[i] = float32(curvature * d)
			sum += curvature * d * d / 2
		}
		return sum
	}
	t, g := newTraining(o, normal(r, n, 1)), make([]float32, n)
	start := value(t.w, g)
	last := start
	for range steps {
		t.step(o, g, o.LearningRate(), n)
		last = value(t.w, g)
		if t.steps == 1 && !(last < start) {
			return fmt.Errorf("the first step leads from %g to %g", start, last)
		}
	}
	if !(last < 0.95*start) {
		return fmt.Errorf("%d steps lead from %g to %g only", steps, start, last)
	}
	return nil
}

// withoutDecay switches weight decay off: every rule has the key.
func withoutDecay(o optim.Rule) (optim.Rule, error) {
	return o, Set(o, "weight_decay", 0.0)
}

func restful(fresh func() optim.Rule) error {
	o, err := withoutDecay(fresh())
	if err != nil {
		return err
	}
	for _, n := range lengths {
		w := normal(source(), n, 1)
		t := newTraining(o, w)
		for range 5 {
			t.step(o, make([]float32, n), o.LearningRate(), n)
		}
		if err := differ("after five steps", t.w, w); err != nil {
			return err
		}
	}
	return nil
}

func rateless(fresh func() optim.Rule) error {
	o, r := fresh(), source()
	w := normal(r, 100, 1)
	t := newTraining(o, w)
	for range 5 {
		t.step(o, normal(r, 100, 1), 0, 100)
	}
	return differ("after five steps", t.w, w)
}

func finite(fresh func() optim.Rule) error {
	r := source()
	for _, scale := range []float64{0, 1e-45, 1e-38, 1e-20, 1, 1e6, 1e15} {
		for _, weight := range []float64{0, 1e-42, 1} {
			o := fresh()
			t := newTraining(o, normal(r, 40, weight))
			for range 5 {
				t.step(o, normal(r, 40, scale), o.LearningRate(), 40)
			}
			for _, values := range append(t.state, t.w) {
				for _, v := range values {
					if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
						return fmt.Errorf("gradients of about %g and weights of about %g lead to %v", scale, weight, v)
					}
				}
			}
		}
	}
	return nil
}

func readsGradient(fresh func() optim.Rule) error {
	o, r := fresh(), source()
	for _, n := range lengths {
		t, g := newTraining(o, normal(r, n, 1)), normal(r, n, 1)
		before := slices.Clone(g)
		t.step(o, g, o.LearningRate(), n)
		t.step(o, g, o.LearningRate(), n)
		if err := differ("gradient", g, before); err != nil {
			return err
		}
	}
	return nil
}

// usesState also detects writes outside of w, by guard values before and after it.
func usesState(fresh func() optim.Rule) (err error) {
	const n, guard, mark = 21, 16, -77
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("with States() slices of state: %v", p)
		}
	}()
	o, r := fresh(), source()
	var all, state [][]float32
	for range o.States() + 1 { // the last are the weights
		padded := slices.Repeat([]float32{mark}, n+2*guard)
		clear(padded[guard : guard+n])
		all, state = append(all, padded), append(state, padded[guard:guard+n])
	}
	w := state[len(state)-1]
	state = slices.Clip(state[:len(state)-1])
	copy(w, normal(r, n, 1))
	for step := 1; step <= 3; step++ {
		o.Update(w, normal(r, n, 1), state, o.LearningRate(), step)
	}
	for i, s := range state {
		if j := slices.Index(s, 0); j >= 0 {
			return fmt.Errorf("state %d: element %d is still 0 after three steps", i, j)
		}
	}
	for i, padded := range all {
		for j, v := range padded {
			if (j < guard || j >= guard+n) && v != mark {
				return fmt.Errorf("slice %d: writes %d elements from its start", i, j-guard)
			}
		}
	}
	return nil
}

func rateKey(fresh func() optim.Rule) error {
	o := fresh()
	if err := Set(o, "learning_rate", 0.125); err != nil {
		return err
	}
	if got := o.LearningRate(); got != 0.125 {
		return fmt.Errorf("LearningRate() is %v with learning_rate = 0.125", got)
	}
	return nil
}

func ruleAllocates(fresh func() optim.Rule) error {
	o, r := fresh(), source()
	t, g := newTraining(o, normal(r, 4096, 1)), normal(r, 4096, 1)
	return allocates(func() { o.Update(t.w, g, t.state, o.LearningRate(), 3) })
}

// Schedule contains the laws of learning-rate schedules.
var Schedule = Laws[optim.Schedule]{
	{"is finite and not negative over runs of any length", scheduleRange},
	{"depends on nothing but its arguments", scheduleRepeatable},
}

// instants calls f at the beginning of every step, and at and beyond the end, of runs of several lengths.
func instants(f func(epoch, epochs float64) error) error {
	const stepsPerEpoch = 7
	for _, epochs := range []int{1, 2, 10, 500} {
		for step := range (epochs + 2) * stepsPerEpoch {
			if err := f(float64(step)/stepsPerEpoch, float64(epochs)); err != nil {
				return err
			}
		}
	}
	return nil
}

func scheduleRange(fresh func() optim.Schedule) error {
	s := fresh()
	return instants(func(epoch, epochs float64) error {
		if f := s.Factor(epoch, epochs); !(f >= 0) || math.IsInf(f, 0) {
			return fmt.Errorf("epoch %g of %g: factor %v", epoch, epochs, f)
		}
		return nil
	})
}

func scheduleRepeatable(fresh func() optim.Schedule) error {
	s := fresh()
	return instants(func(epoch, epochs float64) error {
		if a, b := s.Factor(epoch, epochs), fresh().Factor(epoch, epochs); a != b {
			return fmt.Errorf("epoch %g of %g: factor %v, a fresh schedule gives %v", epoch, epochs, a, b)
		}
		return nil
	})
}

// Weight contains the laws of schedules of a loss weight.
var Weight = Laws[losses.Weight]{
	{"is finite and not negative at every epoch and in the end", weightRange},
	{"depends on nothing but the epoch", weightRepeatable},
	{"ends where it tends to", weightEnds},
}

// weightRange checks the beginning of every step of long and short epochs, and the end.
func weightRange(fresh func() losses.Weight) error {
	w := fresh()
	at := func(epoch float64) error {
		if v := w.At(epoch); !(v >= 0) || math.IsInf(v, 0) {
			return fmt.Errorf("after %g epochs: weight %v", epoch, v)
		}
		return nil
	}
	if err := at(math.Inf(1)); err != nil {
		return err
	}
	return instants(func(epoch, _ float64) error { return at(epoch) })
}

func weightRepeatable(fresh func() losses.Weight) error {
	w := fresh()
	return instants(func(epoch, _ float64) error {
		if a, b := w.At(epoch), fresh().At(epoch); a != b {
			return fmt.Errorf("after %g epochs: weight %v, a fresh schedule gives %v", epoch, a, b)
		}
		return nil
	})
}

// weightEnds compares the weight at infinity, which programs without training use, with the weight after very many epochs.
func weightEnds(fresh func() losses.Weight) error {
	const long = 1e12 // epochs
	if end, late := fresh().At(math.Inf(1)), fresh().At(long); !(math.Abs(end-late) <= 1e-6*(1+math.Abs(end))) {
		return fmt.Errorf("weight %v in the end, but %v after %g epochs", end, late, long)
	}
	return nil
}

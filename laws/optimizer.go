package laws

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"tessera/config/part/table"
	"tessera/losses"
	"tessera/optim"
)

// Optimizer contains the laws of optimizers. Mini-batch rules must also satisfy [Rule], and full-batch optimizers [Search].
var Optimizer = once([]law[func() optim.Optimizer]{
	{"is a rule or a search, and not both", oneSort},
})

func oneSort(fresh func() optim.Optimizer) error {
	_, rule := fresh().(optim.Rule)
	_, search := fresh().(optim.Search)
	if rule == search {
		return fmt.Errorf("%T: a Rule is %v, a Search is %v", fresh(), rule, search)
	}
	return nil
}

// Rule contains the laws of elementwise optimizers.
var Rule = once([]law[func() optim.Rule]{
	{"gives the same bits twice", repeatable},
	{"updates parts like the whole", splittable},
	{"descends on a quadratic", descends},
	{"changes no weight without gradient and decay", restful},
	{"changes no weight at a learning rate of zero", rateless},
	{"stays finite at zeros, denormals and large gradients", finiteUpdates},
	{"never writes the gradient", readsGradient},
	{"uses all of its state and no more", usesState},
	{"takes its base rate from learning_rate", rateKey},
	{"does not allocate", ruleAllocates},
})

// training is a parameter with the state of its optimizer.
type training struct {
	w     []float32
	state [][]float32
	steps int
}

func newTraining(o optim.Rule, w []float32) *training {
	return &training{w: slices.Clone(w), state: newState(o.States(), len(w))}
}

// newState returns a state: the given number of vectors of n zeros.
func newState(states, n int) [][]float32 {
	state := make([][]float32, states)
	for i := range state {
		state[i] = make([]float32, n)
	}
	return state
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

// fiveSteps updates the parameter five times, with gradients from N(0, scale²).
func (t *training) fiveSteps(o optim.Rule, r *rand.Rand, scale, lr float64) {
	for range 5 {
		t.step(o, normal(r, len(t.w), scale), lr, len(t.w))
	}
}

// differ compares weights and state bit by bit.
func (t *training) differ(what string, want *training) error {
	return differAll(what, append(t.state, t.w), append(want.state, want.w))
}

// differAll compares lists of vectors bit by bit; the last vector contains the weights.
func differAll(what string, got, want [][]float32) error {
	for i := range got {
		of := fmt.Sprintf("%s: state %d", what, i)
		if i == len(got)-1 {
			of = what + ": weights"
		}
		if err := differ(of, got[i], want[i]); err != nil {
			return err
		}
	}
	return nil
}

// lengths lists lengths of parameters: shorter than any vector register, odd, and longer than several registers.
var lengths = []int{1, 3, 7, 16, 31, 100, 1025}

func repeatable(fresh func() optim.Rule) error {
	return compareRuns(fresh, func(int, *rand.Rand) int { return math.MaxInt32 })
}

func splittable(fresh func() optim.Rule) error {
	return compareRuns(fresh, func(n int, r *rand.Rand) int { return 1 + r.IntN(n) })
}

// compareRuns compares updates of a complete parameter with updates in pieces. The function piece returns the size of the
// pieces, which differs from step to step.
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

// descends checks that the rule minimises a quadratic function with curvatures from 0.1 to 1.
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

// withoutDecay returns the rule without weight decay, if it has this key.
func withoutDecay(o optim.Rule) (optim.Rule, error) {
	const key = "weight_decay"
	if !slices.ContainsFunc(table.Fields(o), func(f table.Field) bool { return f.Key == key }) {
		return o, nil
	}
	return o, Set(o, key, 0.0)
}

func restful(fresh func() optim.Rule) error {
	o, err := withoutDecay(fresh())
	if err != nil {
		return err
	}
	for _, n := range lengths {
		w := normal(source(), n, 1)
		t := newTraining(o, w)
		t.fiveSteps(o, source(), 0, o.LearningRate())
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
	t.fiveSteps(o, r, 1, 0)
	return differ("after five steps", t.w, w)
}

func finiteUpdates(fresh func() optim.Rule) error {
	r := source()
	for _, scale := range []float64{0, 1e-45, 1e-38, 1e-20, 1, 1e6, 1e15} {
		for _, weight := range []float64{0, 1e-42, 1} {
			o := fresh()
			t := newTraining(o, normal(r, 40, weight))
			t.fiveSteps(o, r, scale, o.LearningRate())
			for _, values := range append(t.state, t.w) {
				if i := slices.IndexFunc(values, notFinite); i >= 0 {
					return fmt.Errorf("gradients of about %g and weights of about %g lead to %v", scale, weight, values[i])
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

// usesState checks that the updates change every element of the state. Guard values detect writes outside of the weights and the state.
func usesState(fresh func() optim.Rule) error {
	const n = 21
	o, r := fresh(), source()
	all, state := paddedState(o.States(), n)
	guarded, w := padded(normal(r, n, 1))
	for step := 1; step <= 3; step++ {
		o.Update(w, normal(r, n, 1), state, o.LearningRate(), step)
	}
	for i, s := range state {
		if j := slices.Index(s, 0); j >= 0 {
			return fmt.Errorf("state %d: element %d is still 0 after three steps", i, j)
		}
	}
	return outsideAll(append(all, guarded))
}

// paddedState returns the given number of vectors of n zeros, with guards (all) and without them (state).
func paddedState(states, n int) (all, state [][]float32) {
	for _, zeros := range newState(states, n) {
		guarded, inner := padded(zeros)
		all, state = append(all, guarded), append(state, inner)
	}
	return all, slices.Clip(state)
}

// outsideAll returns an error if a guard of the padded vectors has changed.
func outsideAll(all [][]float32) error {
	for i, guarded := range all {
		if err := outside(guarded); err != nil {
			return fmt.Errorf("slice %d: %w", i, err)
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
var Schedule = once([]law[func() optim.Schedule]{
	{"is finite and not negative over runs of any length", func(fresh func() optim.Schedule) error { return inRange(fresh().Factor) }},
	{"depends on nothing but its arguments", func(fresh func() optim.Schedule) error {
		return forgetful(fresh().Factor, func(epoch, epochs float64) float64 { return fresh().Factor(epoch, epochs) })
	}},
})

// Weight contains the laws of schedules of a loss weight.
var Weight = once([]law[func() losses.Weight]{
	{"is finite and not negative at every epoch and in the end", func(fresh func() losses.Weight) error {
		return errors.Join(notNegative(fresh().At(math.Inf(1))), inRange(weightAt(fresh())))
	}},
	{"depends on nothing but the epoch", func(fresh func() losses.Weight) error {
		return forgetful(weightAt(fresh()), func(epoch, _ float64) float64 { return fresh().At(epoch) })
	}},
	{"ends where it tends to, or among the values that it keeps taking", weightEnds},
})

// weightAt returns w as a function of the epoch and the number of epochs. A weight does not depend on the latter.
func weightAt(w losses.Weight) func(epoch, epochs float64) float64 {
	return func(epoch, _ float64) float64 { return w.At(epoch) }
}

// instants calls f for the beginning of every step, for the end and for later epochs of runs of several lengths.
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

func inRange(at func(epoch, epochs float64) float64) error {
	return instants(func(epoch, epochs float64) error {
		if err := notNegative(at(epoch, epochs)); err != nil {
			return fmt.Errorf("epoch %g of %g: %w", epoch, epochs, err)
		}
		return nil
	})
}

func notNegative(v float64) error {
	if !(v >= 0) || math.IsInf(v, 0) {
		return fmt.Errorf("got %v, want a finite number >= 0", v)
	}
	return nil
}

// forgetful compares one schedule that is used at all instants with a new schedule for each instant.
func forgetful(used, fresh func(epoch, epochs float64) float64) error {
	return instants(func(epoch, epochs float64) error {
		if got, want := used(epoch, epochs), fresh(epoch, epochs); got != want {
			return fmt.Errorf("epoch %g of %g: %v, a new schedule gives %v", epoch, epochs, got, want)
		}
		return nil
	})
}

// weightEnds compares the weight at infinity, which evaluations outside of training use, with the weights after very many
// epochs. A periodic weight has no limit, but repeats all of its values.
func weightEnds(fresh func() losses.Weight) error {
	const late, times, step = 1e9, 2000, 0.6180339887 // late and step are in epochs
	low, high := math.Inf(1), math.Inf(-1)
	for i := range times {
		v := fresh().At(late + float64(i)*step)
		low, high = min(low, v), max(high, v)
	}
	end := fresh().At(math.Inf(1))
	if slack := 1e-6 * (1 + math.Abs(end)); !(end >= low-slack && end <= high+slack) {
		return fmt.Errorf("weight %v in the end, but from %v to %v after %g epochs", end, low, high, float64(late))
	}
	return nil
}

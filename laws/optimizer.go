package laws

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"tessera/config/part/table"
	"tessera/internal/lists"
	"tessera/internal/volume"
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
var Rule = once(append(updateLaws(eachLength), []law[func() optim.Rule]{
	{"updates parts like the whole", splittable},
	{"changes no weight without gradient and decay", restful},
	{"leaves elements without gradient alone, if it says that it rests", rests},
	{"takes its base rate from learning_rate", rateKey},
	{"does not allocate", ruleAllocates},
}...))

// Whole contains the laws of rules that update parameters as a whole, for the shapes that they accept. For all other
// parameters these rules must satisfy [Rule].
var Whole = once(append(updateLaws(eachShape), law[func() optim.Whole]{
	"takes a shape", func(fresh func() optim.Whole) error { _, err := eachShape(fresh()); return err },
}))

// updates is a rule for a parameter of n values: an elementwise rule, or a rule for a whole parameter of one shape.
type updates struct {
	what   string // the parameter, for errors
	n      int
	states []int // lengths
	rate   float64
	update func(w, g []float32, state [][]float32, lr float64, step int)
}

// lengths lists lengths of parameters: shorter than any vector register, odd, and longer than several registers.
var lengths = []int{1, 3, 7, 16, 31, 100, 1025}

func eachLength(o optim.Rule) (all []updates, err error) {
	for _, n := range lengths {
		all = append(all, updates{fmt.Sprintf("%d elements", n), n, slices.Repeat([]int{n}, o.States()), o.LearningRate(), o.Update})
	}
	return all, nil
}

func eachShape(o optim.Whole) (all []updates, err error) {
	for _, shape := range [][]int{{1}, {7}, {40}, {5, 5}, {3, 8}, {9, 4}, {3, 3, 2, 5}} {
		if o.Takes(shape) {
			all = append(all, updates{fmt.Sprintf("shape %v", shape), volume.Of(shape), o.WholeStates(shape), o.LearningRate(),
				func(w, g []float32, state [][]float32, lr float64, step int) {
					o.UpdateWhole(w, g, shape, state, lr, step)
				}})
		}
	}
	if len(all) == 0 {
		return nil, errors.New("takes no vector, matrix or filter as a whole")
	}
	return all, nil
}

// updateLaws returns the laws of all updates of a rule, which each returns. Every law gets two new rules with the same settings.
func updateLaws[T optim.Rule](each func(o T) ([]updates, error)) []law[func() T] {
	of := func(check func(u, again updates) error) func(fresh func() T) error {
		return func(fresh func() T) error {
			for i := 0; ; i++ {
				all, err := each(fresh())
				others, _ := each(fresh()) // the same error
				if err != nil || i == len(all) {
					return err
				}
				if err := check(all[i], others[i]); err != nil {
					return fmt.Errorf("%s: %w", all[i].what, err)
				}
			}
		}
	}
	return []law[func() T]{
		{"gives the same bits twice", of(repeatable)},
		{"descends on a quadratic", func(fresh func() T) error {
			if _, err := withoutDecay(fresh()); err != nil {
				return err
			}
			return of(descends)(func() T { o, _ := withoutDecay(fresh()); return o })
		}},
		{"changes no weight at a learning rate of zero", of(rateless)},
		{"stays finite at zeros, denormals and large gradients", of(finiteUpdates)},
		{"never writes the gradient", of(readsGradient)},
		{"uses all of its state and no more", of(usesState)},
	}
}

// training is a parameter with the state of its optimizer.
type training struct {
	w     []float32
	state [][]float32
	steps int
}

func newTraining(u updates, w []float32) *training {
	return &training{w: slices.Clone(w), state: newState(u.states)}
}

// newState returns a state: vectors of zeros of the given lengths.
func newState(lengths []int) [][]float32 {
	return lists.Map(lengths, func(n int) []float32 { return make([]float32, n) })
}

// step updates the parameter with gradient g.
func (t *training) step(u updates, g []float32, lr float64) {
	t.steps++
	u.update(t.w, g, t.state, lr, t.steps)
}

// fiveSteps updates the parameter five times, with gradients from N(0, scale²).
func (t *training) fiveSteps(u updates, r *rand.Rand, scale, lr float64) {
	for range 5 {
		t.step(u, normal(r, len(t.w), scale), lr)
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

func repeatable(u, again updates) error {
	r := source()
	w := normal(r, u.n, 1)
	a, b := newTraining(u, w), newTraining(again, w)
	for range 12 {
		g := normal(r, u.n, 0.1)
		a.step(u, g, u.rate)
		b.step(again, g, u.rate)
		if err := b.differ(fmt.Sprintf("step %d", a.steps), a); err != nil {
			return err
		}
	}
	return nil
}

// splittable compares updates of a complete parameter with updates in pieces, whose size differs from step to step.
func splittable(fresh func() optim.Rule) error {
	all, _ := eachLength(fresh()) // has no errors
	for i, whole := range all {
		pieces, r := fresh(), source()
		parts := whole
		parts.update = func(w, g []float32, state [][]float32, lr float64, step int) {
			size := 1 + r.IntN(len(w))
			for from := 0; from < len(w); from += size {
				to, part := min(from+size, len(w)), make([][]float32, len(state))
				for k := range part {
					part[k] = state[k][from:to]
				}
				pieces.Update(w[from:to], g[from:to], part, lr, step)
			}
		}
		if err := repeatable(whole, parts); err != nil {
			return fmt.Errorf("%s: %w", all[i].what, err)
		}
	}
	return nil
}

// descends checks that the rule minimises a quadratic function with curvatures from 0.1 to 1 of at least 16 values.
func descends(u, _ updates) error {
	const least, steps = 16, 400
	if u.n < least {
		return nil
	}
	r := source()
	target := normal(r, u.n, 1)
	value := func(w, g []float32) float64 {
		sum := 0.0
		for i := range w {
			curvature := 0.1 + 0.9*float64(i)/float64(u.n-1)
			d := float64(w[i]) - float64(target[i])
			g[i] = float32(curvature * d)
			sum += curvature * d * d / 2
		}
		return sum
	}
	t, g := newTraining(u, normal(r, u.n, 1)), make([]float32, u.n)
	start := value(t.w, g)
	last := start
	for range steps {
		t.step(u, g, u.rate)
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

func withoutDecay[T optim.Rule](o T) (T, error) {
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
	all, _ := eachLength(o) // has no errors
	for _, u := range all {
		w := normal(source(), u.n, 1)
		t := newTraining(u, w)
		t.fiveSteps(u, source(), 0, u.rate)
		if err := differ("after five steps", t.w, w); err != nil {
			return err
		}
	}
	return nil
}

// rests checks that elements without gradient keep weights and states that earlier steps have left, also between others.
func rests(fresh func() optim.Rule) error {
	o, ok := fresh().(optim.Resting)
	if !ok || !o.Rests() {
		return nil
	}
	all, _ := eachLength(o) // has no errors
	for _, u := range all {
		r := source()
		t := newTraining(u, normal(r, u.n, 1))
		t.fiveSteps(u, r, 1, u.rate)
		g := normal(r, u.n, 1)
		before := append([][]float32{slices.Clone(t.w)}, t.state...)
		for i := range t.state {
			before[1+i] = slices.Clone(t.state[i])
		}
		for i := range g {
			if i%3 != 1 {
				g[i] = 0
			}
		}
		u.update(t.w, g, t.state, u.rate, 6)
		for k, now := range append([][]float32{t.w}, t.state...) {
			for i, v := range now {
				if g[i] == 0 && v != before[k][i] {
					return fmt.Errorf("element %d of weights and states %d: got %v, want %v", i, k, v, before[k][i])
				}
			}
		}
	}
	return nil
}

func rateless(u, _ updates) error {
	r := source()
	w := normal(r, u.n, 1)
	t := newTraining(u, w)
	t.fiveSteps(u, r, 1, 0)
	return differ("after five steps", t.w, w)
}

func finiteUpdates(u, _ updates) error {
	r := source()
	for _, scale := range []float64{0, 1e-45, 1e-38, 1e-20, 1, 1e6, 1e15} {
		for _, weight := range []float64{0, 1e-42, 1} {
			t := newTraining(u, normal(r, u.n, weight))
			t.fiveSteps(u, r, scale, u.rate)
			for _, values := range append(t.state, t.w) {
				if i := slices.IndexFunc(values, notFinite); i >= 0 {
					return fmt.Errorf("gradients of about %g and weights of about %g lead to %v", scale, weight, values[i])
				}
			}
		}
	}
	return nil
}

func readsGradient(u, _ updates) error {
	r := source()
	t, g := newTraining(u, normal(r, u.n, 1)), normal(r, u.n, 1)
	before := slices.Clone(g)
	t.step(u, g, u.rate)
	t.step(u, g, u.rate)
	return differ("gradient", g, before)
}

// usesState checks that the updates change every element of the state. Guard values detect writes outside of the weights and the state.
func usesState(u, _ updates) error {
	r := source()
	all, state := paddedState(u.states)
	guarded, w := padded(normal(r, u.n, 1))
	for step := 1; step <= 3; step++ {
		u.update(w, normal(r, u.n, 1), state, u.rate, step)
	}
	for i, s := range state {
		if j := slices.Index(s, 0); j >= 0 {
			return fmt.Errorf("state %d: element %d is still 0 after three steps", i, j)
		}
	}
	return outsideAll(append(all, guarded))
}

// paddedState returns vectors of zeros of the given lengths, with guards (all) and without them (state).
func paddedState(lengths []int) (all, state [][]float32) {
	for _, zeros := range newState(lengths) {
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
	w, g, state := normal(r, 4096, 1), normal(r, 4096, 1), newState(slices.Repeat([]int{4096}, o.States()))
	return allocates(func() { o.Update(w, g, state, o.LearningRate(), 3) })
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

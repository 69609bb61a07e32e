package laws_test

import (
	"slices"
	"testing"

	"tessera/attack"
	"tessera/laws"
)

// wrongAttack is one step along the gradient, followed by what a test specifies.
type wrongAttack struct {
	attack.FGSM
	calls  *int
	before func(t *attack.Task)
	after  func(t *attack.Task, x []float32, call int)
	silent bool // does not read the context
}

func (a *wrongAttack) Perturb(t *attack.Task, x []float32) error {
	if *a.calls++; a.silent {
		return nil
	}
	err := a.FGSM.Perturb(t, x)
	if a.before != nil {
		a.before(t)
	}
	if a.after != nil {
		a.after(t, x, *a.calls)
	}
	return err
}

// For every law of attacks there is an incorrect part that breaks it, and a correct one breaks none.
func TestTheLawsOfAttacksAreBroken(t *testing.T) {
	for law, c := range map[string]wrongAttack{
		"stays in the ball and in the range of values": {after: func(_ *attack.Task, x []float32, _ int) { x[5] += 0.5 }},
		"gives the same examples for the same seed": {after: func(t *attack.Task, x []float32, call int) {
			copy(x[:36], t.Clean[:36])
			x[4] += float32(call) * 1e-5
		}},
		"leaves the samples and their classes as they are": {before: func(t *attack.Task) { t.Labels[0] = (t.Labels[0] + 1) % 3 }},
		"lowers neither the margin nor the loss, and makes no wrong sample right": {after: func(t *attack.Task, x []float32, _ int) {
			for i, v := range x {
				x[i] = t.Clean[i] - (v - t.Clean[i])
			}
		}},
		"ends with the context of its task": {silent: true},
	} {
		calls := 0
		fresh := func() attack.Attack { other := c; other.calls = &calls; return &other }
		if broken := laws.Broken(laws.Attack, fresh); !slices.Contains(broken, law) {
			t.Errorf("%q is not broken, but %q", law, broken)
		}
	}
	calls := 0
	if broken := laws.Broken(laws.Attack, func() attack.Attack { return &wrongAttack{calls: &calls} }); len(broken) > 0 {
		t.Errorf("a correct attack breaks %q", broken)
	}
}

func TestEveryAttackObeysItsLaws(t *testing.T) {
	for _, e := range attack.Registry.All() {
		t.Run(e.Name, func(t *testing.T) { laws.Check(t, laws.Attack, e.New) })
	}
	for name, a := range map[string]attack.PGD{"restarts": {Steps: 5, Restarts: 2}, "random": {Steps: 10, RandomStart: true, StopEarly: true}} {
		t.Run("pgd "+name, func(t *testing.T) { laws.Check(t, laws.Attack, func() attack.Attack { other := a; return &other }) })
	}
}

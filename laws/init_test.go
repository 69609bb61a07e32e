package laws_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tessera/internal/expect"
	"tessera/laws"
	"tessera/layers"
)

// wrongInit is an initialisation with the behaviour that a test specifies.
type wrongInit struct {
	Calls int
	fill  *func(i *wrongInit, w []float32, r *rand.Rand)
}

func (i *wrongInit) Fill(w []float32, _, _ int, r *rand.Rand) { (*i.fill)(i, w, r) }

// For every law of initialisations there is an incorrect part that breaks exactly this law.
func TestTheLawsOfInitsAreBroken(t *testing.T) {
	calls := float32(0)
	for law, f := range map[string]func(i *wrongInit, w []float32, r *rand.Rand){
		"sets every element, whatever it contained": func(_ *wrongInit, w []float32, _ *rand.Rand) { clear(w[1:]) },
		"writes inside the parameter only":          func(_ *wrongInit, w []float32, _ *rand.Rand) { clear(w[:len(w)+1]) },
		"is finite": func(_ *wrongInit, w []float32, _ *rand.Rand) {
			clear(w)
			w[0] = float32(math.Inf(1))
		},
		"gives the same bits for the same stream": func(_ *wrongInit, w []float32, _ *rand.Rand) {
			calls++
			clear(w)
			w[0] = calls
		},
		"never changes its settings": func(i *wrongInit, w []float32, _ *rand.Rand) {
			clear(w)
			i.Calls++
		},
	} {
		broken := laws.Broken(laws.Init, func() layers.Init { return &wrongInit{fill: &f} })
		if !slices.Contains(broken, law) {
			t.Errorf("%q is not broken, but %q", law, broken)
		}
	}
	expect.Equal(t, len(laws.Init.Names()), 5, "laws, of which 5 have a part that breaks them")
}

func TestEveryInitObeysItsLaws(t *testing.T) {
	for _, e := range layers.Inits.All() {
		t.Run(e.Name, func(t *testing.T) { laws.Check(t, laws.Init, e.New) })
	}
}

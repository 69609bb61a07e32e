package hooks_test

import (
	"testing"

	"tessera/hooks"
	_ "tessera/internal/testheap"
	"tessera/laws"
)

func TestEveryHookObeysItsLaws(t *testing.T) {
	settings := map[string]func(h hooks.Hook){
		"prune": func(h hooks.Hook) {
			*h.(*hooks.Prune) = hooks.Prune{On: "encoder.*.weight", Fraction: 0.5, From: 1, Until: 3}
		},
	}
	for _, e := range hooks.Registry.All() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			laws.Check(t, laws.Hook, func() hooks.Hook {
				h := e.New()
				if set := settings[e.Name]; set != nil {
					set(h)
				}
				return h
			})
		})
	}
}

package classical_test

import (
	"testing"

	"tessera/classical"
	"tessera/config"
	"tessera/laws"
)

func TestEveryBaselineObeysTheLaws(t *testing.T) {
	for _, e := range config.Baselines.All() {
		t.Run(e.Name, func(t *testing.T) {
			laws.Check(t, laws.Baseline, func() classical.Method {
				m := e.New().(classical.Method)
				for key, value := range map[string]any{"components": 3, "iterations": 4} {
					if err := laws.Set(m, key, value); err != nil && key == "components" {
						t.Fatal(err)
					}
				}
				return m
			})
		})
	}
}

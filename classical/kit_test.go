package classical_test

import (
	"reflect"
	"testing"

	"tessera/classical"
	"tessera/laws"
)

func TestEveryBaselineObeysTheLaws(t *testing.T) {
	methods := map[string]classical.Method{}
	if !testing.Short() {
		methods = classical.Variants()
	}
	for _, e := range classical.Registry.All() {
		m := e.New()
		for key, value := range map[string]any{"components": 3, "iterations": 4} {
			if err := laws.Set(m, key, value); err != nil && key == "components" {
				t.Fatal(err)
			}
		}
		methods[e.Name] = m
	}
	for name, m := range methods {
		t.Run(name, func(t *testing.T) {
			laws.Check(t, laws.Baseline, func() classical.Method {
				fresh := reflect.New(reflect.TypeOf(m).Elem())
				fresh.Elem().Set(reflect.ValueOf(m).Elem())
				return fresh.Interface().(classical.Method)
			})
		})
	}
}

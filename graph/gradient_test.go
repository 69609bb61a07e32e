package graph_test

import (
	"errors"
	"strings"
	"testing"

	"tessera/config"
	"tessera/graph"
	"tessera/part"
)

// The Jacobian of a linear layer does not depend on its bias.
const withoutGradient = `[model.m]
encoder = [{ kind = "softmax" }, { kind = "dense", units = 5, activation = "linear" }]
decoder = []
loss    = [{ kind = "contractive" }]
optimizer = { kind = "sgd" }
`

func TestAParameterWithoutAGradientIsNamed(t *testing.T) {
	f, err := config.Load("test.toml", []byte(withoutGradient))
	if err != nil {
		t.Fatal(err)
	}
	spec, err := f.Model("m")
	if err != nil {
		t.Fatal(err)
	}
	err = graph.Check(spec, []int{4, 4})
	var setting part.KeyError
	if !errors.As(err, &setting) || setting.Key != "loss" || !strings.Contains(err.Error(), "no gradient with respect to encoder.1.bias") {
		t.Errorf("got %v", err)
	}
	freeze, err := config.ParseSet(`freeze=["encoder.1.bias"]`)
	if err != nil {
		t.Fatal(err)
	}
	frozen, err := f.Model("m", freeze)
	if err == nil {
		err = graph.Check(frozen, []int{4, 4})
	}
	if err != nil {
		t.Errorf("frozen: %v", err)
	}
}

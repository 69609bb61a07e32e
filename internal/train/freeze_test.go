package train

import (
	"slices"
	"strings"
	"testing"

	"tessera/graph"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// normalised is the declaration everything with a batch normalisation in the encoder.
var normalised = strings.Replace(everything, `kind = "dense"`, `kind = "dense"
units = 12
[[model.everything.encoder]]
kind = "batch_norm"
[[model.everything.encoder]]
kind = "dense"`, 1)

// projectedAll contains constraints that match frozen and trainable parameters.
var projectedAll = []string{"constraint.0.on=*.weight", "constraint.1.on=*.weight"}

// first returns the initial parameters of a model, before any projection.
func first(t testing.TB, text string, sets ...string) *graph.Model {
	t.Helper()
	m, err := graph.New(model(t, text, sets...), []int{8, 8})
	fatal.If(t, err)
	return m
}

func TestOnlyFrozenParametersKeepTheirValues(t *testing.T) {
	const freeze = `freeze=["encoder.[23].*","decoder.*.weight"]`
	r := trained(t, model(t, normalised, append(projectedAll, freeze)...), Options{})
	got, err := Open(r.Run)
	fatal.If(t, err)
	for i, p := range first(t, normalised).Parameters {
		frozen := strings.HasPrefix(p.Path, "encoder.2.") || strings.HasPrefix(p.Path, "encoder.3.") || p.Path == "decoder.0.weight"
		expect.Equal(t, slices.Equal(p.Data, got.Parameters[i].Data), frozen, p.Path, "has its first values")
		if got := got.Parameters[i].Trainable; got && frozen {
			t.Errorf("%s is frozen and trainable", p.Path)
		}
	}
}

func TestAStateHoldsNoOptimizerOfFrozenParameters(t *testing.T) {
	r := trained(t, model(t, normalised, append(projectedAll, `freeze=["encoder.*"]`, "train.epochs=1")...), Options{})
	s, err := readState(r.Run + "/state.safetensors")
	fatal.If(t, err)
	for _, tensor := range s.file.Tensors {
		if strings.HasPrefix(tensor.Name, optimizerPrefix+"encoder.") {
			t.Errorf("the state holds %s", tensor.Name)
		}
	}
}

package train

import (
	"context"
	"slices"
	"strings"
	"testing"

	"tessera/graph"
	"tessera/internal/engine/ir"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/train/folder"
	"tessera/layers"
)

// sparsePhase is the declaration everything with a code of which half is set to 0 in the second and the third epoch.
var sparsePhase = strings.Replace(everything, `[[model.everything.loss]]
kind = "mse"`, `[[model.everything.encoder]]
kind = "sparsify"
fraction = 0.5

[model.everything.hook.sparse_phase]
from = 1
until = 3
rate = 0.25

[[model.everything.loss]]
kind = "mse"`, 1)

func TestTheCodeIsSparseInThePhaseAlone(t *testing.T) {
	backend, active := newHooked(), []float32(nil)
	backend.after = func(_ int, p *graph.Program, _ ir.Runner[float32]) {
		for _, b := range p.Parameters {
			if b.Path == "encoder.3."+layers.Switch {
				active = append(active, b.Data[0])
			}
		}
	}
	r := trained(t, model(t, sparsePhase, `optimizer={kind="sgd",learning_rate=0.01}`), Options{Backend: backend})
	epoch := r.Step / r.Epochs
	want := slices.Concat(make([]float32, epoch), slices.Repeat([]float32{1}, 2*epoch), make([]float32, epoch))
	expect.Slice(t, active, want, "the switch in each step")
	for i, line := range lines(t, r.Run) {
		want := []float64{0.01, 0.01, 0.01, 0.0025}[i]
		expect.Near(t, line["learning_rate"].(float64), want, 1e-12, "epoch", i+1, "the rate")
	}
}

// A run that ends in the phase has a sparse code, one that ends after it has a dense code. An average of the parameters does not
// blur the switch.
func TestTheModelHasTheCodeOfItsLastEpoch(t *testing.T) {
	for _, average := range []string{"hook.average=false", "hook.average={decay=0.9}"} {
		for epochs, want := range map[string]float32{"train.epochs=3": 1, "train.epochs=4": 0} {
			sets := []string{average, "hook.early_stopping=false", epochs}
			m, err := Open(trained(t, model(t, sparsePhase, sets...), Options{}).Run)
			fatal.If(t, err)
			p, err := m.Parameter("encoder.3." + layers.Switch)
			fatal.If(t, err)
			expect.Equal(t, p.Data[0], want, average, epochs, "the switch")
		}
	}
}

func TestAFinishedRunWithASparsePhaseStaysAsItIs(t *testing.T) {
	r := trained(t, model(t, sparsePhase), Options{})
	before := read(t, r.Run, folder.Model)
	if again, err := Resume(context.Background(), r.Run, Options{}); err != nil || !again.AlreadyFinished {
		t.Fatalf("got %v, %v", again, err)
	}
	expect.Slice(t, before, read(t, r.Run, folder.Model), "the model was written again")
}

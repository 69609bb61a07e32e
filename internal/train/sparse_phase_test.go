package train

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"tessera/graph"
	"tessera/internal/engine/ir"
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
	if !slices.Equal(active, want) {
		t.Errorf("the switch in each step: got %v, want %v", active, want)
	}
	for i, line := range lines(t, r.Run) {
		want := []float64{0.01, 0.01, 0.01, 0.0025}[i]
		if got := line["learning_rate"].(float64); math.Abs(got-want) > 1e-12 {
			t.Errorf("epoch %d: the rate is %v, want %v", i+1, got, want)
		}
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
			if p.Data[0] != want {
				t.Errorf("%s, %s: the switch is %v, want %v", average, epochs, p.Data[0], want)
			}
		}
	}
}

func TestAFinishedRunWithASparsePhaseStaysAsItIs(t *testing.T) {
	r := trained(t, model(t, sparsePhase), Options{})
	before := read(t, r.Run, folder.Model)
	if again, err := Resume(context.Background(), r.Run, Options{}); err != nil || !again.AlreadyFinished {
		t.Fatalf("got %v, %v", again, err)
	}
	if !slices.Equal(before, read(t, r.Run, folder.Model)) {
		t.Error("the model was written again")
	}
}

package train

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"tessera/graph"
	"tessera/graph/tape"
	"tessera/internal/engine/ir"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/parallel/team"
	"tessera/internal/train/folder"
)

// phased contains hooks that prune the encoder's weights by a fraction and, in a later phase without an end, the decoder's
// weights by a threshold, together with averages and unit norms.
const phased = `
[model.everything.hook.prune]
on = "encoder.*.weight"
fraction = 0.3
from = 1
until = 3
[model.everything.hook.prune-2]
kind = "prune"
on = "decoder.*.weight"
threshold = 0.1
from = 2
[model.everything.hook.average]
decay = 0.9
`

// phasedModel is the declaration everything with the hooks of phased.
var phasedModel = strings.Replace(everything, "[[model.everything.constraint]]", phased+"[[model.everything.constraint]]", 1)

// seen records the weights of the encoder and the decoder at the beginning of every step.
func seen(t *testing.T, text string, sets ...string) (encoder, decoder [][]float32, stepsPerEpoch int) {
	t.Helper()
	backend := newHooked()
	backend.after = func(_ int, p *graph.Program, _ ir.Runner[float32]) {
		for _, b := range p.Parameters {
			switch b.Path {
			case "encoder.2.weight":
				encoder = append(encoder, slices.Clone(b.Data))
			case "decoder.0.weight":
				decoder = append(decoder, slices.Clone(b.Data))
			}
		}
	}
	r := trained(t, model(t, text, sets...), Options{Backend: backend})
	return encoder, decoder, r.Step / r.Epochs
}

// zeros returns the indices of the values that are 0.
func zeros(values []float32) (indices []int) {
	for i, v := range values {
		if v == 0 {
			indices = append(indices, i)
		}
	}
	return indices
}

func TestPrunedWeightsStayAtZeroUntilReleased(t *testing.T) {
	encoder, decoder, epoch := seen(t, phasedModel, "constraint=[]")
	before := encoder[epoch-1] // of the last dense step, whose update is not seen: nearly the same
	held := zeros(encoder[epoch])
	if want := int(0.3 * float64(len(before))); len(held) != want {
		t.Fatalf("%d weights are 0 at first, want %d", len(held), want)
	}
	for step := range encoder {
		zeros := 0
		for _, i := range held {
			if encoder[step][i] == 0 {
				zeros++
			}
		}
		switch sparse := step >= epoch && step <= 3*epoch; { // the first step of epoch 3 begins where they were held
		case sparse && zeros != len(held):
			t.Errorf("step %d: %d of %d pruned weights are 0", step+1, zeros, len(held))
		case !sparse && zeros > 0:
			t.Errorf("step %d: %d weights are 0", step+1, zeros)
		}
	}
	for i, w := range decoder[2*epoch] {
		if size := math.Abs(float64(w)); size > 0 && size <= 0.1 {
			t.Errorf("weight %d of the decoder is %v", i, w)
		}
	}
	for _, i := range zeros(decoder[2*epoch]) {
		expect.Equal(t, decoder[len(decoder)-1][i], 0, "weight", i, "of the decoder was released")
	}
	if n := len(zeros(decoder[2*epoch])); n == 0 || n == len(decoder[0]) {
		t.Errorf("%d weights of the decoder are pruned", n)
	}
}

// Constraints on whole parameters are applied after the update. They must keep pruned weights at 0.
func TestPrunedWeightsStayAtZeroUnderConstraints(t *testing.T) {
	for _, constraint := range []string{`{kind="unit_norm",on="*.weight"}`, `{kind="box",on="*.weight",min=0.01,max=1.0}`} {
		encoder, _, epoch := seen(t, phasedModel, "constraint=["+constraint+"]")
		for step := epoch; step <= 3*epoch; step++ {
			if zeros := len(zeros(encoder[step])); zeros < int(0.3*float64(len(encoder[step]))) {
				t.Errorf("%s: step %d: %d weights are 0", constraint, step+1, zeros)
			}
		}
	}
}

func TestTheRateFallsOnceAPhaseHasEnded(t *testing.T) {
	const constant = `optimizer={kind="sgd",learning_rate=0.01}`
	r := trained(t, model(t, phasedModel, constant, "hook.prune.until=2", "hook.prune.rate=0.25", "hook.prune-2.until=3", "hook.prune-2.rate=0.5"), Options{})
	for i, line := range lines(t, r.Run) {
		want := []float64{0.01, 0.01, 0.0025, 0.00125}[i]
		expect.Near(t, line["learning_rate"].(float64), want, 1e-12, "epoch", i+1, "the rate")
	}
}

func TestTheModelOfAPrunedRunIsSparse(t *testing.T) {
	r := trained(t, model(t, phasedModel, "constraint=[]", "hook.early_stopping=false"), Options{})
	m, err := Open(r.Run)
	fatal.If(t, err)
	state, err := readState(r.Run + "/" + folder.State)
	fatal.If(t, err)
	mask, ok := state.file.Tensor("hook/prune-2/decoder.0.weight")
	if !ok {
		t.Fatal("the state does not say what is pruned")
	}
	w, err := m.Parameter("decoder.0.weight")
	fatal.If(t, err)
	for i, v := range mask.Data {
		if v == 1 != (w.Data[i] == 0) { // averages of weights that are not held are not 0
			t.Fatalf("weight %d is %v, pruned: %v", i, w.Data[i], v)
		}
	}
	for _, tensor := range state.file.Tensors {
		if strings.HasPrefix(tensor.Name, "hook/prune/") {
			t.Errorf("the state holds %s, whose phase is over", tensor.Name)
		}
	}
}

func TestTheNumberOfThreadsDoesNotChangeAPrunedStep(t *testing.T) {
	var want [][]float32
	for _, team := range []*team.Team{threads(t, 1), threads(t, 2), threads(t, 7)} {
		m, steps := stepped(t, `hook.prune={fraction=0.5}`)
		n := &trainee{job: &job{spec: m.Spec}, model: m, stepper: newStepper(m, team, nil)}
		fatal.If(t, errors.Join(n.attach(), n.hooks.each(func(a *attached) error { return a.BeginEpoch() })))
		for i, gradients := range steps {
			steppedOnce(t, n, gradients, i+1)
		}
		if want == nil {
			want = current(m)
		}
		for i, p := range m.Parameters {
			expect.Slice(t, p.Data, want[i], team.Threads(), "threads", p.Path)
		}
	}
}

// Both phases begin with the same step. The second phase must not select among the weights that the first one has set to 0.
var twoPhases = []string{`hook.prune={on="decoder.*.weight",fraction=0.3,from=2,until=6}`, `hook.prune-2={kind="prune",on="decoder.*.weight",fraction=0.6,from=2,until=4}`, "train.epochs=7"}

// The folder of a finished run is complete: a resume does not write to it.
func TestAFinishedPrunedRunStaysAsItIs(t *testing.T) {
	for _, sets := range [][]string{{"train.epochs=1", "hook.prune.from=0", "hook.prune-2.from=0"}, {"train.epochs=2", "hook.prune-2.from=1"},
		{"train.epochs=3"}, {"train.epochs=4"},
		{"train.epochs=3", "hook.prune.fraction=0.99", `constraint=[{kind="unit_norm",on="*.weight"}]`}} { // a phase that ends with the run
		r := trained(t, model(t, phasedModel, sets...), Options{})
		before := read(t, r.Run, folder.Model)
		if again, err := Resume(context.Background(), r.Run, Options{Backend: tape.Backend{}}); err != nil || !again.AlreadyFinished {
			t.Fatalf("got %v, %v", again, err)
		}
		expect.Slice(t, before, read(t, r.Run, folder.Model), sets, "the model was written again")
	}
}

func TestAPrunedTrainingStepAllocatesNothing(t *testing.T) {
	stepsWithoutAllocations(t, model(t, quiet, "train.batch=8", averaged, "hook.prune={fraction=0.3,from=0}"))
}

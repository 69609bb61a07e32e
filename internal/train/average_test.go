package train

import (
	"context"
	"math"
	"os"
	"slices"
	"testing"

	"tessera/graph"
	"tessera/graph/tape"
	"tessera/hooks"
	"tessera/internal/engine/ir"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/parallel/team"
	"tessera/internal/train/folder"
)

const averaged = "hook.average={decay=0.9}"

// The expected average is the weighted sum of the weights of all steps, in float64.
func TestTheAverageIsTheWeightedMeanOfTheWeightsAfterEveryStep(t *testing.T) {
	const decay = 0.9
	var weights [][][]float32 // values after each step, by step and parameter
	backend := newHooked()
	backend.after = func(n int, p *graph.Program, _ ir.Runner[float32]) {
		now := lists.Map(p.Parameters, func(b graph.Binding) []float32 { return slices.Clone(b.Data) })
		weights = append(weights, now)
	}
	m := model(t, everything, averaged, "hook.early_stopping=false", "constraint=[{kind=\"nonneg\"}]")
	r := trained(t, m, Options{Backend: backend})
	shown, err := Open(r.Run)
	fatal.If(t, err)
	last, err := readState(r.Run + "/" + folder.State)
	fatal.If(t, err)
	for i, p := range shown.Parameters {
		end, ok := last.file.Tensor(p.Path)
		if !ok {
			t.Fatalf("the state contains no %s", p.Path)
		}
		for j, got := range p.Data {
			sum, total := float64(end.Data[j]), 1.0
			factor := 1.0
			for s := len(weights) - 1; s > 0; s-- { // weights[0] are the initial weights
				factor *= decay
				sum += factor * float64(weights[s][i][j])
				total += factor
			}
			if want := sum / total; math.Abs(float64(got)-want) > 1e-6*(1+math.Abs(want)) {
				t.Fatalf("%s[%d]: got %v, want %v", p.Path, j, got, want)
			}
		}
		if slices.Equal(p.Data, end.Data) {
			t.Errorf("%s: the average is the last step's", p.Path)
		}
	}
}

// The average of points on a sphere lies inside the sphere.
func TestTheAveragedModelSatisfiesTheConstraints(t *testing.T) {
	r := trained(t, model(t, everything, averaged, `constraint=[{kind="unit_norm"}]`), Options{})
	m, err := Open(r.Run)
	fatal.If(t, err)
	w, err := m.Parameter("decoder.0.weight")
	fatal.If(t, err)
	for row := range slices.Chunk(w.Data, w.Shape[1]) {
		sum := 0.0
		for _, v := range row {
			sum += float64(v) * float64(v)
		}
		expect.Near(t, math.Sqrt(sum), 1, 1e-5, "an atom has norm")
	}
}

func TestRunningAveragesAreAveragedToo(t *testing.T) {
	r := trained(t, model(t, normalised, averaged, "hook.early_stopping=false"), Options{})
	shown, err := Open(r.Run)
	fatal.If(t, err)
	state, err := readState(r.Run + "/" + folder.State)
	fatal.If(t, err)
	mean, err := shown.Parameter("encoder.3.running_mean")
	fatal.If(t, err)
	if last, _ := state.file.Tensor("encoder.3.running_mean"); slices.Equal(last.Data, mean.Data) || slices.Contains(mean.Data, 0) {
		t.Errorf("the running means are %v, of the last step %v", mean.Data, last.Data)
	}
}

// The validated model equals the saved one: an evaluation of the saved model gives the same error.
func TestTheValidatedModelIsTheAveragedOne(t *testing.T) {
	m := model(t, everything, averaged, "hook.early_stopping=false")
	r := trained(t, m, Options{})
	last := lines(t, r.Run)[r.Epochs-1]["val_mse"].(float64)
	shown, err := Open(r.Run)
	fatal.If(t, err)
	state, err := readState(r.Run + "/" + folder.State)
	fatal.If(t, err)
	expect.Near(t, validation(t, shown.Model), last, 1e-9, "the kept model has a val_mse of")
	fatal.If(t, loadParameters(shown.Model, "", state.file))
	if got := validation(t, shown.Model); math.Abs(got-last) < 1e-9 {
		t.Error("the model of the last step has the same")
	}
}

// validation returns val_mse of a model on the validation images of its data set.
func validation(t *testing.T, m *graph.Model) float64 {
	t.Helper()
	s, splits, err := newSession(context.Background(), m.Spec, Options{Backend: tape.Backend{}}, nil)
	fatal.If(t, err)
	defer s.close()
	w, err := newWatcher(m, nil, tape.Backend{}, splits)
	fatal.If(t, err)
	defer w.programs.Close()
	measured, err := w.Measure()
	fatal.If(t, err)
	mse, ok := measured.Number("val_mse")
	if !ok {
		t.Fatal("val_mse was not measured")
	}
	return mse
}

func TestTheStateAloneGivesTheAveragedModel(t *testing.T) {
	r := trained(t, model(t, everything, averaged, "hook.early_stopping=false"), Options{})
	want, err := Open(r.Run)
	fatal.If(t, err)
	fatal.If(t, os.Remove(r.Run+"/"+folder.Model))
	got, err := Open(r.Run)
	fatal.If(t, err)
	for i, p := range want.Parameters {
		expect.Slice(t, got.Parameters[i].Data, p.Data, p.Path)
	}
}

func TestTheNumberOfThreadsDoesNotChangeAnAverage(t *testing.T) {
	var want []*graph.Parameter
	for _, team := range []*team.Team{threads(t, 1), threads(t, 2), threads(t, 7)} {
		m, steps := stepped(t, averaged)
		n := &trainee{job: &job{spec: m.Spec}, model: m, stepper: newStepper(m, team, nil)}
		fatal.If(t, n.attach())
		for i, gradients := range steps {
			steppedOnce(t, n, gradients, i+1)
		}
		shown, err := n.shown()
		fatal.If(t, err)
		got := shown.Parameters
		if want == nil {
			want = got
		}
		for i, p := range want {
			expect.Slice(t, got[i].Data, p.Data, team.Threads(), "threads", p.Path)
		}
	}
}

// steppedOnce performs one step and the calls of the hooks before and after it.
func steppedOnce(t *testing.T, n *trainee, gradients [][]float32, step int) {
	t.Helper()
	fatal.If(t, n.hooks.each(func(a *attached) error { return a.BeforeStep(&hooks.Step{}) }))
	n.stepper.Step(gradients, 0.01, step)
	n.progress.Step = step
	fatal.If(t, n.hooks.each(func(a *attached) error { return a.AfterStep() }))
}

func TestAnAveragedTrainingStepAllocatesNothing(t *testing.T) {
	stepsWithoutAllocations(t, model(t, quiet, "train.batch=8", averaged))
}

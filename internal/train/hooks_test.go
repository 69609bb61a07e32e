package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"tessera/config"
	"tessera/graph/tape"
	"tessera/hooks"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/parallel/team"
	"tessera/internal/train/checkpoint"
	"tessera/internal/train/folder"
)

// jolts is a user-defined hook. In every second step it adds noise to the encoder's weight, scaled by a sum of the norms of
// earlier batches; every epoch it halves the sum. An exact resume requires the sum and the random stream.
type jolts struct {
	Every int `toml:"every" want:"> 0" doc:"steps between two jolts"`
}

type jolting struct {
	*jolts
	t       hooks.Training
	weights []*hooks.Parameter
	sum     []float32
	record  struct{ Epochs, Steps int }
}

func (j *jolts) Attach(t hooks.Training) (*hooks.Active, error) {
	h := &jolting{jolts: j, t: t, weights: t.Parameters("encoder.*.weight"), sum: make([]float32, 1)}
	return &hooks.Active{
		BeforeStep: func(s *hooks.Step) error {
			for _, v := range s.Images {
				h.sum[0] += v * v / float32(len(s.Images))
			}
			return nil
		},
		AfterStep: h.jolt,
		EndEpoch: func(e *hooks.Epoch) error {
			h.record.Epochs++
			error, _ := e.Metrics.Number("val_mse")
			h.sum[0] *= float32(error)
			return nil
		},
		Save: func(s *hooks.State) {
			s.Put("sum", []int{1}, h.sum)
			s.PutRecord(h.record)
		},
		Restore: func(s *hooks.State) error {
			return errors.Join(s.Load("sum", []int{1}, h.sum), s.LoadRecord(&h.record))
		},
	}, nil
}

func (h *jolting) jolt() error {
	h.record.Steps++
	if h.record.Steps != h.t.Step() || h.record.Epochs != h.t.Epoch() {
		return fmt.Errorf("counts %d steps and %d epochs, the training %d and %d", h.record.Steps, h.record.Epochs, h.t.Step(), h.t.Epoch())
	}
	if h.t.Step()%h.Every != 0 {
		return nil
	}
	random := h.t.Random(h.t.Step())
	for _, p := range h.weights {
		h.t.Rewrite(p, func(values []float32) {
			for i := range values {
				values[i] += 0.01 * h.sum[0] * random.Float32()
			}
		})
	}
	return nil
}

// jolted returns a model with a user-defined hook and other hooks.
func jolted(t *testing.T, sets ...string) *config.Model {
	t.Helper()
	return model(t, phasedModel, append(sets, "hook.jolts.every=2")...)
}

func init() {
	hooks.Registry.Register("jolts", "adds noise to the encoder's weight", func() hooks.Hook { return &jolts{Every: 2} })
}

func TestAUserDefinedHookChangesTheTraining(t *testing.T) {
	with, without := trained(t, jolted(t), Options{}), trained(t, model(t, phasedModel), Options{})
	if string(read(t, with.Run, folder.Model)) == string(read(t, without.Run, folder.Model)) {
		t.Error("the hook changes nothing")
	}
	from, err := readState(with.Run + "/" + folder.State)
	fatal.If(t, err)
	expect.Equal(t, from.file.Metadata["hook/jolts"], `{"Epochs":4,"Steps":16}`, "the state holds the record")
	if sum, ok := from.file.Tensor("hook/jolts/sum"); !ok || !(sum.Data[0] > 0) {
		t.Errorf("the state holds the sum %v", sum)
	}
}

// In every epoch the hook revive re-initialises units. A moving average, a teacher and constraints apply to their weights.
func TestARunWithReviveAndTeacherResumesToTheSameBytes(t *testing.T) {
	m := model(t, everything, averaged, "hook.revive={every=1,threshold=0.9}", "hook.teacher.decay=0.9", "train.epochs=3")
	plain := trained(t, model(t, everything, averaged, "train.epochs=3"), Options{})
	r := trained(t, m, Options{})
	if string(read(t, r.Run, folder.Model)) == string(read(t, plain.Run, folder.Model)) {
		t.Error("no unit was drawn again")
	}
	interruptedEverywhere(t, m, apart())
}

// Units start from what atoms share.
func TestARunWithCommonPartsResumesToTheSameBytes(t *testing.T) {
	declared := func(revive string) *config.Model {
		return model(t, relativeTerms+relative["unrolled"]+"\n", "dataset.count=48", "train.epochs=2", "hook.revive="+revive)
	}
	without, m := declared("{every=1,threshold=0.5,residuals=true}"), declared("{every=1,threshold=0.5,residuals=true,common=true}")
	if string(read(t, trained(t, m, Options{}).Run, folder.Model)) == string(read(t, trained(t, without, Options{}).Run, folder.Model)) {
		t.Error("nothing was in common")
	}
	interruptedEverywhere(t, m, apart())
}

func TestProgramsReadWhatATeacherLends(t *testing.T) {
	s, splits, err := newSession(context.Background(), model(t, everything, "hook.teacher.decay=0.5"), Options{Backend: tape.Backend{}}, nil)
	fatal.If(t, err)
	defer s.close()
	n := s.learner.(*network)
	fatal.If(t, n.begin(context.Background(), splits, true))
	w, err := n.model.Parameter("encoder.2.weight")
	fatal.If(t, err)
	taught, err := n.model.Parameter("teacher.encoder.2.weight")
	if err != nil || !slices.Equal(taught.Data, w.Data) {
		t.Fatalf("the teacher does not start with the first weights: %v", err)
	}
	first := slices.Clone(w.Data)
	fatal.If(t, n.step())
	for i, v := range taught.Data {
		if want := (first[i] + w.Data[i]) / 2; math.Abs(float64(v-want)) > 1e-6 || first[i] == w.Data[i] {
			t.Fatalf("weight %d of the teacher is %v, want %v", i, v, want)
		}
	}
}

// A decay of 1 from the third epoch on: the teacher follows the weights in the second epoch, and not in the third.
func TestTheDecayOfATeacherFollowsTheEpochs(t *testing.T) {
	var after [4][]float32
	for epochs := 1; epochs <= 3; epochs++ {
		m := model(t, everything, `hook.teacher.decay={kind="step",from=0.5,to=1.0,epochs=2}`, `optimizer={kind="sgd",learning_rate=0.1}`, fmt.Sprint("train.epochs=", epochs))
		from, err := readState(trained(t, m, Options{}).Run + "/" + folder.State)
		fatal.If(t, err)
		taught, ok := from.file.Tensor("hook/teacher/encoder.2.weight")
		if !ok {
			t.Fatal("the state has no teacher")
		}
		after[epochs] = taught.Data
	}
	if slices.Equal(after[1], after[2]) || !slices.Equal(after[2], after[3]) {
		t.Errorf("the teacher does not change in the second epoch, or changes in the third: %v, %v, %v", after[1][:3], after[2][:3], after[3][:3])
	}
}

func TestAStateWithoutAHookIsRefused(t *testing.T) {
	run := half(t)
	edit(t, run, "[model.everything.train]", "[model.everything.hook.jolts]\n\n[model.everything.train]")
	refusedByName(t, run, "hook.jolts.every: got 2, want nothing")
	recode(t, run, folder.State, func(f *checkpoint.File) { f.Metadata[declarationKey] = string(read(t, run, folder.Config)) })
	refusedByName(t, run, "hook jolts: sum is missing")
}

func TestTheNumberOfThreadsDoesNotChangeHooks(t *testing.T) {
	want := trained(t, jolted(t), Options{})
	for _, threads := range []int{2, 3} {
		team := team.New(threads)
		sameResult(t, trained(t, jolted(t), Options{Team: team}).Run, want.Run)
		team.Close()
	}
}

// outside is a hook that consists of an Attach function.
type outside struct {
	attach func(t hooks.Training) (*hooks.Active, error)
}

func (o *outside) Attach(t hooks.Training) (*hooks.Active, error) { return o.attach(t) }

func TestAllHooksTogetherResumeToTheSameBytes(t *testing.T) {
	m := model(t, everything, averaged, `hook.prune={fraction=0.3,from=1}`, `hook.prune-2={kind="prune",threshold=0.02,on="decoder.*.weight"}`, "hook.adversarial={epsilon=0.05,share=0.5}",
		"hook.revive={every=1,threshold=0.9}", "hook.teacher.decay=0.9", "hook.plateau={patience=0,factor=0.5,threshold=0.5}", "hook.jolts.every=3",
		"hook.early_stopping.patience=1", "train.epochs=2")
	if list := m.AllHooks(); len(list) != 9 {
		t.Fatalf("%d hooks", len(list))
	}
	interruptedEverywhere(t, m, apart())
	killedAgain(t, m, 1)
}

// failingHook fails, or panics, in one of its functions.
type failingHook struct {
	in     string
	panics bool
}

func (f *failingHook) fail(in string) error {
	if f.in != in {
		return nil
	}
	if f.panics {
		panic("out of order")
	}
	return errors.New("out of order")
}

func (f *failingHook) Attach(hooks.Training) (*hooks.Active, error) {
	return &hooks.Active{
		Initialise:  func() error { return f.fail("Initialise") },
		Begin:       func() error { return f.fail("Begin") },
		BeginEpoch:  func() error { return f.fail("BeginEpoch") },
		BeforeStep:  func(*hooks.Step) error { return f.fail("BeforeStep") },
		AfterStep:   func() error { return f.fail("AfterStep") },
		EndEpoch:    func(*hooks.Epoch) error { return f.fail("EndEpoch") },
		Project:     func(*hooks.Parameter, []float32, int) { _ = f.fail("Project") },
		AfterUpdate: func(*hooks.Parameter, []float32, int, []float32) { _ = f.fail("AfterUpdate") },
		Rate:        func() float64 { _ = f.fail("Rate"); return 1 },
		Save:        func(*hooks.State) { _ = f.fail("Save") },
		Substitute:  func(p *hooks.Parameter) []float32 { _ = f.fail("Substitute"); return p.Data },
		Best:        func() *hooks.BestEpoch { _ = f.fail("Best"); return nil },
		Average:     func(*hooks.Parameter) []float32 { _ = f.fail("Average"); return nil },
		Lend:        func() []*hooks.Parameter { _ = f.fail("Lend"); return nil },
	}, f.fail("Attach")
}

func TestErrorsAndPanicsOfAHookNameIt(t *testing.T) {
	for _, in := range []string{"Attach", "Initialise", "Begin", "BeginEpoch", "BeforeStep", "AfterStep", "EndEpoch", "Project", "AfterUpdate", "Rate", "Save", "Substitute", "Best", "Average", "Lend"} {
		for _, panics := range []bool{false, true} {
			canFail := in != "Project" && in != "AfterUpdate" && !slices.Contains([]string{"Rate", "Save", "Substitute", "Best", "Average", "Lend"}, in)
			if !panics && !canFail {
				continue
			}
			m := model(t, everything, "hook.early_stopping=false")
			m.Hooks = map[string]hooks.Hook{"failing": &failingHook{in, panics}}
			_, err := trainNew(context.Background(), m, Options{Backend: tape.Backend{}, Out: place(t)})
			expect.Error(t, err, "out of order", in, "panics", panics)
			expect.Error(t, err, "hook failing: ", in, "panics", panics)
		}
	}
}

func TestHooksThatExcludeEachOtherAreRefused(t *testing.T) {
	for want, c := range map[string]struct {
		text  string
		hooks map[string]hooks.Hook
	}{
		"hook mean: has the same function as average":          {everything, map[string]hooks.Hook{"mean": &hooks.Average{Decay: 0.5}}},
		"hook stop: has the same function as early_stopping":   {everything, map[string]hooks.Hook{"stop": &hooks.EarlyStopping{Patience: 1}, "early_stopping": &hooks.EarlyStopping{Patience: 1}}},
		"hook jolts: needs a mini-batch optimizer (got lbfgs)": {searched, map[string]hooks.Hook{"jolts": &jolts{Every: 1}}},
	} {
		m := model(t, c.text)
		if m.Hooks = c.hooks; strings.Contains(want, "average") {
			m.Hooks["average"] = &hooks.Average{Decay: 0.9}
		}
		expect.Error(t, expect.Err(trainNew(context.Background(), m, Options{Backend: tape.Backend{}, Out: place(t)})), want)
	}
}

package train

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tessera/config"
	"tessera/internal/engine"
	"tessera/internal/fatal"
	"tessera/internal/train/folder"
	"tessera/internal/train/internal/faulty"
)

// interruption is a way in which a training ends before its end: at steps or operations that are stride apart, where they can be chosen.
type interruption func(t *testing.T, m *config.Model, stride int)

// learners declares the learners of the law, each with the ways in which it is interrupted.
var learners = map[string]struct {
	model func(t *testing.T) *config.Model
	ways  []interruption
}{
	"auto-encoder, every step":      {declaring(everything), []interruption{interruptedEverywhere, killedAgain}},
	"auto-encoder, every operation": {declaring(everything, "train.epochs=2"), []interruption{killedEverywhere, fullEverywhere}},
	"two passes of four steps":      {declaring(everything, "dataset.count=500", "train.epochs=2", "train.batch=96", "train.min_epoch_steps=5"), []interruption{interruptedEverywhere}},
	"multiplier":                    {func(t *testing.T) *config.Model { return model(t, multiplied(t)) }, []interruption{interruptedEverywhere}},
	"attacked batches":              {declaring(everything + attackedBatches), []interruption{interruptedEverywhere}},
	"madry": {func(t *testing.T) *config.Model {
		return model(t, attackedClasses(t, `{ kind = "cross_entropy" }`, "random_start = true\nwarmup = 1"))
	}, []interruption{interruptedEverywhere}},
	"trades": {func(t *testing.T) *config.Model {
		return model(t, attackedClasses(t, `{ kind = "trades" }`, "random_start = true\nobjective = \"kl\""))
	}, []interruption{interruptedEverywhere}},
	"a state per row":              {declaring(everything, `optimizer={ kind = "per_row" }`, "train.epochs=2"), []interruption{interruptedEverywhere}},
	"average of normalised layers": {declaring(normalised, averaged, "train.epochs=2"), []interruption{interruptedEverywhere}},
	"average":                      {declaring(everything, averaged, "train.epochs=2"), []interruption{killedEverywhere}},
	"columns": {func(t *testing.T) *config.Model {
		return regression(t, 20, "train.batch=7", "optimizer.kind=adam", "freeze=[]")
	}, []interruption{interruptedEverywhere}},
	"columns of a frozen model": {func(t *testing.T) *config.Model { return regression(t, 20, "train.batch=7", "train.epochs=3") }, []interruption{killedEverywhere}},
	"drawn columns": {func(t *testing.T) *config.Model {
		return denoised(t, 40, "train.batch=18", "optimizer.kind=adam")
	}, []interruption{interruptedEverywhere}},
	"decomposition":            {declaring(channelled(padoLayer), "train.epochs=1", averaged), []interruption{interruptedEverywhere}},
	"decomposition by amounts": {declaring(channelled(amdLayer), "train.epochs=2"), []interruption{killedEverywhere}},
	"frozen":                   {declaring(normalised, append(projectedAll, `freeze=["encoder.*"]`, "train.epochs=2")...), []interruption{interruptedEverywhere}},
	"sequences":                {func(t *testing.T) *config.Model { return sequences(t, 0, "optimizer.kind=adam") }, []interruption{interruptedEverywhere}},
	"masked transformer":       {declaring(maskedModel), []interruption{interruptedEverywhere, killedEverywhere}},
	"text on disk":             {textOnDisk, []interruption{interruptedEverywhere, killedEverywhere}},
	"holes": {func(t *testing.T) *config.Model {
		holed, _ := tableOf(t, 60)
		return declared(t, "mse", fmt.Sprintf(`{ name = "csv", file = %q, missing = "nan", scale = "standardise", hide = 0.1, columns = { target = "y" } }`, holed), false)
	}, []interruption{killedEverywhere}},
	"players in turn":           {func(t *testing.T) *config.Model { return turns(t, "train.epochs=2", "train.batch=64") }, []interruption{interruptedEverywhere}},
	"players":                   {declaring(opposed, "train.epochs=1", "train.batch=64"), []interruption{interruptedEverywhere}},
	"pruned":                    {declaring(phasedModel), []interruption{interruptedEverywhere}},
	"pruned, every operation":   {declaring(phasedModel, "train.epochs=2", "hook.prune-2.from=1"), []interruption{killedEverywhere}},
	"pruned twice":              {declaring(everything, twoPhases...), []interruption{endedAfterEveryEpoch}},
	"average of a pruned model": {declaring(everything, append(twoPhases, averaged, movingZeros[0])...), []interruption{endedAfterEveryEpoch}},
	"average of a model that is pruned twice": {declaring(everything, append(twoPhases, averaged, movingZeros[0], "train.epochs=3",
		"hook.prune.from=1", "hook.prune.until=3", "hook.prune-2.from=1", "hook.prune-2.until=2")...), []interruption{killedEverywhere}},
	"full batch, every operation": {declaring(searched, "train.epochs=4"), []interruption{killedEverywhere}},
	"full batch":                  {declaring(searched), []interruption{killedAgain}},
	"sparse phase":                {declaring(sparsePhase), []interruption{interruptedEverywhere}},
	"average and a sparse phase":  {declaring(sparsePhase, averaged), []interruption{killedEverywhere}},
	"a hook of another module": {func(t *testing.T) *config.Model { return jolted(t, "train.epochs=2", "hook.prune-2.from=1") },
		[]interruption{interruptedEverywhere, killedEverywhere, killedAgain}},
	"nmf with holes":        {fitting("nmf", holes...), []interruption{killedEverywhere}},
	"sparse nmf with holes": {fitting("sparse_nmf", holes...), []interruption{killedEverywhere}},
	"pca with holes":        {fitting("pca", append([]string{"iterations=4"}, holes...)...), []interruption{killedEverywhere}},
}

// textOnDisk returns a recurrent language model of a text whose tokens exceed the budget of memory.
func textOnDisk(t *testing.T) *config.Model {
	file := filepath.Join(t.TempDir(), "text.txt")
	fatal.If(t, os.WriteFile(file, []byte(strings.Repeat("The raft is near a pier. Sailors steer it.\n", 450)), 0o600))
	return model(t, fmt.Sprintf(`
[model.letters]
dataset = { file = %q, length = 24, tokens = "characters", memory = "64KiB", validation = 0 }
encoder = [{ kind = "embedding", vocabulary = 24, units = 2 }, { kind = "recurrent", units = 3 }]
decoder = []
head.next = { from = "encoder.1", layers = [{ kind = "token_dense", units = 24 }] }
loss = [{ kind = "next_token", length = "length" }]
optimizer = { kind = "adam", learning_rate = 0.01 }
train = { epochs = 3, batch = 200, checkpoint_seconds = 0.0 }
`, filepath.ToSlash(file)))
}

// declaring returns a model of a text with changes.
func declaring(text string, sets ...string) func(t *testing.T) *config.Model {
	return func(t *testing.T) *config.Model { return model(t, text, sets...) }
}

// fitting returns a classical model with changes.
func fitting(name string, sets ...string) func(t *testing.T) *config.Model {
	return func(t *testing.T) *config.Model { return baseline(t, name, sets...) }
}

// Law: a learner that is interrupted in any way, and resumed, has the bytes of an uninterrupted run.
func TestALearnerInterruptedAnywhereResumesToTheSameBytes(t *testing.T) {
	for name, l := range learners {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stride := apart()
			if strings.HasPrefix(name, "auto-encoder") && !testing.Short() {
				stride = 1
			}
			for _, interrupt := range l.ways {
				interrupt(t, l.model(t), stride)
			}
		})
	}
	for name := range fitted {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			endedAfterEveryEpoch(t, baseline(t, name), 1)
			switch name {
			case "nmf", "pca", "centres":
				killedEverywhere(t, baseline(t, name), apart())
			}
			switch name {
			case "mini-batch", "centres":
				interruptedWithinAPass(t, baseline(t, name))
			}
		})
	}
}

// apart returns the distance between the interrupted steps of a learner, and between its operations that fail. The auto-encoder, which has
// all kinds of state, is interrupted in every one.
func apart() int {
	if testing.Short() { // -short is set by the run under the race detector
		return 13
	}
	return 5
}

// plainly are the options of an uninterrupted run.
func plainly() Options { return Options{Backend: engine.Backend{}, Disk: &faulty.Disk{}} }

// resumesTo resumes a run and compares it with an uninterrupted one.
func resumesTo(t *testing.T, run, when string, want *Result) {
	t.Helper()
	if r, err := Resume(context.Background(), run, plainly()); err != nil || r.Epochs != want.Epochs {
		t.Fatalf("%s: %+v, %v", when, r, err)
	}
	sameRun(t, run, want.Run)
}

// interruptedEverywhere cancels the context in each step.
func interruptedEverywhere(t *testing.T, m *config.Model, stride int) {
	t.Helper()
	want := trained(t, m, Options{Backend: engine.Backend{}})
	for at := 1 + (want.Step-1)%stride; at <= want.Step; at += stride { // ends with the last one
		run := place(t)
		ctx, backend := cancelledAt(at, engine.Backend{})
		r, err := Run(ctx, m, Options{Backend: backend, Out: run, Disk: &faulty.Disk{}})
		if at == want.Step {
			if err != nil || r.Step != want.Step {
				t.Errorf("interrupted in the last step: got %v, want a finished run", err)
			}
		} else if !errors.Is(err, ErrInterrupted) {
			t.Fatalf("interrupted in step %d: got %v", at, err)
		}
		from, err := readState(run + "/" + folder.State)
		if err != nil || from.Step != at {
			t.Fatalf("interrupted in step %d: the checkpoint is of step %d (%v)", at, from.Step, err)
		}
		resumesTo(t, run, fmt.Sprintf("interrupted in step %d", at), want)
	}
}

// endedAfterEveryEpoch cancels the context after each epoch, or iteration of a classical model.
func endedAfterEveryEpoch(t *testing.T, m *config.Model, _ int) {
	t.Helper()
	want := trained(t, m, Options{Backend: engine.Backend{}})
	stride := 1
	if testing.Short() {
		stride = 3
	}
	for at := 1; at < want.Epochs; at += stride {
		o := plainly()
		o.Out = place(t)
		ctx, cancel := context.WithCancel(context.Background())
		o.Report = func(p Progress) {
			if p.Epoch == at && (p.EpochDone || m.Baseline != nil) {
				cancel()
			}
		}
		if _, err := Run(ctx, m, o); !errors.Is(err, ErrInterrupted) {
			t.Fatalf("interrupted after epoch %d: got %v", at, err)
		}
		resumesTo(t, o.Out, fmt.Sprintf("interrupted after epoch %d", at), want)
	}
}

// killedEverywhere ends the process before each operation on the disk, and in the middle of each write.
func killedEverywhere(t *testing.T, m *config.Model, stride int) {
	t.Helper()
	least := 40
	if m.Baseline != nil {
		least = 15
	}
	failedEverywhere(t, m, least, stride, func(at int) *faulty.Disk { return &faulty.Disk{DieAt: at} }, func(err error) bool { return errors.Is(err, faulty.ErrDead) })
}

// fullEverywhere fills the disk before each operation.
func fullEverywhere(t *testing.T, m *config.Model, stride int) {
	t.Helper()
	failedEverywhere(t, m, 20, stride, func(at int) *faulty.Disk { return &faulty.Disk{FullAt: at} }, func(err error) bool {
		var failed *folder.WriteError
		return errors.As(err, &failed) && errors.Is(err, syscall.ENOSPC)
	})
}

// failedEverywhere lets each of the operations on the disk fail, of which a run has at least a number.
func failedEverywhere(t *testing.T, m *config.Model, least, stride int, disk func(at int) *faulty.Disk, says func(error) bool) {
	t.Helper()
	want, whole := trained(t, m, Options{Backend: engine.Backend{}}), 0
	for at := 1; ; at += stride {
		run := place(t)
		_, err := Run(context.Background(), m, Options{Backend: engine.Backend{}, Out: run, Disk: disk(at)})
		if err == nil {
			if at < least {
				t.Errorf("a run has only %d operations on the disk: is it written at all?", at-1)
			}
			break
		}
		if !says(err) {
			t.Fatalf("failed at operation %d: got %v", at, err)
		}
		if _, err := os.Stat(run); err == nil {
			resumesTo(t, run, fmt.Sprintf("failed at operation %d", at), want)
			whole++
		}
	}
	if whole == 0 {
		t.Error("no failed run left a checkpoint: nothing was resumed")
	}
}

// killedAgain ends the process at random operations on the disk, also after each resume.
func killedAgain(t *testing.T, m *config.Model, _ int) {
	t.Helper()
	want := trained(t, m, Options{Backend: engine.Backend{}})
	r := rand.New(rand.NewPCG(1, 2))
	again := 0
	for range 5 {
		run, kills := place(t), 0
		_, err := Run(context.Background(), m, Options{Backend: engine.Backend{}, Out: run, Disk: &faulty.Disk{DieAt: 12 + r.IntN(20)}})
		for ; err != nil; kills++ {
			if !errors.Is(err, faulty.ErrDead) {
				t.Fatal(err)
			}
			_, err = Resume(context.Background(), run, Options{Backend: engine.Backend{}, Disk: &faulty.Disk{DieAt: 4 + r.IntN(30)}})
		}
		if kills == 0 {
			t.Error("the run ended before it was killed")
		}
		again += max(0, kills-1)
		t.Logf("killed %d times", kills)
		sameRun(t, run, want.Run)
		if again > 0 && testing.Short() {
			break
		}
	}
	if again == 0 {
		t.Error("no resumption was killed")
	}
}

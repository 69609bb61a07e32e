package train

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"tessera/graph/tape"
	"tessera/hooks"
	"tessera/train/checkpoint"
	"tessera/train/folder"
)

func TestASearchInterruptedInAnyBatchResumesToTheSameBytes(t *testing.T) {
	for _, sets := range [][]string{nil, {"constraint=[]"}, estimated} {
		m := model(t, searched, sets...)
		whole := newHooked()
		want := trained(t, m, Options{Backend: whole})
		batches := int(whole.count.Load())
		for at := 1; at <= batches; at += 1 + at/8 {
			run := place(t)
			ctx, cancel := context.WithCancel(context.Background())
			backend := newHooked()
			backend.before = func(n int) {
				if n == at {
					cancel()
				}
			}
			_, err := Run(ctx, m, Options{Backend: backend, Out: run})
			if err != nil && !errors.Is(err, ErrInterrupted) {
				t.Fatalf("interrupted in batch %d of %d: got %v", at, batches, err)
			}
			if _, err := Resume(context.Background(), run, Options{Backend: tape.Backend{}}); err != nil {
				t.Fatal(err)
			}
			sameRun(t, run, want.Run)
		}
	}
}

// counts counts the epochs that begin.
type counts struct{}

func (counts) Attach(hooks.Training) (*hooks.Active, error) {
	var record struct{ Begun int }
	return &hooks.Active{BeginEpoch: func() error { record.Begun++; return nil },
		Save: func(s *hooks.State) { s.PutRecord(record) }, Restore: func(s *hooks.State) error { return s.LoadRecord(&record) }}, nil
}

func init() {
	hooks.Registry.Register("counts", "counts epochs", func() hooks.Hook { return &counts{} })
}

// BeginEpoch is not called again for a repeated iteration.
func TestAnInterruptedIterationBeginsOnceForHooks(t *testing.T) {
	m := model(t, searched, "train.epochs=3", "hook.counts={}")
	for at := 5; at <= 15; at += 5 {
		run := place(t)
		ctx, cancel := context.WithCancel(context.Background())
		backend := newHooked()
		backend.before = func(n int) {
			if n == at {
				cancel()
			}
		}
		if _, err := Run(ctx, m, Options{Backend: backend, Out: run}); !errors.Is(err, ErrInterrupted) {
			t.Fatal(err)
		}
		if _, err := Resume(context.Background(), run, Options{Backend: tape.Backend{}}); err != nil {
			t.Fatal(err)
		}
		from, err := readState(run + "/" + folder.State)
		if err != nil {
			t.Fatal(err)
		}
		if got := from.file.Metadata["hook/counts"]; got != `{"Begun":3}` {
			t.Errorf("interrupted in batch %d: the hook counts %s, want 3", at, got)
		}
	}
}

// The optimizer would overwrite the change in its next iteration, but a resumed run would begin with it.
func TestAHookCannotChangeParametersInASearch(t *testing.T) {
	m := model(t, searched, "train.epochs=3")
	m.Hooks = map[string]hooks.Hook{"outside": &outside{func(t hooks.Training) (*hooks.Active, error) {
		return &hooks.Active{EndEpoch: func(*hooks.Epoch) error {
			for _, p := range t.Parameters("encoder.*.weight") {
				t.Rewrite(p, func(values []float32) { values[0] /= 2 })
			}
			return nil
		}}, nil
	}}}
	_, err := Run(context.Background(), m, Options{Backend: tape.Backend{}, Out: place(t)})
	if err == nil || !strings.Contains(err.Error(), "hook outside") || !strings.Contains(err.Error(), "lbfgs") {
		t.Errorf("got %v, want an error of the hook", err)
	}
}

func TestASearchKilledAtAnyMomentResumesToTheSameBytes(t *testing.T) {
	killedEverywhere(t, model(t, searched, "train.epochs=6"))
}

func TestASearchKilledAgainAndAgainResumesToTheSameBytes(t *testing.T) {
	killedAgain(t, model(t, searched))
}

// Checkpoints do not change the result: the history does not depend on them.
func TestCheckpointsDoNotChangeASearch(t *testing.T) {
	often, never := trained(t, model(t, searched), Options{}), trained(t, model(t, searched, "train.checkpoint_seconds=1e9"), Options{})
	var models [2]*checkpoint.File
	for i, run := range []string{often.Run, never.Run} {
		f, err := checkpoint.Decode(read(t, run, folder.Model))
		if err != nil {
			t.Fatal(err)
		}
		models[i] = f
	}
	if !reflect.DeepEqual(models[0].Tensors, models[1].Tensors) {
		t.Error("the models differ")
	}
}

func TestANonFiniteSearchNamesTheTensor(t *testing.T) {
	for want, sets := range map[string][]string{
		"encoder.0.weight": {`encoder=[{kind="dense",units=4,init={kind="constant",value=1e300}}]`, "constraint=[]", `loss=[{kind="mse"}]`},
		"loss.mse":         {`loss=[{kind="mse",weight=1e39}]`},
		"loss.hoyer":       {`loss=[{kind="mse"},{kind="hoyer",weight=1e39}]`},
	} {
		_, err := Run(context.Background(), model(t, searched, sets...), Options{Backend: tape.Backend{}, Out: place(t)})
		var diverged *Diverged
		if !errors.As(err, &diverged) || diverged.Tensor != want || diverged.Step != 1 {
			t.Errorf("got %v, want that %s is not finite in step 1", err, want)
		} else if strings.Contains(err.Error(), "learning_rate") {
			t.Errorf("got %v: there is no learning rate", err)
		}
	}
}

func TestAStateWithoutTheStateOfItsSearchIsDamaged(t *testing.T) {
	m := model(t, searched, "train.epochs=3")
	ctx, cancel := context.WithCancel(context.Background())
	backend := newHooked()
	backend.before = func(n int) {
		if n == 9 {
			cancel()
		}
	}
	run := place(t)
	if _, err := Run(ctx, m, Options{Backend: backend, Out: run}); !errors.Is(err, ErrInterrupted) {
		t.Fatal(err)
	}
	from, err := readState(run + "/" + folder.State)
	if err != nil {
		t.Fatal(err)
	}
	s, err := bareSession(m, from.shape, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, points := range []int{-1, 5} {
		from.Search.Points = points
		if err := s.learner.restore(from); err == nil {
			t.Errorf("%d points are taken", points)
		}
	}
	from.Search = nil
	if err := s.learner.restore(from); err == nil {
		t.Error("no points are taken")
	}
}

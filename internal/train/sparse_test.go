package train

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"tessera/graph/tape"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/train/folder"
)

// movingZeros contains constraints that change values of 0; unit_norm changes an atom whose weights are all pruned.
var movingZeros = []string{`constraint=[{kind="unit_norm",on="decoder.*.weight"}]`, `constraint=[{kind="box",on="decoder.*.weight",min=0.01,max=1.0}]`}

// sparse contains hooks that prune almost all decoder weights from the beginning, with averages.
var sparse = []string{`hook.prune={on="decoder.*.weight",fraction=0.99}`, averaged}

// The averages are projected before they are used: pruned weights are 0 in the validated, saved and opened model.
func TestTheAveragedModelOfAPrunedRunIsSparseUnderConstraints(t *testing.T) {
	for _, constraint := range movingZeros {
		sets := append(sparse, constraint)
		whole := trained(t, model(t, everything, sets...), Options{}).Run
		resumed := place(t)
		ctx, cancel := context.WithCancel(context.Background())
		cancelled := Options{Backend: tape.Backend{}, Out: resumed, Report: func(p Progress) {
			if p.EpochDone && p.Epoch == 2 {
				cancel()
			}
		}}
		if _, err := Run(ctx, model(t, everything, sets...), cancelled); !errors.Is(err, ErrInterrupted) {
			t.Fatal(err)
		}
		sparselyOpened(t, constraint, resumed)
		fatal.If(t, expect.Err(Resume(context.Background(), resumed, Options{Backend: tape.Backend{}})))
		sameRun(t, resumed, whole)
		sparselyOpened(t, constraint, whole)
	}
}

// sparselyOpened removes the derived files of a run one by one, and fails unless the decoder is sparse when opened from each
// file.
func sparselyOpened(t *testing.T, constraint, run string) {
	t.Helper()
	state, err := readState(run + "/" + folder.State)
	fatal.If(t, err)
	mask, ok := state.file.Tensor("hook/prune/decoder.0.weight")
	if !ok {
		t.Fatal("the state does not say what is pruned")
	}
	kept := map[string][]byte{folder.Best: read(t, run, folder.Best), folder.Model: read(t, run, folder.Model)}
	var last []float32
	for _, name := range []string{folder.Best, folder.Model, folder.State} {
		m, err := Open(run)
		fatal.If(t, err)
		w, err := m.Parameter("decoder.0.weight")
		if err != nil || !strings.HasSuffix(m.Path, name) {
			t.Fatalf("%s is opened, want %s (%v)", m.Path, name, err)
		}
		wrong := 0
		for i, v := range mask.Data {
			if v == 1 && w.Data[i] != 0 {
				wrong++
			}
		}
		if wrong > 0 {
			t.Errorf("%s: %d of %d pruned weights of %s are not 0", constraint, wrong, len(mask.Data)-len(zeros(mask.Data)), name)
		}
		if name == folder.State && !slices.Equal(w.Data, last) {
			t.Errorf("%s: the state opens to another model than the one that is kept", constraint)
		}
		last = w.Data
		if name != folder.State {
			fatal.If(t, os.Remove(run+"/"+name))
		}
	}
	for name, contents := range kept {
		fatal.If(t, os.WriteFile(run+"/"+name, contents, 0o644))
	}
}

func TestTheValidatedModelOfAPrunedRunIsTheKeptOne(t *testing.T) {
	for _, constraint := range movingZeros {
		r := trained(t, model(t, everything, append(sparse, constraint, "hook.early_stopping=false")...), Options{})
		shown, err := Open(r.Run)
		fatal.If(t, err)
		expect.Near(t, validation(t, shown.Model), lines(t, r.Run)[r.Epochs-1]["val_mse"].(float64), 1e-9, constraint, "the kept model has a val_mse of")
	}
}

package train

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"tessera/config"
	"tessera/data"
	"tessera/internal/engine"
	"tessera/internal/engine/ir"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/train/folder"
	"tessera/internal/train/internal/faulty"
	"tessera/optim"
)

// whole compiles runners that do not know which elements of a value, or rows of a gradient, may differ from 0.
type whole struct{ ir.Backend }

func (w whole) Compile(p ir.Program) (ir.Runner[float32], error) {
	m, err := p.Module()
	if err != nil {
		return nil, err
	}
	m = m.Clone()
	for _, v := range m.Values() {
		if o, ok := v.Op.(ir.Blockwise); ok {
			v.Op = ir.Blockwise{Kernel: struct{ ir.Blocks }{o.Kernel}, Block: o.Block}
		}
	}
	return dense(w).Compile(m)
}

// codes declares a model with rows of varying and of equal numbers of active units. The texts are the steps and the rule.
const codes = `
[model.codes]
dataset = { name = "bars", count = 64, side = 5, validation = 0 }
encoder = [{ kind = "dense", units = 64 }, { kind = "batch_top_k", k = 2 }, { kind = "dense", units = 48 }, { kind = "top_k", k = 3 }]
decoder = [{ kind = "dense" }]
train   = { %s, checkpoint_seconds = 1000.0 }
optimizer.kind = %q
`

// A run that visits only the elements and rows that may differ from 0, is interrupted and resumed, has the bytes of a run that visits all,
// with every rule.
func TestSparseStepsAreThoseOfWholeMatricesAcrossAnInterruption(t *testing.T) {
	check := func(name string, m *config.Model) {
		want := trained(t, m, Options{Backend: whole{engine.Backend{}}})
		sparse := Options{Backend: engine.Backend{}, Out: place(t), Disk: &faulty.Disk{}}
		ctx, cancel := context.WithCancel(t.Context())
		sparse.Report = func(p Progress) {
			if 2*p.Epoch == want.Epochs {
				cancel()
			}
		}
		if _, err := Run(ctx, m, sparse); !errors.Is(err, ErrInterrupted) {
			t.Fatalf("%s: %v", name, err)
		}
		sparse.Report = nil
		r, err := Resume(t.Context(), sparse.Out, sparse)
		fatal.If(t, err)
		expect.Equal(t, r.Step, want.Step, name)
		for _, file := range []string{folder.Model, folder.State} {
			expect.Equal(t, bytes.Equal(read(t, r.Run, file), read(t, want.Run, file)), true, name, file, "is that of whole matrices")
		}
	}
	for _, rule := range optim.Registry.All() {
		text := fmt.Sprintf(codes, "epochs = 26, batch = 16", rule.Name)
		if rule.Name == "lbfgs" { // a step of the whole set
			text = strings.ReplaceAll(fmt.Sprintf(codes, "epochs = 26", rule.Name), "batch_top_k", "top_k")
		}
		check(rule.Name, model(t, text))
	}
	file := filepath.Join(t.TempDir(), "words.npy")
	fatal.If(t, data.WriteImages(file, []int{6}, sixWords(30, 250)))
	for _, rule := range []string{`{ kind = "sgd", learning_rate = 1e-5 }`, `{ kind = "adagrad", learning_rate = 0.1 }`, `{ kind = "adam", lazy = true }`} {
		check(rule, model(t, fmt.Sprintf(tables, 250, 5, 7, "optimizer = "+rule), "train.epochs=20", "train.checkpoint_seconds=1000",
			fmt.Sprintf("dataset={name=\"npy\",images=%q,scale=1,validation=0}", filepath.ToSlash(file))))
	}
}

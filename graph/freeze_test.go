package graph_test

import (
	"slices"
	"strings"
	"testing"

	"tessera/graph"
	"tessera/graph/tape"
	"tessera/internal/engine"
	"tessera/internal/engine/ir"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/parallel/team"
)

// frozen declares a model with a frozen batch_norm, which uses its running averages in training, too, and does not
// change them.
const frozen = `
[model.frozen]
freeze = ["encoder.1.*"]
encoder = [{ kind = "dense", units = 5 }, { kind = "batch_norm" }, { kind = "dense", units = 4, activation = "sigmoid" }]
`

func run(t *testing.T, b ir.Backend, m *graph.Model, o graph.Request, images []float32) (*graph.Program, ir.Runner[float32]) {
	t.Helper()
	p, err := m.Program(o)
	fatal.If(t, err)
	r, err := b.Compile(p)
	fatal.If(t, err)
	t.Cleanup(func() { r.Close() })
	fatal.If(t, r.Bind(0, images))
	fatal.If(t, r.Run())
	return p, r
}

func TestAFrozenLayerRunsInInferenceModeDuringTraining(t *testing.T) {
	images, team := noise(6*12), team.New(2)
	defer team.Close()
	for name, backend := range map[string]ir.Backend{"tape": tape.Backend{}, "engine": engine.Backend{Team: team}} {
		for _, text := range []string{frozen, strings.Replace(frozen, "freeze", "# freeze", 1)} {
			m := model(t, text, "frozen", 12)
			for _, p := range m.Parameters {
				if strings.HasSuffix(p.Path, "variance") {
					for i := range p.Data {
						p.Data[i] *= p.Data[i]
					}
				}
			}
			_, still := run(t, backend, m, graph.Request{Batch: 6}, images)
			codes := slices.Clone(still.Tap(0))
			before := slices.Clone(m.Parameters[4].Data)
			p, training := run(t, backend, m, graph.Request{Batch: 6, Training: true}, images)
			isFrozen := text == frozen
			expect.Equal(t, close(codes, training.Tap(0)), isFrozen, name, "codes in training are those of inference")
			expect.Equal(t, slices.Equal(before, m.Parameters[4].Data), isFrozen, name, "running means stand still")
			for _, b := range p.Parameters {
				if of := strings.HasPrefix(b.Path, "encoder.1."); of && isFrozen && b.Gradient != nil {
					t.Errorf("%s: %s is frozen and has a gradient", name, b.Path)
				}
			}
		}
	}
}

// A frozen layer within one or two blocks runs in inference mode, too.
func TestAFrozenLayerOfABlockRunsInInferenceModeDuringTraining(t *testing.T) {
	images, team := noise(6*12), team.New(2)
	defer team.Close()
	norm := `{ kind = "batch_norm" }, { kind = "dense", units = 12 }`
	for path, block := range map[string]string{"encoder.1.0.": norm, "encoder.1.0.0.": `{ kind = "residual", layers = [` + norm + `] }`} {
		for _, isFrozen := range []bool{true, false} {
			glob := path + "*"
			if !isFrozen {
				glob = path + "running_*" // scale and shift are trained, with the statistics of the batch
			}
			m := model(t, `
[model.block]
freeze = ["`+glob+`"]
encoder = [{ kind = "dense", units = 12 }, { kind = "residual", layers = [`+block+`] }, { kind = "dense", units = 4 }]
`, "block", 12)
			for _, p := range m.Parameters {
				for i, v := range p.Data {
					if strings.HasSuffix(p.Path, "variance") {
						p.Data[i] = v*v + 2
					}
				}
			}
			_, still := run(t, engine.Backend{Team: team}, m, graph.Request{Batch: 6}, images)
			codes := slices.Clone(still.Tap(0))
			p, training := run(t, engine.Backend{Team: team}, m, graph.Request{Batch: 6, Training: true}, images)
			expect.Equal(t, close(codes, training.Tap(0)), isFrozen, glob, "codes in training are those of inference")
			if !slices.ContainsFunc(p.Parameters, func(b graph.Binding) bool {
				return strings.HasPrefix(b.Path, "encoder.1.") && strings.HasSuffix(b.Path, "1.weight") && b.Gradient != nil
			}) {
				t.Errorf("%s: the block's dense layer is not trained", glob)
			}
		}
	}
}

// Layers without parameters draw noise in training, even in a block whose parameters are all frozen.
func TestAFrozenBlockStillDrawsNoise(t *testing.T) {
	frozen := `{ kind = "dense", units = 12 }, { kind = "dropout" }`
	for _, block := range []string{frozen, `{ kind = "residual", layers = [` + frozen + `] }`} {
		m := model(t, `
[model.block]
freeze = ["encoder.1.*"]
encoder = [{ kind = "dense", units = 12 }, { kind = "residual", layers = [`+block+`] }, { kind = "dense", units = 4 }]
`, "block", 12)
		for training, want := range map[bool]bool{true: true, false: false} {
			p, err := m.Program(graph.Request{Batch: 6, Training: training})
			fatal.If(t, err)
			expect.Equal(t, slices.ContainsFunc(p.Inputs, func(in graph.Input) bool { return in.Name == "encoder.1.noise" }), want, block, "training", training, "draws noise")
		}
	}
}

// close reports whether two slices are equal up to rounding.
func close(a, b []float32) bool {
	for i := range a {
		if d := a[i] - b[i]; d*d > 1e-10 {
			return false
		}
	}
	return len(a) == len(b)
}

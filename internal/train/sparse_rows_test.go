package train

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"tessera/config"
	"tessera/data"
	"tessera/internal/engine"
	"tessera/internal/engine/ir"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/parallel/team"
)

// dense compiles runners that do not say which rows of a gradient may differ from 0.
type dense struct{ ir.Backend }

func (d dense) Compile(p ir.Program) (ir.Runner[float32], error) {
	r, err := d.Backend.Compile(p)
	return struct{ ir.Runner[float32] }{r}, err
}

// tables declares a model with a table of words, of which a step reads a few rows. The text after it is the optimizer, or hooks.
const tables = `
[model.words]
encoder = [{ kind = "embedding", vocabulary = %d, units = %d }, { kind = "dense", units = 3, activation = "tanh" }]
decoder = [{ kind = "dense" }]
loss    = [{ kind = "mse" }]
train   = { epochs = 1000, batch = %d }
%s
`

// sixWords returns samples of six words, of which the first rows are frequent ones.
func sixWords(samples, vocabulary int) []float32 {
	r := rand.New(rand.NewPCG(3, 5))
	return lists.Of(samples*6, func(int) float32 { return float32(int(float64(vocabulary) * math.Pow(r.Float64(), 3))) })
}

// words returns a source of sixWords. The model reconstructs their numbers.
func words(t testing.TB, samples, vocabulary int) data.Source {
	source, err := data.FromFloats(sixWords(samples, vocabulary), []int{6}, nil)
	fatal.If(t, err)
	return source
}

// afterSteps returns all parameters and the optimizer's state after some steps.
func afterSteps(t *testing.T, spec *config.Model, threads, steps int, backend func(engine.Backend) ir.Backend) (values [][]float32, sparse bool) {
	t.Helper()
	members := team.New(threads)
	defer members.Close()
	s, splits, err := newSession(t.Context(), spec, Options{Backend: backend(engine.Backend{Team: members}), Team: members, Dirs: data.SearchDirs("")}, nil)
	fatal.If(t, err)
	defer s.close()
	fatal.If(t, s.learner.begin(t.Context(), splits, true))
	n := s.learner.(*network)
	for range steps {
		fatal.If(t, n.step())
		if s.progress.Position == s.images.Len() {
			s.progress.Epoch, s.progress.Position = s.progress.Epoch+1, 0
		}
	}
	for _, m := range n.stepper.trainable {
		sparse = sparse || n.stepper.sparse(m)
		values = append(append(values, m.Data), m.State...)
	}
	return values, sparse
}

// Rules that rest without a gradient update the touched rows alone, others the whole table, and all give the bits of dense steps.
func TestTouchedRowsGiveTheBitsOfDenseSteps(t *testing.T) {
	for text, want := range map[string]bool{
		`optimizer = { kind = "sgd", learning_rate = 1e-5 }`:                                                                                        true,
		`optimizer = { kind = "sgd", learning_rate = 1e-5, clip_norm = 0.01 }`:                                                                      true,
		`optimizer = { kind = "adagrad", learning_rate = 0.1 }`:                                                                                     true,
		`optimizer = { kind = "adam", learning_rate = 0.01, lazy = true }`:                                                                          true,
		`optimizer = { kind = "adam", learning_rate = 0.01 }`:                                                                                       false,
		`optimizer = { kind = "sgd", learning_rate = 1e-5, momentum = 0.9 }`:                                                                        false,
		`optimizer = { kind = "adagrad", learning_rate = 0.1, weight_decay = 0.1 }`:                                                                 false,
		"optimizer = { kind = \"sgd\", learning_rate = 1e-5 }\nhook = { average = {} }":                                                             false,
		"optimizer = { kind = \"sgd\", learning_rate = 1e-5 }\nconstraint = [{ kind = \"box\", on = \"encoder.0.weight\", min = -1.0, max = 1.0 }]": false,
	} {
		spec := model(t, fmt.Sprintf(tables, 400, 5, 7, text))
		spec.Dataset.Source = words(t, 30, 400)
		spec.Dataset.Validation = data.Validation{}
		oracle, _ := afterSteps(t, spec, 1, 100, func(b engine.Backend) ir.Backend { return dense{b} })
		for threads := 1; threads <= 3; threads++ {
			got, sparse := afterSteps(t, spec, threads, 100, func(b engine.Backend) ir.Backend { return b })
			expect.Equal(t, sparse, want, text, "touched rows alone")
			for i, values := range oracle {
				for j, v := range values {
					if math.Float32bits(got[i][j]) != math.Float32bits(v) {
						t.Fatalf("%s, %d threads: value %d[%d]: got %v, want %v", text, threads, i, j, got[i][j], v)
					}
				}
			}
		}
	}
}

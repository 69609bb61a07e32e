package page_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"tessera"
	"tessera/apps/show/doc"
	"tessera/apps/show/page"
	"tessera/attack"
	"tessera/attack/runs"
	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/losses"
	"tessera/metrics"
)

const offsetModel = `[model.m]
dataset = { name = "csv", file = %q, labels = "side", scale = "standardise", validation = 0 }
encoder = [{ kind = "dense", units = 1 }]
decoder = [{ kind = "dense" }]
head.class.layers = [{ kind = "dense", activation = "linear" }]
loss = [{ kind = "mse" }, { kind = "cross_entropy", on = "class" }]
train = { epochs = 30, batch = 20 }
`

// measuredWithOffset trains a model on two columns, the second of which has this offset, and returns all numbers that depend on samples: by
// metrics, attacks, the page, and of completed and decoded samples, from which the offset is subtracted in float64.
func measuredWithOffset(t *testing.T, offset float64) map[string][]float64 {
	t.Helper()
	dir := t.TempDir()
	text := "side,a,north\n"
	for i := range 120 {
		a, north := math.Mod(float64(i)*0.6180339887, 1), math.Round(4000*math.Mod(float64(i)*0.4142135623, 1))/1000-2
		side := "w"
		if north+0.4*a > 0.2 {
			side = "e"
		}
		text += fmt.Sprintf("%s,%.4f,%.3f\n", side, a, offset+north)
	}
	table, models := filepath.Join(dir, "table.csv"), filepath.Join(dir, "models.toml")
	for path, content := range map[string]string{table: text, models: fmt.Sprintf(offsetModel, table)} {
		fatal.If(t, os.WriteFile(path, []byte(content), 0o600))
	}
	must := func(err error) {
		t.Helper()
		fatal.If(t, err)
	}
	declared, err := tessera.Load(models)
	must(err)
	m, err := declared.Model("m")
	must(err)
	out := filepath.Join(dir, "run")
	run, err := tessera.Train(t.Context(), m, tessera.Options{Threads: 1, Out: out})
	must(err)
	defer run.Close()
	if exact := offset != 0; run.Scaling().IsExact() != exact {
		t.Fatalf("offset %g: the scaling is exact: %v", offset, !exact)
	}

	all := map[string][]float64{}
	chosen, err := metrics.Select("mse", "accuracy", "robustness")
	must(err)
	result, err := run.Evaluate(t.Context(), chosen)
	must(err)
	for _, name := range []string{"mse", "accuracy", "robust_accuracy", "adversarial_risk"} {
		v, ok := result.Number(name)
		if !ok {
			t.Fatalf("%s is missing", name)
		}
		all[name] = []float64{v}
	}
	ball := attack.Ball{Norm: attack.LInf, Epsilon: 0.1}
	j, err := runs.Judge(t.Context(), run, runs.HeadAttack{Trials: []attack.Trial{{Attack: &attack.PGD{Steps: 5}, Ball: ball}, {Attack: &attack.Square{Queries: 50}, Ball: ball}}})
	must(err)
	all["clean"] = []float64{j.Accuracy.Value, j.Risk}
	for _, trial := range j.Trials {
		all[trial.Method] = []float64{trial.Accuracy.Value, trial.Risk}
	}
	curve := j.Trials[1].Curve
	all["curve"] = []float64{curve[len(curve)-1].Accuracy}
	expect.Equal(t, curve[len(curve)-1].Accuracy, j.Trials[1].Accuracy.Value, "offset", offset, "after all queries the accuracy")

	one, err := page.ReadRun(t.Context(), out, options)
	must(err)
	for _, s := range one.Samples {
		all["page"] = append(all["page"], s.MSE, s.Code[0])
	}
	for _, block := range one.Sections {
		group, ok := block.(*doc.Group)
		if !ok || group.Title != "Head class" {
			continue
		}
		confusion := group.Blocks[1].(*doc.Table)
		for _, row := range confusion.Rows {
			for _, cell := range row[1:] {
				all["confusion"] = append(all["confusion"], float64(cell.(doc.Shaded).Count))
			}
		}
	}

	images, err := run.Images(t.Context())
	must(err)
	coder := run.Centred()
	restored := func(values []float32) (second []float64) {
		for i, v := range values {
			wide := float64(v)
			if run.Scaling().IsExact() {
				wide = run.Scaling().Restore(values)[i]
			}
			if i%2 == 1 {
				second = append(second, wide-offset)
			}
		}
		return second
	}
	given, err := coder.Given(images, coder.Columns(losses.Output))
	must(err)
	decoded, err := coder.ValueOf(losses.Output, given)
	must(err)
	all["output"] = restored(decoded)
	values := slices.Clone(given[data.ImagesColumn])
	for i := range 20 {
		values[4*i+1] = float32(math.NaN())
	}
	given[data.ImagesColumn] = values
	completed, err := coder.Complete(given)
	must(err)
	all["completed"] = restored(completed)
	return all
}

// A table with and without an offset of a column, which float32 would round to steps of 0.5, gives the same numbers everywhere.
func TestAnOffsetOfAColumnChangesNoNumber(t *testing.T) {
	want, got := measuredWithOffset(t, 0), measuredWithOffset(t, 5_400_000)
	for name, values := range want {
		if len(values) == 0 || len(got[name]) != len(values) {
			t.Errorf("%s: got %d numbers, want %d", name, len(got[name]), len(values))
			continue
		}
		for i, v := range values {
			expect.Near(t, got[name][i], v, 1e-3*max(1, math.Abs(v)), name, i)
		}
	}
}

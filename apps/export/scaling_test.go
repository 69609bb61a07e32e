package export_test

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"tessera"
	"tessera/apps/export"
	"tessera/config"
	"tessera/data"
	"tessera/internal/engine"
	"tessera/internal/fatal"
	"tessera/internal/parallel/team"
	"tessera/internal/volume"
	"tessera/metrics"
)

// The inputs and outputs of an exported model are in the scale of the data set, because the scaling of the run is part
// of the graph.
func TestScalingsAgreeInONNXRuntime(t *testing.T) {
	o := startONNXRuntime(t)
	threads := team.New(1)
	defer threads.Close()
	steps := map[string]data.Step{"log1p": &data.Log1p{}, "l1": &data.RowNorm{Norm: "l1", Target: 20}, "l2": &data.RowNorm{Norm: "l2", Target: 3}, "max": &data.RowNorm{Norm: "max", Target: 2},
		"tfidf": &data.TFIDF{Norm: "l2"}, "sublinear": &data.TFIDF{Norm: "none", Sublinear: true}, "ppmi": &data.PPMI{}}
	for _, kind := range slices.Concat([]string{"plain", "clipped", "whitened"}, slices.Sorted(maps.Keys(steps))) {
		r := oneLayer(t, "dense", `units = 5, activation = "sigmoid"`)
		n := volume.Of(r.Shape())
		r.Scaling = &data.Scaling{Shift: uniform(1, n), Factor: uniform(2, n), Clip: kind == "clipped"}
		for i := range r.Scaling.Factor {
			r.Scaling.Factor[i] += 0.5
		}
		x := uniform(3, 4*n)
		if step := steps[kind]; step != nil {
			switch s := step.(type) {
			case *data.TFIDF:
				s.IDF = uniform(6, n)
			case *data.PPMI:
				s.Columns = uniform(6, n)
				for i := range s.Columns {
					s.Columns[i] -= 5
				}
			}
			r.Scaling.Steps = data.Scale{step, &data.Log1p{}}
			clear(x[n : 2*n])
			for i := range x[2*n:] { // some zeros
				x[2*n+i] = max(0, x[2*n+i])
			}
		}
		if kind == "whitened" { // by symmetric matrices, which need not be inverse to each other
			for i, m := range []*[]float32{&r.Scaling.Mix, &r.Scaling.Unmix} {
				*m = uniform(uint64(4+i), n*n)
				for at := range *m {
					(*m)[at] = (*m)[at/n+at%n*n]
				}
			}
		}
		var file bytes.Buffer
		fatal.If(t, export.Write(&file, r, "onnx", ""))
		path, err := o.save("scaled-"+kind, file.Bytes())
		fatal.If(t, err)
		got, err := o.run(path, "input", append([]int{4}, r.Shape()...), x)
		fatal.If(t, err)
		coder := r.Coder(engine.Backend{Team: threads}).(metrics.ValueCoder)
		for _, name := range []string{"code", "output"} {
			want, err := coder.Value(name, r.Scaling.Applied(x))
			fatal.If(t, err)
			if want = slices.Clone(want); name == "output" {
				r.Scaling.Undo(want)
			}
			if d := difference(got[name].floats(), want); !(d <= tolerance) {
				t.Errorf("%s: %s differs by %g", kind, name, d)
			}
		}
	}
}

// trained trains the model m of a text, and returns its run and the path of its ONNX file.
func (o *onnxRuntime) trained(t *testing.T, name, models string) (run *tessera.Run, saved string) {
	t.Helper()
	f, err := config.Load("models of the test", []byte(models))
	fatal.If(t, err)
	m, err := f.Model("m")
	fatal.If(t, err)
	run, err = tessera.Train(t.Context(), m, tessera.Options{Out: filepath.Join(t.TempDir(), "run"), Threads: 1})
	fatal.If(t, err)
	t.Cleanup(func() { run.Close() })
	r, err := export.Open(run.Path)
	fatal.If(t, err)
	var file bytes.Buffer
	fatal.If(t, export.Write(&file, r, "onnx", ""))
	saved, err = o.save(name, file.Bytes())
	fatal.If(t, err)
	return run, saved
}

// A drawn column that holds images is scaled like the images, and an output that is compared with another value is not.
func TestScalingsOfColumnsAgreeInONNXRuntime(t *testing.T) {
	o := startONNXRuntime(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "samples.npy")
	fatal.If(t, data.WriteImages(path, []int{6}, uniform(8, 40*6)))
	run, saved := o.trained(t, "columns", fmt.Sprintf(`[model.m]
dataset = { name = "npy", images = %q, scale = "standardise" }
encoder = [{ kind = "dense", units = 4, activation = "tanh" }]
loss    = [{ kind = "mse" }, { kind = "mse", on = "far", against = "code" }]
train   = { epochs = 2, batch = 20 }
head.far = { from = "other", layers = [{ kind = "dense", units = 4 }] }

[model.m.column.other]
kind = "other"
`, filepath.ToSlash(path)))
	x, other := uniform(3, 5*6), uniform(4, 5*6)
	got, err := o.run(saved, "input", []int{5, 6}, x, packed("column.other", []int{5, 6}, other))
	fatal.If(t, err)
	across, saved := o.trained(t, "across", fmt.Sprintf(`[model.m]
dataset = { name = "npy", images = %q, scale = "standardise" }
encoder = [{ kind = "dense", units = 6, activation = "tanh" }]
loss    = [{ kind = "mse", against = "code" }]
train   = { epochs = 2, batch = 20 }
`, filepath.ToSlash(path)))
	made, err := o.run(saved, "input", []int{5, 6}, x)
	fatal.If(t, err)
	outputs, err := across.Value("output", x)
	fatal.If(t, err)
	if d := difference(made["output"].floats(), outputs); !(d <= tolerance) {
		t.Errorf("the output differs by %g", d)
	}
	want, err := run.ValueOf("far", map[string][]float32{"images": x, "other": other})
	fatal.If(t, err)
	if d := difference(got["far"].floats(), want); !(d <= tolerance) {
		t.Errorf("the head differs by %g", d)
	}
}

// The graph takes missing values as the run does: NaN, and what the mask does not observe. The first value is missing in the training; of
// the others the training has the means.
func TestMissingValuesAgreeInONNXRuntime(t *testing.T) {
	o := startONNXRuntime(t)
	for i, settings := range []string{`, scale = "standardise"`, `, scale = "minmax"`, ``} {
		dir := t.TempDir()
		path := filepath.Join(dir, "samples.npy")
		samples := uniform(8, 40*3)
		for k := 0; k < len(samples); k += 9 {
			samples[k] = float32(math.NaN())
		}
		fatal.If(t, data.WriteImages(path, []int{3}, samples))
		run, saved := o.trained(t, fmt.Sprint("missing-", i), fmt.Sprintf(`[model.m]
dataset = { name = "npy", images = %q, missing = "nan"%s }
encoder = [{ kind = "dense", units = 4, activation = "tanh", from = ["images", "observed"] }]
train   = { epochs = 2, batch = 20 }
`, filepath.ToSlash(path), settings))
		nan := float32(math.NaN())
		x := []float32{0.1, 0.2, 0.3, nan, 0.2, 0.3, 0.1, nan, 0.3, 999, 0.2, 0.3, nan, nan, nan}
		observed := []float32{1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 0, 0, 1}
		got, err := o.run(saved, "input", []int{5, 3}, x, packed("column.observed", []int{5, 3}, observed))
		fatal.If(t, err)
		for _, name := range []string{"code", "output"} {
			want, err := run.ValueOf(name, map[string][]float32{"images": x, "observed": observed})
			fatal.If(t, err)
			if d := difference(got[name].floats(), want); !(d <= tolerance) {
				t.Errorf("%s: %s differs by %g", settings, name, d)
			}
		}
	}
}

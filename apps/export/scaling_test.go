package export_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"tessera"
	"tessera/apps/export"
	"tessera/config"
	"tessera/data"
	"tessera/internal/engine"
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
	for _, kind := range []string{"plain", "clipped", "whitened"} {
		r := oneLayer(t, "dense", `units = 5, activation = "sigmoid"`)
		n := volume.Of(r.Shape())
		r.Scaling = &data.Scaling{Shift: uniform(1, n), Factor: uniform(2, n), Clip: kind == "clipped"}
		for i := range r.Scaling.Factor {
			r.Scaling.Factor[i] += 0.5
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
		if err := export.Write(&file, r, "onnx", ""); err != nil {
			t.Fatal(err)
		}
		path, err := o.save("scaled-"+kind, file.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		x := uniform(3, 4*n)
		got, err := o.run(path, "input", append([]int{4}, r.Shape()...), x)
		if err != nil {
			t.Fatal(err)
		}
		coder := r.Coder(engine.Backend{Team: threads}).(metrics.ValueCoder)
		for _, name := range []string{"code", "output"} {
			want, err := coder.Value(name, r.Scaling.Applied(x))
			if err != nil {
				t.Fatal(err)
			}
			if want = slices.Clone(want); name == "output" {
				r.Scaling.Undo(want)
			}
			if d := difference(got[name].floats(), want); !(d <= tolerance) {
				t.Errorf("%s: %s differs by %g", kind, name, d)
			}
		}
	}
}

// A drawn column that holds images is scaled like the images.
func TestScalingsOfColumnsAgreeInONNXRuntime(t *testing.T) {
	o := startONNXRuntime(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "samples.npy")
	if err := data.WriteImages(path, []int{6}, uniform(8, 40*6)); err != nil {
		t.Fatal(err)
	}
	f, err := config.Load("models of the test", fmt.Appendf(nil, `[model.m]
dataset = { name = "npy", images = %q, scale = "standardise" }
encoder = [{ kind = "dense", units = 4, activation = "tanh" }]
loss    = [{ kind = "mse" }, { kind = "mse", on = "far", against = "code" }]
train   = { epochs = 2, batch = 20 }
head.far = { from = "other", layers = [{ kind = "dense", units = 4 }] }

[model.m.column.other]
kind = "other"
`, filepath.ToSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	m, err := f.Model("m")
	if err != nil {
		t.Fatal(err)
	}
	run, err := tessera.Train(t.Context(), m, tessera.Options{Out: filepath.Join(dir, "run"), Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	r, err := export.Open(run.Path)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := export.Write(&file, r, "onnx", ""); err != nil {
		t.Fatal(err)
	}
	saved, err := o.save("columns", file.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	x, other := uniform(3, 5*6), uniform(4, 5*6)
	got, err := o.run(saved, "input", []int{5, 6}, x, packed("column.other", []int{5, 6}, other))
	if err != nil {
		t.Fatal(err)
	}
	want, err := run.ValueOf("far", map[string][]float32{"images": x, "other": other})
	if err != nil {
		t.Fatal(err)
	}
	if d := difference(got["far"].floats(), want); !(d <= tolerance) {
		t.Errorf("the head differs by %g", d)
	}
}

package export_test

import (
	"bytes"
	"slices"
	"testing"

	"tessera/data"
	"tessera/engine"
	"tessera/export"
	"tessera/internal/volume"
	"tessera/metrics"
	"tessera/parallel/team"
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

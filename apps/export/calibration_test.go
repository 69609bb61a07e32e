package export_test

import (
	"bytes"
	"testing"

	"tessera/apps/export"
	"tessera/internal/engine"
	"tessera/internal/fatal"
	"tessera/internal/parallel/team"
	"tessera/internal/volume"
	"tessera/metrics"
	"tessera/posthoc"
)

// The ONNX graph includes the calibration of a head. The files of other formats contain its tensors.
func TestCalibrationsAgreeInONNXRuntime(t *testing.T) {
	spec, err := shipped(t).Model("classifier")
	fatal.If(t, err)
	r := made(t, spec)
	scales, biases := make([]float64, 10), make([]float64, 10)
	for k := range scales {
		scales[k], biases[k] = 0.5+0.1*float64(k), float64(k%3)
	}
	r.PostHoc = map[string]posthoc.Head{"class": {Calibration: &posthoc.Calibration{Method: posthoc.Platt, Fitted: &posthoc.PlattScaling{Scales: scales, Biases: biases}}}}
	var npz bytes.Buffer
	if err := export.Write(&npz, r, "npz", ""); err != nil || !bytes.Contains(npz.Bytes(), []byte("calibration/class/scale")) {
		t.Errorf("npz: %v, or the calibration is missing", err)
	}
	var file bytes.Buffer
	fatal.If(t, export.Write(&file, r, "onnx", ""))
	o := startONNXRuntime(t)
	path, err := o.save("calibrated", file.Bytes())
	fatal.If(t, err)
	x := uniform(3, 4*volume.Of(r.Shape()))
	got, err := o.run(path, "input", append([]int{4}, r.Shape()...), x)
	fatal.If(t, err)
	threads := team.New(1)
	defer threads.Close()
	want, err := r.Coder(engine.Backend{Team: threads}).(metrics.ValueCoder).Value("class", x)
	fatal.If(t, err)
	if d := difference(got["class"].floats(), want); !(d <= tolerance) {
		t.Errorf("the calibrated logits differ by %g", d)
	}
}

package tessera_test

import (
	"context"
	"io"
	"testing"

	"tessera"
	"tessera/config"
	"tessera/data/morph"
	"tessera/graph"
	"tessera/graph/tape"
	"tessera/metrics"
)

// maxPlus returns max-plus auto-encoders of the swimmer, one trained and one as it is drawn, and images.
func maxPlus(t *testing.T, sets ...string) (coders map[string]metrics.Coder, images []float32) {
	t.Helper()
	var parsed []config.Set
	for _, argument := range append(sets, "dataset=swimmer", "optimizer.kind=adam", "optimizer.learning_rate=0.01", "train.epochs=5") {
		s, err := config.ParseSet(argument)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, s)
	}
	m, err := tessera.Shipped().Model("shallow-max-plus", parsed...)
	if err != nil {
		t.Fatal(err)
	}
	run, err := tessera.Train(context.Background(), m, tessera.Options{Out: t.TempDir() + "/run", Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = run.Close() })
	all, err := run.Images(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	drawn, err := graph.New(m, run.Shape())
	if err != nil {
		t.Fatal(err)
	}
	return map[string]metrics.Coder{"trained": run, "untrained": graph.NewCoder(drawn, tape.Backend{})}, all.Float32()[:50*all.Pixels()]
}

// Flat dilations commute with maxima and with adding a number: on dilated atoms the layer gives just its dilated output,
// whatever its weights are.
func TestMaxPlusDecodersDilateWithoutAnErrorTrainedOrNot(t *testing.T) {
	for _, constraint := range []string{`constraint=[]`, `constraint=[{kind="nonneg"}]`, `constraint=[{kind="box"}]`} {
		coders, images := maxPlus(t, constraint)
		for name, coder := range coders {
			r, err := metrics.Evaluate(context.Background(), coder, metrics.Sample{Images: images}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if e, ok := r.Number("max_approx"); !ok || !(e > 1e-4) { // the control: to originals there is an error
				t.Errorf("%s, %s: max_approx is %v", name, constraint, e)
			}
			for _, radius := range []int{1, 2, 4} {
				m := &metrics.MaxApprox{Morphology: metrics.Morphology{Operator: morph.Dilation, Radius: radius}}
				r, err := metrics.Evaluate(context.Background(), coder, metrics.Sample{Images: images}, metrics.Selection{{Metric: m}})
				if err != nil {
					t.Fatal(err)
				}
				if e, ok := r.Number("max_approx_reconstructed"); !ok || e > 1e-12 {
					t.Errorf("%s, %s, radius %d: error %v, want 0", name, constraint, radius, e)
				}
			}
			if c, ok := coder.(io.Closer); ok && name == "untrained" {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

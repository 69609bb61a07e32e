package engine

import (
	"testing"

	G "gorgonia.org/gorgonia"
	"tessera/engine/ir"
	"tessera/ops"
)

// TestBandsAgreeWithTheTapeMachine goes through chains, sums over the batch and convolutions in several parts per thread.
func TestBandsAgreeWithTheTapeMachine(t *testing.T) {
	const batch, threads = 48, 2
	geometry := ops.Convolution{In: [3]int{32, 32, 8}, Out: [3]int{32, 32, 8}, Kernel: 3, Stride: 1, Dilation: 1, Groups: 1, Top: 1, Left: 1}
	build := func(p *program) {
		x, w := p.input("x", batch, 32, 32, 8), p.parameter("w", geometry.Filters()...)
		y := must(ops.Ramp(must(geometry.Convolve(x, w)), 1, 0.1))
		z := must(geometry.Convolve(y, p.parameter("v", geometry.Filters()...)))
		p.tap("over the batch", must(G.Sum(z, 0)))
		var c ops.Chain
		p.loss(c.Mean(c.Square(c.Flatten(z))))
	}
	plan := compare[float64](t, threads, 1e-12, build)
	parts := 0
	for _, ph := range plan.phases {
		for _, b := range ph.bands {
			if len(b.steps) > 1 {
				parts = max(parts, batch/threads/b.units)
			}
		}
	}
	if parts < 2 {
		t.Error("no band is gone through in parts: the test shows nothing")
	}
	compare[float32](t, 1, 1e-5, build)
}

func TestAStepIsDelayedToThePhaseOfItsOnlyReaders(t *testing.T) {
	v := func(id int) *ir.Value { return &ir.Value{ID: id, Op: ir.Product{}, Shape: []int{64, 64}} }
	x, a, b, c, d := v(0), v(1), v(2), v(3), v(4)
	early := &step{name: "early", units: 64, divisible: true, reads: []reading{{x, rows}}, writes: []reading{{a, rows}}}
	other := &step{name: "other", units: 8, reads: []reading{{x, whole}}, writes: []reading{{b, rows}}}
	reader := &step{name: "reader", units: 64, divisible: true, reads: []reading{{a, rows}, {b, whole}}, writes: []reading{{c, rows}}}
	mixes := &step{name: "mixes", units: 64, divisible: true, reads: []reading{{c, whole}}, writes: []reading{{d, rows}}}
	phases := schedule([]*step{early, other, reader, mixes})
	if len(phases) != 3 || len(phases[0].shared) != 1 || phases[0].shared[0] != other {
		t.Fatalf("%+v", phases)
	}
	if list := phases[1].bands; len(list) != 1 || len(list[0].steps) != 2 || list[0].steps[0] != early || list[0].steps[1] != reader {
		t.Errorf("%+v", list)
	}
	if list := phases[2].bands; len(list) != 1 || list[0].units != 64 {
		t.Errorf("%+v", list)
	}
}

func TestAStepThatSeveralPhasesReadStays(t *testing.T) {
	v := func(id int) *ir.Value { return &ir.Value{ID: id, Op: ir.Product{}, Shape: []int{64, 64}} }
	x, a, b, c := v(0), v(1), v(2), v(3)
	early := &step{name: "early", units: 64, divisible: true, reads: []reading{{x, rows}}, writes: []reading{{a, rows}}}
	now := &step{name: "now", units: 64, divisible: true, reads: []reading{{a, rows}}, writes: []reading{{b, rows}}}
	later := &step{name: "later", units: 64, divisible: true, reads: []reading{{a, rows}, {b, whole}}, writes: []reading{{c, rows}}}
	phases := schedule([]*step{early, now, later})
	if len(phases) != 2 || len(phases[0].shared) != 2 || phases[0].shared[0] != early {
		t.Errorf("%+v", phases)
	}
}

package ops_test

import (
	"math"
	"testing"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/laws/gradcheck"
)

func TestSelectPicksWhatAMaskLeaves(t *testing.T) {
	run, err := gradcheck.Compile(func(b *gradcheck.Builder[float64]) (*gorgonia.Node, error) {
		return ops.Select(b.Leaf("mask", []int{3, 4}, []float64{0, 1, 0, 1, 1, 0, 0, 1, 0, 0, 0, 1}, true), 2)
	}, false)
	fatal.If(t, err)
	fatal.If(t, run.Run())
	got := run.Output()
	want := []float64{1, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0}
	expect.Slice(t, got[:16], want)
	for _, v := range got[16:] { // the third row has three zeros
		if !math.IsNaN(v) {
			t.Errorf("a row with another number of zeros gives %v", got[16:])
			break
		}
	}
}

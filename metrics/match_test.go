package metrics_test

import (
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/metrics"
)

// The atoms of a model are matched with a copy of the model that has another order, other lengths and other signs, and one
// more atom. This atom has no match.
func TestAtomsAreMatchedWhateverTheirOrderSignAndLength(t *testing.T) {
	first := &metrics.Atoms{Shape: []int{2, 2}, Count: 3, Values: []float32{1, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 3}}
	second := &metrics.Atoms{Shape: []int{2, 2}, Count: 4, Values: []float32{0, 0, 0, -1, 1, 1, 1, 1, 5, 0, 0, 0, 0, 4, 2, 0}}
	pairs, err := metrics.MatchAtoms(first, second)
	fatal.If(t, err)
	want := map[int]int{0: 2, 1: 3, 2: 0}
	if len(pairs) != len(want) {
		t.Fatalf("got %v", pairs)
	}
	for _, p := range pairs {
		expect.Equal(t, want[p.First], p.Second, "atom", p.First, "is matched with")
		expect.Near(t, p.Cosine, 1, 1e-6, "atom", p.First, "is matched with")
	}
}

func TestAtomsOfDifferentSizesAreNotMatched(t *testing.T) {
	one := &metrics.Atoms{Shape: []int{2, 2}, Count: 1, Values: make([]float32, 4)}
	other := &metrics.Atoms{Shape: []int{3, 1}, Count: 1, Values: make([]float32, 3)}
	for _, pair := range [][2]*metrics.Atoms{{one, other}, {one, nil}, {nil, one}} {
		expect.AnyError(t, expect.Err(metrics.MatchAtoms(pair[0], pair[1])), pair, "are matched")
	}
}

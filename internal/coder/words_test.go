package coder

import (
	"math"
	"slices"
	"testing"

	"tessera/internal/expect"
)

// The number is that of scipy.stats.spearmanr; cosines and ratings have ties.
func TestAgreementWithRatingsOfPairs(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "zero"}
	w := Words{Vectors: []float32{1, 0, 1, 1, 0, 1, -1, 1, 3, 1, 0, 0}, Width: 2, Name: func(i int) string { return names[i] },
		Index: func(word string) (int, bool) { i := slices.Index(names, word); return i, i >= 0 }}
	pairs := []Rated{{"a", "b", 7}, {"a", "c", 2}, {"no", "zero", 3}, {"a", "d", 1}, {"b", "e", 7}, {"no", "a", 9}, {"c", "d", 5}, {"a", "a", 10}, {"a", "e", 2}}
	got := w.Agreement(pairs)
	expect.Near(t, got.Spearman, 0.6881023532039754, 1e-12)
	expect.Equal(t, got.Pairs, 7)
	expect.Slice(t, got.Unknown, []string{"no", "zero"})
	expect.Equal(t, math.IsNaN(w.Agreement(pairs[:1]).Spearman), true, "of one pair")
}

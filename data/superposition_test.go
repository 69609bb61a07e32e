package data

import (
	"testing"

	"tessera/internal/expect"
)

// present returns which features are active in samples of orthogonal directions, whose inner products are the magnitudes.
func present(t *testing.T, set *Set) (active [][]bool) {
	t.Helper()
	x, width := set.Train.Float32(), set.Train.Pixels()
	for i := range set.Train.Len() {
		marks := make([]bool, len(set.Parts))
		for k, d := range set.Parts {
			product := 0.0
			for j, v := range x[i*width : (i+1)*width] {
				product += float64(v) * float64(d[j])
			}
			marks[k] = product > 0.3
		}
		active = append(active, marks)
	}
	return active
}

func TestFeaturesInSuperpositionAreCorrelatedInGroups(t *testing.T) {
	s := &Superposition{Features: 4, Values: 4000, Count: 4000, Active: 1, Group: 2, Correlation: 0.6, Noise: 0.001, Seed: 2}
	set := load(t, s)
	counts, both := make([]float64, 4), map[[2]int]float64{}
	for _, marks := range present(t, set) {
		for k, on := range marks {
			if on {
				counts[k]++
				for l := range k {
					if marks[l] {
						both[[2]int{l, k}]++
					}
				}
			}
		}
	}
	for k, n := range counts {
		expect.Near(t, n/4000, 0.25, 0.03, "feature", k, "is active in", n/4000, "of the samples")
	}
	// the chance that two normals of correlation 0.6 both exceed their upper quartile is 0.1345 (scipy.stats.multivariate_normal)
	for pair, want := range map[[2]int]float64{{0, 1}: 0.1345, {2, 3}: 0.1345, {0, 2}: 0.0625, {1, 3}: 0.0625} {
		expect.Near(t, both[pair]/4000, want, 0.015, "features", pair, "are both active in")
	}
	s.Count = 10
	expect.Equal(t, load(t, s).Train.Float32()[9*4000], set.Train.Float32()[9*4000], "a smaller set is not the beginning of a larger one")
}

func TestChildrenImplyTheirParents(t *testing.T) {
	set := load(t, &Hierarchy{Parents: 3, Children: 2, Values: 4000, Count: 3000, Active: 1.5, Implied: 0.8, Noise: 0.001, Seed: 2})
	parents, children := 0.0, 0.0
	for i, marks := range present(t, set) {
		for k := range 3 {
			first, second := marks[3+2*k], marks[4+2*k]
			if first && second || (first || second) && !marks[k] {
				t.Fatalf("sample %d: parent %d %v, children %v and %v", i, k, marks[k], first, second)
			}
			if marks[k] {
				parents++
			}
			if first || second {
				children++
			}
		}
	}
	expect.Near(t, parents/3000, 1.5, 0.05)
	expect.Near(t, children/parents, 0.8, 0.015)
	expect.Equal(t, set.Kinds[2], ParentKind, "kinds", set.Kinds)
	expect.Equal(t, set.Kinds[3], ChildKind, "kinds", set.Kinds)
}

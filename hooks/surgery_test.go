package hooks

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// operated returns the gradients of a step before and after the hook. The gradients before are the sums of terms and others.
func operated(t *testing.T, h *Surgery, terms []TermGradient, others [][]float32) (before, after [][]float32) {
	t.Helper()
	g := &Gradients{Of: newFake(t, make([]float32, 4)).parameters[:len(others)], Terms: terms}
	for k, v := range others {
		sum := slices.Clone(v)
		for _, of := range terms {
			for e, x := range of.Values[k] {
				sum[e] += x
			}
		}
		g.Values = append(g.Values, sum)
		before = append(before, slices.Clone(sum))
	}
	active, err := h.Attach(newFake(t, make([]float32, 4)))
	fatal.If(t, err)
	fatal.If(t, active.Gradients(g))
	return before, g.Values
}

// The expected values are computed in float64 by the formula of Yu et al., in the order of the hook. The second term depends
// on one parameter, the third on the other, and a fourth term is not named.
func TestSurgeryRemovesConflictsInPairs(t *testing.T) {
	terms := []TermGradient{
		{"a", [][]float32{{1, 2, -1}, {-2, 0.5}}},
		{"b", [][]float32{{-2, 1, 3}, nil}},
		{"c", [][]float32{nil, {1, 1.5}}},
		{"d", [][]float32{{-9, -9, -9}, {-9, -9}}},
	}
	flat := [][]float64{{1, 2, -1, -2, 0.5}, {-2, 1, 3, 0, 0}, {0, 0, 0, 1, 1.5}}
	both := func(i, j, e int) bool { return terms[i].Values[e/3] != nil && terms[j].Values[e/3] != nil }
	random, want := newFake(t, make([]float32, 4)).Random(0), make([]float64, 5)
	for i := range flat {
		p := slices.Clone(flat[i])
		for _, j := range random.Perm(3) {
			product, square := 0.0, 0.0
			for e := range p {
				if both(i, j, e) {
					product, square = product+p[e]*flat[j][e], square+flat[j][e]*flat[j][e]
				}
			}
			for e := range p {
				if j != i && product < 0 && both(i, j, e) {
					p[e] -= product / square * flat[j][e]
				}
			}
		}
		for e := range p {
			want[e] += p[e]
		}
	}
	_, got := operated(t, &Surgery{Terms: []string{"a", "b", "c"}}, terms, [][]float32{{0.5, 0, 0}, {0, 0}})
	for e, v := range slices.Concat(got...) {
		w := want[e] - 9
		if e == 0 {
			w += 0.5
		}
		expect.Near(t, float64(v), w, 1e-5, "value", e)
	}
}

func TestSurgeryWithoutConflictChangesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	draw := func() (list []float32) {
		for range 50 {
			list = append(list, r.Float32())
		}
		return list
	}
	terms := []TermGradient{{"a", [][]float32{draw()}}, {"b", [][]float32{draw()}}, {"c", [][]float32{draw()}}}
	before, after := operated(t, &Surgery{}, terms, [][]float32{draw()})
	if !slices.EqualFunc(before, after, slices.Equal) {
		t.Errorf("got %v, want %v", after, before)
	}
}

// A projection on a gradient that has almost vanished is finite: its factor is too large for float32, the correction is not.
func TestAProjectionOnASmallGradientIsFinite(t *testing.T) {
	p, g := [][]float32{{-1, 1}}, [][]float32{{1e-42, 0}}
	product, square := products(p, g)
	addTo(p, g, -product/square)
	if want := []float32{0, 1}; math.Abs(float64(p[0][0])) > 1e-6 || p[0][1] != want[1] {
		t.Errorf("got %v, want %v", p[0], want)
	}
}

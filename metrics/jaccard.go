package metrics

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sort"

	"tessera/internal/parallel/team"
)

// JaccardImages is the number of images over which the study averages its Jaccard index. It uses the first images of the
// sample.
const JaccardImages = 1000

func init() {
	Registry.Register("jaccard", "overlap of the weighted atoms", func() Metric { return &Jaccard{Dilation()} })
}

// Jaccard measures how much the weighted atoms of a sample overlap, before and after a morphological operator on the atoms, as in the study: the mean
// over all pairs of atoms, then over the first [JaccardImages] samples. Two atoms of zeros have the index 0, and fewer than two atoms as well.
type Jaccard struct{ Morphology }

func (*Jaccard) Describe() Description {
	return Description{
		Measures: []Measure{
			{Name: "jaccard", Better: Lower, Doc: "grey-scale Jaccard index of the weighted atoms \\|h_j w_j\\|, Σ min(A, B) / Σ max(A, B). Mean over all pairs " +
				"and the first 1000 samples; 0 for disjoint atoms. Only if every value of a code weighs one atom"},
			{Name: "jaccard_dilated", Better: Lower, Doc: "`jaccard` of the dilated atoms (or of the atoms after another `operator`)"},
		},
		Reads: ReadsCodes | ReadsSums | ReadsPictures, ScaleFree: true, Ordered: true, OnRequest: true,
	}
}

func (m *Jaccard) Start(s *Subject) (Meter, error) {
	operated, err := s.Atoms.Apply(m.Morphology)
	return &jaccardMeter{atoms: s.Atoms, operated: operated}, err
}

type jaccardMeter struct {
	atoms, operated *Atoms
	codes           []float32 // codes of the first images
}

func (m *jaccardMeter) Add(b *Batch) error {
	m.codes = append(m.codes, b.Codes[:min(len(b.Codes), JaccardImages*m.atoms.Count-len(m.codes))]...)
	return nil
}

func (m *jaccardMeter) Values(context.Context) ([]Value, error) {
	before, err := meanJaccard(m.atoms, m.codes)
	if err != nil {
		return nil, err
	}
	after, err := meanJaccard(m.operated, m.codes)
	return []Value{Number(before), Number(after)}, err
}

// meanJaccard returns the mean Jaccard index of the atoms weighted by the codes (n x atoms).
//
// For one pair, sum_n min(alpha a_n, beta b_n) depends on the weights alpha, beta only through the set of pixels with a_n/b_n
// <= beta/alpha, for which the minimum is alpha a_n. The pixels of a pair are therefore sorted once by a_n/b_n, with running
// sums of both atoms, and each image costs one binary search instead of a pass over the pixels.
func meanJaccard(atoms *Atoms, codes []float32) (float64, error) {
	k := atoms.Count
	n, err := rowCount(codes, max(k, 1))
	if err != nil {
		return 0, fmt.Errorf("%w (one value per atom)", err)
	}
	if k < 2 || n == 0 {
		return 0, nil
	}
	weights := byUnit(codes, k)
	rows := make([]float64, k) // the sum over pairs (i, j > i) of each i
	team.For(k-1, 1, func(i, _ int) {
		var o overlap
		for j := i + 1; j < k; j++ {
			o.set(atoms.row(i), atoms.row(j))
			rows[i] += o.sum(weights[i*n:(i+1)*n], weights[j*n:(j+1)*n])
		}
	})
	return mean(rows, n*k*(k-1)/2), nil
}

// byUnit returns |codes| transposed: the codes of one unit are contiguous.
func byUnit(codes []float32, units int) []float64 {
	n := len(codes) / units
	out := make([]float64, len(codes))
	for i, v := range codes {
		out[i%units*n+i/units] = math.Abs(float64(v))
	}
	return out
}

func (a *Atoms) row(i int) []float32 { return a.Values[i*a.Pixels() : (i+1)*a.Pixels()] }

// overlap is one pair of atoms, prepared for arbitrary weights. Only pixels where both atoms are non-zero can overlap.
type overlap struct {
	totalA, totalB float64 // |a|_1, |b|_1
	common         []pixelPair
	ratios         []float64 // a/b of the common pixels, ascending
	upToA          []float64 // upToA[m]: sum of a over the m pixels with the smallest ratios
	fromB          []float64 // fromB[m]: sum of b over the other pixels
}

type pixelPair struct{ ratio, a, b float64 }

// set prepares a pair and reuses the buffers.
func (o *overlap) set(a, b []float32) {
	o.totalA, o.totalB, o.common = 0, 0, o.common[:0]
	for i, v := range a {
		x, y := math.Abs(float64(v)), math.Abs(float64(b[i]))
		o.totalA += x
		o.totalB += y
		if x > 0 && y > 0 {
			o.common = append(o.common, pixelPair{x / y, x, y})
		}
	}
	slices.SortFunc(o.common, func(p, q pixelPair) int {
		switch {
		case p.ratio < q.ratio:
			return -1
		case p.ratio > q.ratio:
			return 1
		}
		return 0
	})
	m := len(o.common)
	o.ratios = slices.Grow(o.ratios[:0], m)[:m]
	o.upToA = slices.Grow(o.upToA[:0], m+1)[:m+1]
	o.fromB = slices.Grow(o.fromB[:0], m+1)[:m+1]
	o.upToA[0], o.fromB[m] = 0, 0
	for i, p := range o.common {
		o.ratios[i] = p.ratio
		o.upToA[i+1] = o.upToA[i] + p.a
	}
	for i := m - 1; i >= 0; i-- {
		o.fromB[i] = o.fromB[i+1] + o.common[i].b
	}
}

// sum returns the sum over images of the Jaccard index; alpha and beta contain one weight per image.
func (o *overlap) sum(alpha, beta []float64) float64 {
	sum := 0.0
	for i, x := range alpha {
		y := beta[i]
		if x == 0 || y == 0 {
			continue // one atom is all zero: nothing is shared
		}
		m := sort.SearchFloat64s(o.ratios, y/x)
		shared := x*o.upToA[m] + y*o.fromB[m]
		if all := x*o.totalA + y*o.totalB - shared; all > 0 {
			sum += shared / all
		}
	}
	return sum
}

// This file finds what the atoms of living units have in common, and takes it out of them: the key `common` of [Revive].

package hooks

import (
	"cmp"
	"math"
	"slices"

	"tessera/internal/vectors"
)

// together counts how often units are active together.
type together struct {
	images   int
	sums     []float64 // by unit: the sum of its activations
	products []float64 // by pair of units: the sum of the products of their activations
}

func (c *together) add(code []float32) {
	c.images++
	var active []int
	for i, v := range code {
		if v > 0 {
			active = append(active, i)
			c.sums[i] += float64(v)
		}
	}
	for k, i := range active {
		for _, j := range active[:k] { // j < i
			c.products[i*len(code)+j] += float64(code[i]) * float64(code[j])
		}
	}
}

// exclude reports whether two units are hardly ever active together: the mean product of their activations is at most seldom
// times that of independent units with the same means.
func (c *together) exclude(i, j int) bool {
	expected := c.sums[i] * c.sums[j] / float64(c.images)
	return expected > 0 && c.products[max(i, j)*len(c.sums)+min(i, j)] <= seldom*expected
}

// seldom is the least share of the expected product of activations that two units have if they do not exclude each other.
const seldom = 0.1

// little is the share of the mean squared norm of the images up to which the squared norm of a residual is small, and the minimum
// squared norm of a common part.
const little = 0.05

// mostPairs is the maximum number of pairs of atoms that are considered: those with the largest common parts.
const mostPairs = 1000

// containing is the least cosine of an atom and another one that it contains.
const containing = 0.3

// sameDirection is the cosine above which two atoms count as equal.
const sameDirection = 0.9

// sharing contains the common parts of the living atoms.
type sharing struct {
	h     *reviving
	atoms []atom      // the living atoms
	taken [][]float32 // directions of atoms: of the living ones, and of those that were given to dead units
	pairs []pair      // not yet used, in descending order of the norms of their common parts
}

// sharing finds the common parts of the living atoms.
func (h *reviving) sharing(dead []bool) *sharing {
	s := &sharing{h: h}
	for unit, is := range dead {
		if a, ok := h.atom(unit); ok && !is {
			s.atoms, s.taken = append(s.atoms, a), append(s.taken, a.values)
		}
	}
	s.pairs = commonest(s.taken)
	return s
}

// subtractContained subtracts atoms from atoms that contain them, once from each, if their units exclude each other.
func (s *sharing) subtractContained() {
	if s.h.decoder == nil && !s.h.tied { // the encoder's weights do not add up to images
		return
	}
	changed := map[int]bool{} // by unit
	for _, p := range s.pairs {
		for _, of := range [][2]int{{p.i, p.j}, {p.j, p.i}} {
			a, b := s.atoms[of[0]], s.atoms[of[1]]
			if !changed[a.unit] && contains(a.values, b.values) && s.h.together.exclude(a.unit, b.unit) {
				changed[a.unit] = true
				s.h.subtract(a.unit, b.values)
			}
		}
	}
	if len(changed) > 0 {
		s.h.training.Project(s.h.atoms())
	}
}

// contains reports whether an atom is the sum of another one, of some weight, and something else.
func contains(a, b []float32) bool {
	along := vectors.Dot(a, b)
	if along < containing || along > sameDirection {
		return false
	}
	least := 0.0
	for i, v := range b {
		l := min(float64(a[i]), along*float64(v))
		least += l * l
	}
	return least >= most*along*along
}

// most is the share of the squared norm of another atom that an atom that contains it must have.
const most = 0.8

// isNew reports whether no atom has the direction v.
func isNew(v []float32, atoms [][]float32) bool {
	return !slices.ContainsFunc(atoms, func(a []float32) bool { return vectors.Dot(v, a) > sameDirection })
}

// orCommon returns a function that returns the direction of lacking, or a common part of atoms if that direction is small.
func (h *reviving) orCommon(lacking func() ([]float32, bool), s *sharing) (next func() ([]float32, bool)) {
	pixels := h.pixels(h.sample)
	small := little * squares(pixels, 0, 1, len(pixels)) / float64(h.sample)

	return func() ([]float32, bool) {
		x, ok := lacking()
		if ok && squares(x, 0, 1, len(x)) > small {
			return x, ok
		}
		for len(s.pairs) > 0 {
			p := s.pairs[0]
			v := scaled(minimum(p.a, p.b), p.size)
			s.pairs = s.pairs[1:]
			if isNew(v, s.taken) {
				s.taken = append(s.taken, v)
				return v, true
			}
		}
		return x, ok
	}
}

func minimum(a, b []float32) []float32 {
	v := make([]float32, len(a))
	for i := range v {
		v[i] = max(0, min(a[i], b[i]))
	}
	return v
}

// pair is a pair of atoms of norm 1. size is the squared norm of their common part.
type pair struct {
	a, b []float32
	i, j int // their indices
	size float64
}

// scaled returns v, of squared norm size, scaled to norm 1.
func scaled(v []float32, size float64) []float32 {
	u := make([]float32, len(v))
	for i, x := range v {
		u[i] = float32(float64(x) / math.Sqrt(size))
	}
	return u
}

// shared returns the squared norm of the common part of two atoms.
func shared(a, b []float32) (sum float64) {
	for i, v := range a {
		least := float64(max(0, min(v, b[i])))
		sum += least * least
	}
	return sum
}

// commonest returns the pairs of atoms whose common part is not 0, in descending order of its norm.
func commonest(atoms [][]float32) (pairs []pair) {
	for i, a := range atoms {
		for j, b := range atoms[:i] {
			p := pair{a, b, i, j, shared(a, b)}
			if p.size >= little {
				pairs = append(pairs, p)
			}
		}
		if len(pairs) > 10*mostPairs { // all pairs of many atoms would not fit into memory
			pairs = largest(pairs)
		}
	}
	return largest(pairs)
}

// largest returns the pairs with the largest common parts, in descending order.
func largest(pairs []pair) []pair {
	slices.SortStableFunc(pairs, func(p, q pair) int { return cmp.Compare(q.size, p.size) })
	return pairs[:min(len(pairs), mostPairs)]
}

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

// add adds the code of an image.
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
// squared norm of the common part of a group.
const little = 0.05

// mostPairs is the maximum number of pairs of atoms that are considered: those with the largest common parts.
const mostPairs = 1000

// containing is the least cosine of an atom and another one that it contains.
const containing = 0.3

// sameDirection is the cosine above which two atoms count as equal.
const sameDirection = 0.9

// fewest is the least number of atoms of a group. Two of many pairs of rare parts may exclude each other by chance.
const fewest = 3

// sharing contains the common parts of the living atoms.
type sharing struct {
	h      *reviving
	atoms  []atom      // the living atoms
	taken  [][]float32 // directions of atoms: of the living ones, and of those that were given to dead units
	groups []group     // whose v no atom has, not yet taken out
	known  []group     // whose v is an atom
	pairs  []pair      // not yet used, in descending order of the norms of their common parts
}

// atom is an atom of a living unit, scaled to norm 1.
type atom struct {
	unit   int
	norm   float64 // before
	values []float32
}

// group is a set of at least fewest units that exclude each other. v is the common part of their atoms, scaled to norm 1.
type group struct {
	units []int
	v     []float32
}

// sharing finds the common parts of the living atoms. If there are more groups than dead units, units that double another one
// are added to the dead ones.
func (h *reviving) sharing(dead []bool) *sharing {
	s := &sharing{h: h}
	weight := cmp.Or(h.decoder, h.encoder)
	for unit, is := range dead {
		first, stride, n := h.values(weight, unit)
		if norm := math.Sqrt(squares(weight.Data, first, stride, n)); !is && norm > 0 {
			values := make([]float32, n)
			for i := range values {
				values[i] = float32(float64(weight.Data[first+i*stride]) / norm)
			}
			s.atoms = append(s.atoms, atom{unit, norm, values})
		}
	}
	s.find()
	doubles := s.doubles()
	free := len(s.groups)
	for _, is := range dead {
		if is {
			free--
		}
	}
	if free = min(free, len(doubles)); free > 0 {
		for _, unit := range doubles[:free] {
			dead[unit] = true
		}
		s.atoms = slices.DeleteFunc(s.atoms, func(a atom) bool { return dead[a.unit] })
		s.find()
	}
	return s
}

// doubles lists the units whose atom equals, up to sameDirection, the atom of an unlisted unit that contributes more.
func (s *sharing) doubles() (units []int) {
	effect := func(a atom) float64 { return s.h.together.sums[a.unit] * a.norm }
	for i, a := range s.atoms {
		for _, b := range s.atoms[:i] {
			if slices.Contains(units, a.unit) || slices.Contains(units, b.unit) || vectors.Dot(a.values, b.values) <= sameDirection {
				continue
			}
			unit := a.unit
			if effect(b) < effect(a) {
				unit = b.unit
			}
			units = append(units, unit)
		}
	}
	return units
}

// find sets taken, pairs, groups and known.
func (s *sharing) find() {
	s.taken, s.groups, s.known = nil, nil, nil
	for _, a := range s.atoms {
		s.taken = append(s.taken, a.values)
	}
	s.pairs = commonest(s.taken)
	if s.h.decoder == nil && !s.h.tied { // the encoder's weights do not add up to images
		return
	}
	found := slices.Clone(s.taken)
	for _, p := range s.pairs {
		g, ok := s.group(p)
		switch {
		case !ok:
		case !isNew(g.v, s.taken):
			// The atom v may itself be in the group. It, and atoms like it, would become 0.
			g.units = slices.DeleteFunc(g.units, func(unit int) bool { return !isNew(g.v, [][]float32{s.of(unit)}) })
			if len(g.units) >= fewest {
				s.known = append(s.known, g)
			}
		case isNew(g.v, found):
			s.groups, found = append(s.groups, g), append(found, g.v)
		}
	}
	for _, p := range s.pairs {
		for _, of := range [][2]int{{p.i, p.j}, {p.j, p.i}} {
			if a, b := s.atoms[of[0]], s.atoms[of[1]]; contains(a.values, b.values) && s.h.together.exclude(a.unit, b.unit) {
				s.known = append(s.known, group{[]int{a.unit}, b.values})
			}
		}
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

// of returns the atom of a living unit.
func (s *sharing) of(unit int) []float32 {
	return s.atoms[slices.IndexFunc(s.atoms, func(a atom) bool { return a.unit == unit })].values
}

// isNew reports whether no atom has the direction v.
func isNew(v []float32, atoms [][]float32) bool {
	return !slices.ContainsFunc(atoms, func(a []float32) bool { return vectors.Dot(v, a) > sameDirection })
}

// group returns the group of a pair: the units that exclude each other and contain most of the common part of the pair.
func (s *sharing) group(p pair) (g group, ok bool) {
	g.units = []int{s.atoms[p.i].unit, s.atoms[p.j].unit}
	if !s.h.together.exclude(g.units[0], g.units[1]) {
		return g, false
	}
	pair := minimum(p.a, p.b)
	all := pair
	for _, a := range s.atoms {
		if slices.Contains(g.units, a.unit) || shared(a.values, pair) < most*p.size ||
			slices.ContainsFunc(g.units, func(unit int) bool { return !s.h.together.exclude(unit, a.unit) }) {
			continue
		}
		g.units = append(g.units, a.unit)
		all = minimum(all, a.values)
	}
	size := squares(all, 0, 1, len(all))
	if len(g.units) < fewest || size < little {
		return g, false
	}
	g.v = scaled(all, size)
	return g, true
}

// most is the share of the squared norm of the pair's common part that the atom of another unit of its group must contain.
const most = 0.8

// orCommon returns a function that returns the direction of lacking, or a common part of atoms if that direction is small.
func (h *reviving) orCommon(lacking func() ([]float32, bool), s *sharing) (next func() ([]float32, bool)) {
	pixels := h.pixels(h.sample)
	small := little * squares(pixels, 0, 1, len(pixels)) / float64(h.sample)

	return func() ([]float32, bool) {
		x, ok := lacking()
		if ok && squares(x, 0, 1, len(x)) > small {
			return x, ok
		}
		if len(s.groups) > 0 {
			g := s.groups[0]
			s.groups, s.taken = s.groups[1:], append(s.taken, g.v)
			h.takeOut(g)
			return g.v, true
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

// takeOut subtracts the common part v of a group from its atoms.
func (h *reviving) takeOut(g group) {
	weight := cmp.Or(h.decoder, h.encoder)
	for _, unit := range g.units {
		first, stride, n := h.values(weight, unit)
		along := 0.0
		for i := range n {
			along += float64(weight.Data[first+i*stride]) * float64(g.v[i])
		}
		rest := make([]float32, n)
		for i := range rest {
			w := weight.Data[first+i*stride]
			rest[i] = w - min(max(0, w), float32(along)*g.v[i])
		}
		h.set(weight, unit, func(i int) float32 { return rest[i] })
	}
}

// takeOutKnown subtracts common parts that are already atoms from the atoms of their groups. An atom of several groups changes once.
func (s *sharing) takeOutKnown() {
	var out []int
	for _, g := range s.known {
		g.units = slices.DeleteFunc(g.units, func(unit int) bool { return slices.Contains(out, unit) })
		out = append(out, g.units...)
		s.h.takeOut(g)
	}
	if len(out) > 0 {
		s.h.training.Project(cmp.Or(s.h.decoder, s.h.encoder))
	}
}

// minimum returns max(0, min(a, b)).
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

package hooks

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"tessera/data"
	"tessera/internal/vectors"
	"tessera/part"
)

// Revive re-initialises dead units. After every `every` epochs, before the next step, it encodes the first `sample` training
// images. A unit is dead if its largest activation is below threshold times the largest activation of any unit. The k-th dead
// unit gets the direction v = x / ||x|| of the image x with the k-th largest squared reconstruction error:
//
//	encoder weight of the unit   <-  v times the mean norm of the living units' encoder weights
//	decoder weight of the unit   <-  v times the mean norm of the living units' decoder weights
//	bias of the unit             <-  0
//
// With `residuals` the direction is that of the largest residual: v = r / ||r||, with r = max(0, x - y) of the image with the
// largest ||r||. Before the next unit is set, max(0, v·r) v is subtracted from all residuals, so that no two units get the
// same direction. In other parameters of the encoder with one value per unit, such as thresholds, the value of a dead unit
// becomes the mean of the values of the living units. `until` ends the searches: units that die later are not re-initialised.
//
// With `common` too, once all remaining residuals have ||r||² <= 0.05 times the mean ||x||², dead units get common parts of living
// atoms instead. The common part of atoms a, b, ..., each scaled to norm 1, is c = max(0, min(a, b, ...)). A part that is in every
// image, such as the torso of the swimmer, can be contained in the atoms of all positions of a limb without an error; in this way
// it gets a separate atom:
//
//   - First the common parts of groups, with ||c||² >= 0.05. The unit gets v = c / ||c||, and max(0, w·v) v is subtracted from the
//     atom w of every unit of the group, where positive values fall at most to 0 and others stay. If these atoms kept v, the new
//     unit would have nothing to explain and would die again. A group has at least three units, and any two of them exclude each
//     other: the mean product of their activations over the sample is at most 0.1 of the product of their means. It begins with
//     two units. Each other unit, in order, joins the group if it excludes all units of the group so far, and if the common part
//     of its atom and c of the first two has at least 0.8 of their ||c||².
//   - Then the common parts of pairs of atoms. Nothing is subtracted.
//
// Only the 1000 pairs with the largest ||c||² are considered, in descending order. A v with a cosine of more than 0.9 with a living
// atom or an earlier v is omitted. If the v of a group is already a living atom, it is subtracted in every search from those atoms
// of the group that differ from v, if there are at least three. An atom that contains a whole other one is absorption: a limb
// together with the torso has one unit, and is missing elsewhere. If two units exclude each other, and atoms a and b of norm 1 have
// 0.3 <= a·b <= 0.9 and ||min(a, (a·b) b)||² >= 0.8 (a·b)², (a·b) b is subtracted from a in every search. If there are more groups than dead units, then of two units whose
// atoms have a cosine of more than 0.9, the one with the smaller mean contribution counts as dead. At most 4096 units.
// Groups need a decoder weight as above, or a decoder without weights (tied).
//
// With `exchange`, if no unit is dead, one living unit may count as dead, because a new one would explain more. Two units can have
// the same part while another part has none, and no gradient leads away from there. On the first 1000 images of the sample, with
// e = x - y:
//
//   - The error that a new unit would save is sum max(0, v·e)², with v = max(0, e) / ||max(0, e)|| of the image with the largest
//     ||max(0, e)||: its activations alone are fitted, and all others stay.
//   - The error that a unit saves is the increase of sum ||e||² if its weights are 0 and all codes are computed again. It is
//     computed for the 8 units with the smallest sums of squared contributions to the sample; the least one counts.
//
// The unit counts as dead if the first is more than `exchange` times the second. Its new direction is chosen from the whole sample,
// as above: it need not be this v, and with `common` it may be a common part of atoms. For a pixel with the largest value of these
// 1000 images, which may be saturated, e is max(0, x - y).
//
// The constraints project the new values, and the optimizer's state of these values is set to 0. Moving averages of the
// parameters get the new values too. The procedure is deterministic.
//
// The encoder must have exactly one layer with weights, a dense layer on the pixels. The decoder weight is re-initialised if
// the decoder's first layer with weights is a dense layer from the units to the pixels.
//
// Sources: Bricken et al., Towards Monosemanticity, 2023, "neuron resampling"; Chanin et al., A is for Absorption, 2024. Unlike the
// first one, the hook takes the images with the largest errors instead of sampling in proportion to the squared error, and omits
// the factor 0.2.
type Revive struct {
	Every     int     `toml:"every" want:"> 0" doc:"epochs between two searches for dead units"`
	Threshold float64 `toml:"threshold" want:"in (0,1)" doc:"a unit is dead if its largest activation is below this fraction of the largest of any unit"`
	Sample    int     `toml:"sample" want:"> 0" doc:"number of training images that are encoded, from the first"`
	Residuals bool    `toml:"residuals" doc:"draws units from what the reconstructions lack instead of from whole images"`
	Common    bool    `toml:"common" doc:"with residuals: when the residuals are small, dead units get common parts of atoms"`
	Exchange  float64 `toml:"exchange" want:">= 0" doc:"with residuals: if no unit is dead, one is replaced if a new one would save more than this factor times the error that it saves; 0 for never"`
	Until     int     `toml:"until" want:">= 0" doc:"epoch after which no unit is re-initialised; 0 for none"`
}

func init() {
	Registry.Register("revive", "re-initialises dead units from images with large reconstruction errors",
		func() Hook { return &Revive{Every: 10, Threshold: 0.01, Sample: 10000} })
}

// Check returns an error for a key that has no effect.
func (r *Revive) Check() error {
	if r.Common && !r.Residuals {
		return part.KeyErrorf("common", "it has no effect without residuals: give residuals = true")
	}
	if r.Exchange > 0 && !r.Residuals {
		return part.KeyErrorf("exchange", "it has no effect without residuals: give residuals = true")
	}
	return nil
}

// NeedsSteps implements [NeedsSteps].
func (*Revive) NeedsSteps() (problem, hint string) {
	return "%s cannot continue from re-initialised weights: its curvature history would be wrong", "remove the hook"
}

// reviveBatch is the number of images that are encoded at once.
const reviveBatch = 500

// Replicated implements [Replicated].
func (*Revive) Replicated() (state bool) { return true }

// Attach implements [Hook].
func (r *Revive) Attach(t Training) (*Active, error) {
	h := &reviving{Revive: r, training: t}
	var err error
	if h.encoder, err = reviveable(t.Parameters("encoder.*.weight")); err != nil {
		return nil, err
	}
	h.units = h.encoder.Shape[1]
	if err := r.fits(h.units); err != nil {
		return nil, err
	}
	for _, p := range t.Parameters("encoder.*") {
		if r.Residuals && len(p.Data) == h.units && p.Trainable && p != h.encoder && !strings.HasSuffix(p.Path, ".bias") {
			h.perUnit = append(h.perUnit, p)
		}
	}
	for _, p := range t.Parameters("encoder.*.bias") {
		if len(p.Data) == h.units && p.Trainable {
			h.bias = p
		}
	}
	decoder := t.Parameters("decoder.*.weight")
	h.tied = len(decoder) == 0
	if !h.tied { // of the first layer with weights
		if p := decoder[0]; slices.Equal(p.Shape, []int{h.units, h.encoder.Shape[0]}) && p.Trainable {
			h.decoder = p
		}
	}
	return &Active{Begin: h.begin, BeginEpoch: h.beginEpoch}, nil
}

var notOneDense = part.KeyError{Key: "encoder", Problem: "revive needs an encoder with one layer with weights, a dense layer on the pixels"}

// Suits implements [Selective].
func (r *Revive) Suits(m Declared) error {
	encoder, err := reviveable(m.Parameters("encoder.*.weight"))
	switch {
	case err != nil:
		return err
	case encoder.Shape[0] != m.Pixels:
		return notOneDense
	case !m.Decodes:
		return part.KeyError{Key: "decoder", Problem: "revive reads reconstruction errors, but the model has no decoder"}
	}
	return r.fits(encoder.Shape[1])
}

// mostCommon is the maximum number of units with common, which counts for all pairs of units how often they are active together.
const mostCommon = 4096

func (r *Revive) fits(units int) error {
	if r.Common && units > mostCommon {
		return part.KeyErrorf("common", "got %d units, want at most %d: it compares all pairs", units, mostCommon)
	}
	return nil
}

// reviveable returns the encoder weight whose units can be re-initialised; weights are all weights of the encoder.
func reviveable(weights []*Parameter) (*Parameter, error) {
	if len(weights) != 1 || len(weights[0].Shape) != 2 {
		return nil, notOneDense
	}
	if p := weights[0]; !p.Trainable {
		return nil, part.KeyError{Key: "freeze", Problem: p.Path + " is frozen: no unit can be re-initialised"}
	}
	return weights[0], nil
}

// reviving is the hook's state in a training.
type reviving struct {
	*Revive
	training               Training
	encoder, bias, decoder *Parameter   // bias and decoder are nil if they are not re-initialised
	perUnit                []*Parameter // other parameters of the encoder with one value per unit; only with residuals
	tied                   bool         // the encoder's weights are the atoms: the decoder has none
	units, sample          int
	encode, decode         Program
	squares                []float64 // by unit: the sum of its squared activations in the last search
	together               *together // of the last search; only with common
}

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

// begin compiles the programs.
func (h *reviving) begin() (err error) {
	images := h.training.Images()
	if images.Pixels() != h.encoder.Shape[0] {
		return notOneDense
	}
	h.sample = min(h.Sample, images.Len())
	if h.encode, err = h.training.Compile(Code, min(h.sample, reviveBatch)); err != nil {
		return err
	}
	h.decode, err = h.training.Compile(Output, min(h.sample, reviveBatch))
	return err
}

func (h *reviving) beginEpoch() error {
	if epoch := h.training.Epoch(); epoch == 0 || epoch%h.Every != 0 || h.Until > 0 && epoch > h.Until {
		return nil
	}
	dead, err := h.dead()
	if err != nil {
		return err
	}
	var common *sharing
	if h.Common {
		common = h.sharing(dead)
		common.takeOutKnown()
	}
	if !slices.Contains(dead, true) && h.Exchange > 0 {
		if err := h.exchange(dead); err != nil {
			return err
		}
	}
	if !slices.Contains(dead, true) {
		return nil
	}
	next, err := h.directions(common)
	if err != nil {
		return err
	}
	h.draw(dead, next)
	return nil
}

// directions returns a function that returns the direction for the next dead unit, not normalised; ok is false if there are
// no more.
func (h *reviving) directions(common *sharing) (next func() (x []float32, ok bool), err error) {
	if h.Residuals {
		next, err = h.lacking()
		if err == nil && h.Common {
			next = h.orCommon(next, common)
		}
		return next, err
	}
	worst, err := h.worst()
	x := make([]float32, h.encoder.Shape[0])
	return func() ([]float32, bool) {
		if len(worst) == 0 {
			return nil, false
		}
		h.training.Images().Batch(x, worst[:1])
		worst = worst[1:]
		return x, true
	}, err
}

// exchangeable is the number of units among which exchange looks for the one to replace, exchangeSample that of the images on
// which it compares: every unit that it looks at costs a pass over them.
const (
	exchangeable   = 8
	exchangeSample = 1000
)

// exchange counts a unit as dead if a new one would save more than Exchange times the error that the unit saves.
func (h *reviving) exchange(dead []bool) error {
	now, errors, err := h.errors()
	if err != nil {
		return err
	}
	direction, size := []float32(nil), 0.0
	for _, e := range errors {
		r := positive(e)
		if s := squares(r, 0, 1, len(r)); s > size {
			direction, size = r, s
		}
	}
	if direction == nil {
		return nil
	}
	gain := 0.0
	for _, e := range errors {
		along := max(0, vectors.Dot(direction, e))
		gain += along * along / size
	}
	unit, cost := 0, math.Inf(1)
	for _, candidate := range h.leastEffects() {
		without, err := h.errorWithout(candidate)
		if err != nil {
			return err
		}
		if without-now < cost {
			unit, cost = candidate, without-now
		}
	}
	dead[unit] = gain > h.Exchange*cost
	return nil
}

// errors returns the errors x - y of the images on which exchange compares, and the sum of their squares. An output above a pixel
// with the largest value of these images is no error: such a pixel may be saturated.
func (h *reviving) errors() (sum float64, errors [][]float32, err error) {
	count := min(h.sample, exchangeSample)
	saturated := slices.Max(h.pixels(count))
	err = h.run(h.decode, count, func(x, y []float32) {
		e := make([]float32, len(x))
		for i, v := range x {
			if e[i] = v - y[i]; v >= saturated {
				e[i] = max(0, e[i])
			}
		}
		sum += squares(e, 0, 1, len(e))
		errors = append(errors, e)
	})
	return sum, errors, err
}

// positive returns max(0, e).
func positive(e []float32) []float32 {
	r := make([]float32, len(e))
	for i, v := range e {
		r[i] = max(0, v)
	}
	return r
}

// pixels returns the pixels of the first images.
func (h *reviving) pixels(count int) []float32 {
	images := h.training.Images()
	pixels := make([]float32, count*images.Pixels())
	first := make([]int, count)
	for i := range first {
		first[i] = i
	}
	images.Batch(pixels, first)
	return pixels
}

// errorWithout returns the sum of errors if the weights of a unit are 0.
func (h *reviving) errorWithout(unit int) (sum float64, err error) {
	for _, p := range []*Parameter{h.encoder, h.decoder} {
		if p == nil {
			continue
		}
		first, stride, n := h.values(p, unit)
		kept := make([]float32, n)
		for i := range n {
			kept[i], p.Data[first+i*stride] = p.Data[first+i*stride], 0
		}
		defer func() {
			for i, v := range kept {
				p.Data[first+i*stride] = v
			}
		}()
	}
	sum, _, err = h.errors()
	return sum, err
}

// leastEffects lists the units with the least sum of squared contributions to the images of the last search.
func (h *reviving) leastEffects() []int {
	weight := cmp.Or(h.decoder, h.encoder)
	units, effects := make([]int, h.units), make([]float64, h.units)
	for u := range units {
		first, stride, n := h.values(weight, u)
		units[u], effects[u] = u, h.squares[u]*squares(weight.Data, first, stride, n)
	}
	slices.SortStableFunc(units, func(a, b int) int { return cmp.Compare(effects[a], effects[b]) })
	return units[:min(exchangeable, h.units)]
}

// lacking is [reviving.directions] for the key residuals: it subtracts each direction from all residuals before it selects the
// next one.
func (h *reviving) lacking() (next func() ([]float32, bool), err error) {
	var residuals [][]float32
	err = h.run(h.decode, h.sample, func(x, y []float32) {
		r := make([]float32, len(x))
		for i, v := range x {
			r[i] = max(0, v-y[i])
		}
		residuals = append(residuals, r)
	})
	return func() ([]float32, bool) {
		largest, size := -1, 0.0
		for i, r := range residuals {
			if s := squares(r, 0, 1, len(r)); s > size {
				largest, size = i, s
			}
		}
		if largest < 0 {
			return nil, false
		}
		direction := slices.Clone(residuals[largest])
		for _, r := range residuals {
			along := 0.0
			for i, v := range direction {
				along += float64(v) * float64(r[i])
			}
			for i, v := range direction {
				r[i] = max(0, r[i]-float32(along/size)*v)
			}
		}
		return direction, true
	}, err
}

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

// run calls f with the pixels and a program's value for each of the first images.
func (h *reviving) run(program Program, count int, f func(pixels, value []float32)) error {
	images := h.training.Images()
	width := images.Pixels()
	pixels := make([]float32, min(count, reviveBatch)*width)
	for from := 0; from < count; from += reviveBatch {
		indices := make([]int, min(reviveBatch, count-from))
		for i := range indices {
			indices[i] = from + i
		}
		x := pixels[:len(indices)*width]
		images.Batch(x, indices)
		values, err := program.Run(x, nil)
		if err != nil {
			return err
		}
		row := len(values) / len(indices)
		if images.Holed() && row == width {
			values = slices.Clone(values)
			observed := images.Subset(indices).All()[data.ObservedColumn]
			for i, there := range observed {
				if there == 0 { // no error where nothing is known
					values[i] = x[i]
				}
			}
		}
		for i := range indices {
			f(x[i*width:(i+1)*width], values[i*row:(i+1)*row])
		}
	}
	return nil
}

// dead reports for each unit whether it is dead.
func (h *reviving) dead() ([]bool, error) {
	var most []float32
	h.together = nil
	err := h.run(h.encode, h.sample, func(_, code []float32) {
		if most == nil {
			most = make([]float32, len(code))
			h.squares = make([]float64, len(code))
			if h.Common {
				h.together = &together{sums: make([]float64, len(code)), products: make([]float64, len(code)*len(code))}
			}
		}
		if h.Common {
			h.together.add(code)
		}
		for j, v := range code {
			most[j] = max(most[j], v)
			h.squares[j] += float64(v) * float64(v)
		}
	})
	if err == nil && len(most) != h.units {
		err = fmt.Errorf("a code has %d values, want %d, the units of %s", len(most), h.units, h.encoder.Path)
	}
	if err != nil {
		return nil, err
	}
	largest := slices.Max(most)
	dead := make([]bool, h.units)
	for j, v := range most {
		dead[j] = float64(v) < h.Threshold*float64(largest) || largest == 0
	}
	return dead, nil
}

// worst lists the images of the sample in descending order of error.
func (h *reviving) worst() (order []int, err error) {
	var errs []float64
	err = h.run(h.decode, h.sample, func(x, y []float32) {
		sum := 0.0
		for i, v := range x {
			sum += (float64(v) - float64(y[i])) * (float64(v) - float64(y[i]))
		}
		order, errs = append(order, len(errs)), append(errs, sum)
	})
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(errs[b], errs[a]) })
	return order, err
}

// draw sets the weights of the dead units to the directions, in order.
func (h *reviving) draw(dead []bool, next func() ([]float32, bool)) {
	columns, rows := h.norm(h.encoder, dead), h.norm(h.decoder, dead)
	for unit, is := range dead {
		if !is {
			continue
		}
		x, ok := next()
		if !ok {
			break
		}
		length := math.Sqrt(squares(x, 0, 1, len(x)))
		if length == 0 {
			continue
		}
		h.set(h.encoder, unit, func(i int) float32 { return float32(columns * float64(x[i]) / length) })
		h.set(h.bias, unit, func(int) float32 { return 0 })
		h.set(h.decoder, unit, func(i int) float32 { return float32(rows * float64(x[i]) / length) })
		for _, p := range h.perUnit {
			mean := h.mean(p, dead)
			h.set(p, unit, func(int) float32 { return mean })
		}
	}
	for _, p := range append([]*Parameter{h.encoder, h.bias, h.decoder}, h.perUnit...) {
		if p != nil {
			h.training.Project(p)
		}
	}
}

// values returns the location of a unit's values in p: n values, starting at index first, stride apart.
func (h *reviving) values(p *Parameter, unit int) (first, stride, n int) {
	n = len(p.Data) / h.units
	if p == h.decoder {
		return unit * n, 1, n
	}
	return unit, h.units, n
}

// set changes the values of a unit in p and sets their optimizer state to 0.
func (h *reviving) set(p *Parameter, unit int, value func(i int) float32) {
	if p == nil {
		return
	}
	first, stride, n := h.values(p, unit)
	h.training.Rewrite(p, func(values []float32) {
		for i := range n {
			values[first+i*stride] = value(i)
		}
	})
	for _, state := range p.State {
		for i := range n {
			state[first+i*stride] = 0
		}
	}
}

// norm returns the mean norm of the values of the living units, or of all units if all are dead.
func (h *reviving) norm(p *Parameter, dead []bool) float64 {
	if p == nil {
		return 0
	}
	sum, living := 0.0, 0
	all := !slices.Contains(dead, false)
	for unit, is := range dead {
		if all || !is {
			first, stride, n := h.values(p, unit)
			sum += math.Sqrt(squares(p.Data, first, stride, n))
			living++
		}
	}
	return sum / float64(living)
}

// mean returns the mean of the living units' values in p, which has one value per unit. If all units are dead, it is the mean
// over all.
func (h *reviving) mean(p *Parameter, dead []bool) float32 {
	sum, living := 0.0, 0
	all := !slices.Contains(dead, false)
	for unit, is := range dead {
		if all || !is {
			sum += float64(p.Data[unit])
			living++
		}
	}
	return float32(sum / float64(living))
}

// squares returns the sum of the squares of n values.
func squares(values []float32, first, stride, n int) (sum float64) {
	for i := range n {
		v := float64(values[first+i*stride])
		sum += v * v
	}
	return sum
}

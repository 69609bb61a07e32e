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
// same direction. With `common` too, a dead unit for which only residuals of less than 0.05 of the mean ||x||² are left gets
// what two living atoms a and b, of norm 1, have in common: v = c / ||c||, c = max(0, min(a, b)). The pair is the one with the
// largest ||c||² >= 0.05 whose v has a cosine of less than 0.9 with every living atom and every common direction before it. A part that
// is in every image, such as the torso of the swimmer, may be in the atoms of all positions of a limb, without an error. It
// gets an atom of its own in this way. In other parameters of the encoder with one value per unit, such as thresholds, the value of a dead unit
// becomes the mean of the values of the living units. `until` ends the searches: units that die later are not re-initialised.
//
// The constraints project the new values, and the optimizer's state of these values is set to 0. Moving averages of the
// parameters get the new values too. The procedure is deterministic.
//
// The encoder must have exactly one layer with weights, a dense layer on the pixels. The decoder weight is re-initialised if
// the decoder's first layer with weights is a dense layer from the units to the pixels.
//
// Source: Bricken et al., Towards Monosemanticity, 2023, "neuron resampling". Unlike the source, the hook takes the images
// with the largest errors instead of sampling in proportion to the squared error, and omits the factor 0.2.
type Revive struct {
	Every     int     `toml:"every" want:"> 0" doc:"epochs between two searches for dead units"`
	Threshold float64 `toml:"threshold" want:"in (0,1)" doc:"a unit is dead if its largest activation is below this fraction of the largest of any unit"`
	Sample    int     `toml:"sample" want:"> 0" doc:"number of training images that are encoded, from the first"`
	Residuals bool    `toml:"residuals" doc:"draws units from what the reconstructions lack instead of from whole images"`
	Common    bool    `toml:"common" doc:"with residuals: where hardly anything is lacking, draws units from what two atoms have in common"`
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
	if decoder := t.Parameters("decoder.*.weight"); len(decoder) > 0 { // of the first layer with weights
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
	units, sample          int
	encode, decode         Program
}

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
	if err != nil || !slices.Contains(dead, true) {
		return err
	}
	next, err := h.directions(dead)
	if err != nil {
		return err
	}
	h.draw(dead, next)
	return nil
}

// directions returns a function that returns the direction for the next dead unit, not normalised; ok is false if there are
// no more.
func (h *reviving) directions(dead []bool) (next func() (x []float32, ok bool), err error) {
	if h.Residuals {
		next, err = h.lacking()
		if err == nil && h.Common {
			next = h.orCommon(next, dead)
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

// lacking is [reviving.directions] for the key residuals: it subtracts each direction from all residuals before it selects the
// next one.
func (h *reviving) lacking() (next func() ([]float32, bool), err error) {
	var residuals [][]float32
	err = h.run(h.decode, func(x, y []float32) {
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

// little is the share of the mean squared norm of the images below which a residual is small, and the least squared norm of what
// two atoms have in common.
const little = 0.05

// mostPairs is the maximum number of pairs of atoms that are considered, those that have most in common.
const mostPairs = 1000

// orCommon returns a function that returns the direction of lacking, or what two atoms have in common if that direction is
// small.
func (h *reviving) orCommon(lacking func() ([]float32, bool), dead []bool) (next func() ([]float32, bool)) {
	images := h.training.Images()
	pixels := make([]float32, h.sample*images.Pixels())
	first := make([]int, h.sample)
	for i := range first {
		first[i] = i
	}
	images.Batch(pixels, first)
	small := little * squares(pixels, 0, 1, len(pixels)) / float64(h.sample)

	var taken [][]float32 // the living atoms and the common directions that were returned, of norm 1
	atoms := cmp.Or(h.decoder, h.encoder)
	for unit, is := range dead {
		first, stride, n := h.values(atoms, unit)
		if norm := math.Sqrt(squares(atoms.Data, first, stride, n)); !is && norm > 0 {
			atom := make([]float32, n)
			for i := range atom {
				atom[i] = float32(float64(atoms.Data[first+i*stride]) / norm)
			}
			taken = append(taken, atom)
		}
	}
	pairs := commonest(taken)
	return func() ([]float32, bool) {
		x, ok := lacking()
		if ok && squares(x, 0, 1, len(x)) > small {
			return x, ok
		}
		for len(pairs) > 0 {
			v := pairs[0].common()
			pairs = pairs[1:]
			if !slices.ContainsFunc(taken, func(t []float32) bool { return vectors.Dot(v, t) > 0.9 }) {
				taken = append(taken, v)
				return v, true
			}
		}
		return x, ok
	}
}

// pair is a pair of atoms of norm 1. size is the squared norm of what they have in common.
type pair struct {
	a, b []float32
	size float64
}

// common returns max(0, min(a, b)), scaled to norm 1.
func (p pair) common() []float32 {
	v := make([]float32, len(p.a))
	for i := range v {
		v[i] = float32(float64(max(0, min(p.a[i], p.b[i]))) / math.Sqrt(p.size))
	}
	return v
}

// commonest returns the pairs of atoms that have something in common, in descending order of its norm.
func commonest(atoms [][]float32) (pairs []pair) {
	for i, a := range atoms {
		for _, b := range atoms[:i] {
			p := pair{a: a, b: b}
			for k, v := range a {
				least := float64(max(0, min(v, b[k])))
				p.size += least * least
			}
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

// largest returns the pairs with most in common, in descending order.
func largest(pairs []pair) []pair {
	slices.SortStableFunc(pairs, func(p, q pair) int { return cmp.Compare(q.size, p.size) })
	return pairs[:min(len(pairs), mostPairs)]
}

// run calls f with the pixels and a program's value for each image of the sample.
func (h *reviving) run(program Program, f func(pixels, value []float32)) error {
	images := h.training.Images()
	width := images.Pixels()
	pixels := make([]float32, min(h.sample, reviveBatch)*width)
	for from := 0; from < h.sample; from += reviveBatch {
		indices := make([]int, min(reviveBatch, h.sample-from))
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
	err := h.run(h.encode, func(_, code []float32) {
		if most == nil {
			most = make([]float32, len(code))
		}
		for j, v := range code {
			most[j] = max(most[j], v)
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
	err = h.run(h.decode, func(x, y []float32) {
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

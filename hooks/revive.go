package hooks

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"tessera/data"
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
// of the group that differ from v, if there are at least three. If there are more groups than dead units, then of two units whose
// atoms have a cosine of more than 0.9, the one with the smaller mean contribution counts as dead. At most 4096 units.
//
// An atom that contains a whole other one is absorption: a limb together with the torso has one unit, and the limb alone has none.
// If two units exclude each other, and their atoms a and b, of norm 1, have 0.3 <= a·b <= 0.9 and ||min(a, (a·b) b)||² >= 0.8
// (a·b)², then (a·b) b is subtracted from a in every search.
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
	Exchange  float64 `toml:"exchange" want:">= 0" doc:"with residuals: if no unit is dead, one is replaced if a new one would save more than this factor, >= 1, times the error that it saves; 0 for never"`
	Until     int     `toml:"until" want:">= 0" doc:"epoch after which no unit is re-initialised; 0 for none"`
}

func init() {
	Registry.Register("revive", "re-initialises dead units from images with large reconstruction errors",
		func() Hook { return &Revive{Every: 10, Threshold: 0.01, Sample: 10000} })
}

// Check returns an error for a key that has no effect, and for an exchange with a worse unit.
func (r *Revive) Check() error {
	if r.Common && !r.Residuals {
		return part.KeyErrorf("common", "it has no effect without residuals: give residuals = true")
	}
	if r.Exchange > 0 && !r.Residuals {
		return part.KeyErrorf("exchange", "it has no effect without residuals: give residuals = true")
	}
	if r.Exchange > 0 && r.Exchange < 1 {
		return part.KeyErrorf("exchange", "got %g, want 0 (never) or >= 1: a unit would be replaced by one that saves less error", r.Exchange)
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

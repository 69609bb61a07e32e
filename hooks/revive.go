package hooks

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"tessera/config/part"
)

// Revive re-initialises dead units. After every `every` epochs, before the next step, it encodes the first `sample` training
// images. A unit is dead if its largest activation is below threshold times the largest activation of any unit. The k-th dead
// unit gets the direction v = x / ||x|| of the image x with the k-th largest squared reconstruction error:
//
//	encoder weight of the unit   <-  v times the mean norm of the living units' encoder weights
//	decoder weight of the unit   <-  v times the mean norm of the living units' decoder weights
//	bias of the unit             <-  0
//
// A whole image on top of a sum that already fits would overshoot. If the sum of the squared errors of the sample rises, the new
// encoder weights are halved until it does not, at most 10 times; then the scale with the least error is kept. This needs
// reconstructions of the pixels. With `residuals` the scale is not changed.
//
// With `residuals` the direction is that of the largest residual: v = r / ||r||, with r = max(0, x - y) of the image with the
// largest ||r||. Before the next unit is set, max(0, v·r) v is subtracted from all residuals, so that no two units get the
// same direction. In other parameters of the encoder with one value per unit, such as thresholds, the value of a dead unit
// becomes the mean of the values of the living units. `until` ends the searches: units that die later are not re-initialised.
//
// With `common` too, once all remaining residuals have ||r||² <= 0.05 times the mean ||x||², dead units get common parts of pairs of
// living atoms instead. The common part of two atoms a and b, each scaled to norm 1, is c = max(0, min(a, b)), and the unit gets
// v = c / ||c||. Only the 1000 pairs with the largest ||c||² >= 0.05 are considered, in descending order. A v with a cosine of more
// than 0.9 with a living atom or an earlier v is omitted. At most 4096 units.
//
// An atom that contains a whole other one is absorption: a limb together with the torso has one unit, and the limb alone has none.
// Among the 1000 pairs above, if two units exclude each other (the mean product of their activations over the sample is at most 0.1 of the
// product of their means), and their atoms have 0.3 <= a·b <= 0.9 and ||min(a, (a·b) b)||² >= 0.8 (a·b)², then (a·b) b is subtracted
// from a in every search, where positive values fall at most to 0 and others stay. This needs a decoder weight as below, or a decoder
// without weights (tied). For a part that is in every image there is the hook background.
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
	Sample    int     `toml:"sample" want:"> 0" doc:"number of training samples that are encoded, from the first"`
	Residuals bool    `toml:"residuals" doc:"draws units from what the reconstructions lack instead of from whole samples"`
	Common    bool    `toml:"common" doc:"with residuals: when the residuals are small, dead units get common parts of atoms"`
	Exchange  float64 `toml:"exchange" want:">= 0" doc:"with residuals: if no unit is dead, one is replaced if a new one would save more than this factor, >= 1, times the error that it saves; 0 for never"`
	Until     int     `toml:"until" want:">= 0" doc:"epoch after which no unit is re-initialised; 0 for none"`
}

func init() {
	Registry.Register("revive", "re-initialises dead units from samples with large reconstruction errors",
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

func (*Revive) NeedsSteps() (problem, hint string) {
	return "%s cannot continue from re-initialised weights: its curvature history would be wrong", "remove the hook"
}

// reviveBatch is the number of images that are encoded at once.
const reviveBatch = 500

func (*Revive) Replicated() (state bool) { return true }

func (r *Revive) Attach(t Training) (*Active, error) {
	weights, err := unitWeightsOf(t)
	if err != nil {
		return nil, err
	}
	if !r.Residuals {
		weights.perUnit = nil
	}
	if err := r.fits(weights.units); err != nil {
		return nil, err
	}
	h := &reviving{Revive: r, unitWeights: weights}
	return &Active{Begin: h.begin, BeginEpoch: h.beginEpoch}, nil
}

func (r *Revive) Suits(m Declared) error {
	encoder, err := suitable(m, "revive reads reconstruction errors, but the model has no decoder")
	if err != nil {
		return err
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

// reviving is the hook's state in a training.
type reviving struct {
	*Revive
	*unitWeights
	sample         int
	encode, decode Program
	squares        []float64 // by unit: the sum of its squared activations in the last search
	together       *together // of the last search; only with common
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
		common.subtractContained()
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
	if h.Residuals {
		h.draw(dead, next)
		return nil
	}
	before, err := h.squaredError()
	if err != nil {
		return err
	}
	return h.fitScale(h.draw(dead, next), before)
}

// mostHalvings is the maximum number of times that the encoder weights of re-initialised units are halved.
const mostHalvings = 10

// fitScale halves the encoder weights of re-initialised units until the squared error of the sample is at most what it was
// before. If that is not reached, it returns to the scale with the least error.
func (h *reviving) fitScale(units []int, before float64) error {
	best, least := 0, math.Inf(1)
	for halvings := 0; len(units) > 0; halvings++ {
		now, err := h.squaredError()
		if err != nil || now <= before {
			return err
		}
		if now < least {
			best, least = halvings, now
		}
		if halvings == mostHalvings {
			if best < halvings {
				h.scaleEncoder(units, float32(math.Exp2(float64(halvings-best))))
			}
			return nil
		}
		h.scaleEncoder(units, 0.5)
	}
	return nil
}

// squaredError returns the sum of the squared errors of the reconstructions of the sample.
func (h *reviving) squaredError() (sum float64, err error) {
	err = h.run(Output, h.decode, h.sample, func(x, y []float32) {
		for i, v := range x {
			sum += (float64(v) - float64(y[i])) * (float64(v) - float64(y[i]))
		}
	})
	return sum, err
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

// lacking is [reviving.directions] for the key residuals: it subtracts each direction from all residuals before it selects the
// next one.
func (h *reviving) lacking() (next func() ([]float32, bool), err error) {
	var residuals [][]float32
	var sizes []float64 // squared norms
	err = h.run(Output, h.decode, h.sample, func(x, y []float32) {
		r := make([]float32, len(x))
		for i, v := range x {
			r[i] = max(0, v-y[i])
		}
		residuals, sizes = append(residuals, r), append(sizes, squares(r, 0, 1, len(r)))
	})
	return func() ([]float32, bool) {
		largest, size := -1, 0.0
		for i, s := range sizes {
			if s > size {
				largest, size = i, s
			}
		}
		if largest < 0 {
			return nil, false
		}
		direction := slices.Clone(residuals[largest])
		for from := 0; from < len(residuals); from += abreast {
			var rows [abreast][]float32
			for i := copy(rows[:], residuals[from:]); i < abreast; i++ {
				rows[i] = make([]float32, len(direction)) // nobody reads it
			}
			list := subtractAlong(direction, size, rows)
			copy(sizes[from:], list[:])
		}
		return direction, true
	}, err
}

// abreast is the number of rows whose sums [subtractAlong] adds side by side: each addition waits for the last one of its row.
const abreast = 4

// subtractAlong subtracts from rows what they have of a direction with this squared norm, down to 0, and returns the squared norms of what is left.
func subtractAlong(direction []float32, size float64, rows [abreast][]float32) [abreast]float64 {
	a, b, c, d := rows[0], rows[1], rows[2], rows[3]
	var w, x, y, z float64
	for i, v := range direction {
		v := float64(v)
		w += v * float64(a[i])
		x += v * float64(b[i])
		y += v * float64(c[i])
		z += v * float64(d[i])
	}
	p, q, r, s := float32(w/size), float32(x/size), float32(y/size), float32(z/size)
	w, x, y, z = 0, 0, 0, 0
	for i, v := range direction {
		a[i], b[i], c[i], d[i] = max(0, a[i]-p*v), max(0, b[i]-q*v), max(0, c[i]-r*v), max(0, d[i]-s*v)
		w += float64(a[i]) * float64(a[i])
		x += float64(b[i]) * float64(b[i])
		y += float64(c[i]) * float64(c[i])
		z += float64(d[i]) * float64(d[i])
	}
	return [abreast]float64{w, x, y, z}
}

// dead reports for each unit whether it is dead.
func (h *reviving) dead() ([]bool, error) {
	var most []float32
	h.together = nil
	err := h.run(Code, h.encode, h.sample, func(_, code []float32) {
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
	err = h.run(Output, h.decode, h.sample, func(x, y []float32) {
		sum := 0.0
		for i, v := range x {
			sum += (float64(v) - float64(y[i])) * (float64(v) - float64(y[i]))
		}
		order, errs = append(order, len(errs)), append(errs, sum)
	})
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(errs[b], errs[a]) })
	return order, err
}

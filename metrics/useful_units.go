package metrics

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sort"

	"tessera/internal/engine/kernel"
	"tessera/internal/parallel/team"
	"tessera/internal/vectors"
	"tessera/internal/volume"
)

func init() {
	Registry.Register("useful_units", "units without which the error rises", func() Metric { return &UsefulUnits{} })
}

const (
	usefulImages = 2000    // maximum number of measured images
	usefulValues = 1 << 24 // maximum number of pixel values of these images
	usefulMost   = 4096    // maximum number of units: the order needs the products of all pairs of units
	usefulRise   = 0.01    // default of the accepted increase of the mean squared error
)

// UsefulUnits counts the units that the reconstructions need: the smallest number such that freezing all other units, at their
// mean activation over the images, raises the mean squared error by at most 1 %. The frozen units are found in two steps:
//
//  1. The order. Freezing the units of a set F changes the sum of the decoder's atoms by sum_(j in F) d_j w_j, d_j = mean(h_j) - h_j.
//     If the last activation is approximated as linear, the squared error rises by
//     sum_(j,l in F) <d_j, d_l> <w_j, w_l> - 2 sum_(j in F) <d_j, r w_j>, where r = x - y are the residuals. Starting with no frozen
//     unit, the unit with the smallest rise is frozen next, the first of equals.
//  2. The number. A bisection along that order, with the actual decoder, finds a number of frozen units that raises the error by
//     at most 1 %, while one more raises it by more.
//
// The order is greedy: a smaller set may exist. At most 2000 images with at most 2^24 values are measured, evenly spaced over
// the sample. The cost is log2(k) + 2 decodings of these images and O(images k (pixels + k)) multiplications: a fraction of a
// second for the study's models. The metric requires a decoder in which every unit weights one atom, and at most 4096 units.
type UsefulUnits struct {
	Rise float64 `toml:"rise" want:">= 0" doc:"accepted increase of the error, as a fraction of the error; 0 means 0.01"`
}

func (*UsefulUnits) Describe() Description {
	return Description{
		Measures: []Measure{{Name: "useful_units", Unit: "units", Better: Neither, Count: true,
			Doc: "least number of units such that freezing all others at their mean activation raises the mean squared error by no more than 1 %. " +
				"Found greedily, on up to 2000 samples evenly spaced over all. A unit that dead_units counts, because its activations are small, " +
				"may be one of them, if its atom is large. Only where every value of a code weighs one atom"}},
		Reads: ReadsImages | ReadsCodes | ReadsSums, ScaleFree: true, Ordered: true, Partial: true,
	}
}

func (m *UsefulUnits) Start(s *Subject) (Meter, error) {
	if s.Units > usefulMost {
		return Fixed(NotApplicable(fmt.Sprintf("there are more than %d units", usefulMost))), nil
	}
	if reason := lacksOutput(s.Coder, nil); reason != "" { // the error is that of reconstructions
		return Fixed(NotApplicable(reason)), nil
	}
	rise := m.Rise
	if rise == 0 {
		rise = usefulRise
	}
	pixels := volume.Of(s.Shape)
	most := max(1, min(usefulImages, usefulValues/pixels))
	return &usefulMeter{s.Coder, s.Atoms, rise, newSpaced(s, pixels, most), newSpaced(s, s.Atoms.Count, most)}, nil
}

type usefulMeter struct {
	coder         Coder
	atoms         *Atoms
	rise          float64
	images, codes spaced
}

func (m *usefulMeter) Add(b *Batch) error {
	m.images.add(b.Images)
	m.codes.add(b.Codes)
	return nil
}

func (m *usefulMeter) Values(ctx context.Context) ([]Value, error) {
	f, err := newFreezing(m)
	if err != nil {
		return nil, err
	}
	if math.IsNaN(f.error) {
		return []Value{Number(f.error)}, nil
	}
	order := f.order()
	// The search assumes that the error rises with the number of frozen units.
	most := (1 + m.rise) * f.error
	frozen := sort.Search(len(order), func(n int) bool {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return true
		}
		var e float64
		e, err = f.frozenError(order[:n+1])
		return !(e <= most)
	})
	return []Value{Number(float64(len(order) - frozen))}, err
}

// freezing computes the error of the reconstructions if units are frozen at their mean activation.
type freezing struct {
	*usefulMeter
	n         int
	means     []float32 // mean activation of each unit
	error     float64   // squared error with no unit frozen
	gram      []float64 // k x k: <d_j, d_l> <w_j, w_l>
	residuals []float64 // scratch
	gain      []float64 // <d_j, r w_j>: half of the decrease of the error by freezing unit j, if its gram entry were 0
}

// newFreezing decodes the codes and prepares the order.
func newFreezing(m *usefulMeter) (*freezing, error) {
	k := m.atoms.Count
	f := &freezing{usefulMeter: m, n: len(m.codes.rows) / k, means: make([]float32, k)}
	sums := unitSums{sums: make([]float64, k)}
	sums.add(m.codes.rows)
	for j, mean := range sums.means() {
		f.means[j] = float32(mean)
	}
	atoms := vectors.Wide(m.atoms.Values)
	d := make([]float64, len(m.codes.rows))
	for i, v := range m.codes.rows {
		d[i] = float64(f.means[i%k]) - float64(v)
	}
	f.gain = make([]float64, k)
	for from, to := range batches(f.n, f.images.width) {
		outputs, err := decode(m.coder, m.codes.rows[from*k:to*k])
		if err != nil {
			return nil, err
		}
		f.addResiduals(outputs, atoms, d[from*k:to*k], from, to)
	}
	gemm := kernel.Float64().Gemm
	lengths := make([]float64, k*k)
	f.gram = make([]float64, k*k)
	gemm(false, true, k, k, m.images.width, 1, atoms, m.images.width, atoms, m.images.width, 0, lengths, k)
	gemm(true, false, k, k, f.n, 1, d, k, d, k, 0, f.gram, k)
	for i, v := range lengths {
		f.gram[i] *= v
	}
	return f, nil
}

// addResiduals adds the error of some outputs, and the gain of freezing each unit on them.
func (f *freezing) addResiduals(outputs []float32, atoms, d []float64, from, to int) {
	k, n := f.atoms.Count, to-from
	f.residuals = slices.Grow(f.residuals[:0], len(outputs))
	residuals := f.residuals[:len(outputs)]
	for i, x := range f.images.rows[from*f.images.width : to*f.images.width] {
		residuals[i] = float64(x) - float64(outputs[i])
		f.error += residuals[i] * residuals[i]
	}
	along := make([]float64, n*k) // residuals x atoms'
	const rows = 50
	team.For(n, rows, func(a, b int) {
		kernel.Float64().Gemm(false, true, b-a, k, f.images.width, 1, residuals[a*f.images.width:], f.images.width, atoms, f.images.width, 0, along[a*k:], k)
	})
	for i, v := range along {
		f.gain[i%k] += d[i] * v
	}
}

// order returns the units in the order in which they are frozen.
func (f *freezing) order() []int {
	k := f.atoms.Count
	rise, frozen, order := make([]float64, k), make([]bool, k), make([]int, 0, k)
	for j := range rise {
		rise[j] = f.gram[j*k+j] - 2*f.gain[j]
	}
	for range k {
		next, least := -1, math.Inf(1)
		for j, v := range rise {
			if !frozen[j] && (next < 0 || v < least) {
				next, least = j, v
			}
		}
		frozen[next], order = true, append(order, next)
		for j := range rise {
			rise[j] += 2 * f.gram[next*k+j]
		}
	}
	return order
}

// frozenError returns the squared error of the reconstructions with these units frozen.
func (f *freezing) frozenError(units []int) (sum float64, err error) {
	k := f.atoms.Count
	var squares imageSum
	for from, to := range batches(f.n, f.images.width) {
		codes := append([]float32(nil), f.codes.rows[from*k:to*k]...)
		for i := 0; i < len(codes); i += k {
			for _, j := range units {
				codes[i+j] = f.means[j]
			}
		}
		outputs, err := decode(f.coder, codes)
		if err != nil {
			return 0, err
		}
		images := f.images.rows[from*f.images.width : to*f.images.width]
		squares.add(to-from, 25, func(i int) float64 {
			return squaredError(images[i*f.images.width:(i+1)*f.images.width], outputs[i*f.images.width:(i+1)*f.images.width])
		})
	}
	return squares.sum, nil
}

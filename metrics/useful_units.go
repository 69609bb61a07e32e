package metrics

import (
	"context"
	"fmt"
	"math"
	"sort"

	"tessera/internal/volume"
)

func init() {
	Registry.Register("useful_units", "units without which the error rises", func() Metric { return &UsefulUnits{} })
}

const (
	usefulImages = 2000    // how many images are measured at most
	usefulValues = 1 << 24 // and how many values they have at most
	usefulMost   = 4096    // units: the order needs the products of all pairs
	usefulRise   = 0.01    // of the mean squared error, by default
)

// UsefulUnits is the least number of units such that freezing all others at their mean activation, over these images, raises
// the mean squared error of reconstructions by no more than 1 %. The units that are frozen are found in two steps:
//
//  1. An order. Freezing the units of a set F changes the sum of the decoder's atoms by sum_(j in F) d_j w_j, d_j = mean(h_j) - h_j.
//     While the last activation is taken as linear, the squared error of the residuals r = x - y rises by
//     sum_(j,l in F) <d_j, d_l> <w_j, w_l> - 2 sum_(j in F) <d_j, r w_j>. Starting with no unit frozen, the unit that makes
//     this rise least is frozen next, the first of equals.
//  2. How many. A bisection along that order with the decoder itself finds a number of frozen units that raises the error by
//     no more than 1 %, where one more raises it by more.
//
// The order is greedy: another set may be smaller. At most 2000 images of at most 2^24 values are measured, evenly spaced over
// all. The cost is that of decoding these log2(k) + 2 times, and of O(images k (pixels + k)) multiplications: a fraction of a
// second for the study's models. It needs a decoder in which every value of a code weighs one atom, and at most 4096 units.
type UsefulUnits struct {
	Rise float64 `toml:"rise" want:">= 0" doc:"how much the error may rise, as a fraction of it; 0 takes 0.01"`
}

// Describe implements [Metric].
func (*UsefulUnits) Describe() Description {
	return Description{
		Measures: []Measure{{Name: "useful_units", Unit: "units", Better: Higher, Count: true,
			Doc: "least number of units such that freezing all others at their mean activation raises the mean squared error by no more than 1 %. " +
				"Found greedily, on up to 2000 images evenly spaced over all. Only where every value of a code weighs one atom"}},
		Reads: ReadsImages | ReadsCodes | ReadsAtoms, ScaleFree: true, Ordered: true, Partial: true,
	}
}

// Start implements [Metric].
func (m *UsefulUnits) Start(s *Subject) (Meter, error) {
	if why := otherAtoms(s); why != "" {
		return Fixed(NotApplicable(why)), nil
	}
	if s.Units > usefulMost {
		return Fixed(NotApplicable(fmt.Sprintf("there are more than %d units", usefulMost))), nil
	}
	rise := m.Rise
	if rise == 0 {
		rise = usefulRise
	}
	pixels := volume.Of(s.Shape)
	most := max(1, min(usefulImages, usefulValues/pixels))
	return &usefulMeter{coder: s.Coder, atoms: s.Atoms, pixels: pixels, rise: rise, every: max(1, (s.Images+most-1)/most)}, nil
}

type usefulMeter struct {
	coder  Coder
	atoms  *Atoms
	pixels int
	rise   float64
	every  int // each image of that many is measured
	seen   int

	images, codes []float32 // of those
}

// Add implements [Meter].
func (m *usefulMeter) Add(b *Batch) error {
	k := m.atoms.Count
	n := len(b.Codes) / k
	for i := range n {
		if (m.seen+i)%m.every == 0 {
			m.images = append(m.images, b.Images[i*m.pixels:(i+1)*m.pixels]...)
			m.codes = append(m.codes, b.Codes[i*k:(i+1)*k]...)
		}
	}
	m.seen += n
	return nil
}

// Values implements [Meter].
func (m *usefulMeter) Values(ctx context.Context) ([]Value, error) {
	f, err := newFreezing(m)
	if err != nil {
		return nil, err
	}
	if math.IsNaN(f.error) {
		return []Value{Number(f.error)}, nil
	}
	order := f.order()
	// The search takes the error as rising with the number of frozen units.
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

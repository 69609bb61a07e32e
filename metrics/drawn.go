package metrics

import (
	"context"
	"errors"

	"tessera/internal/volume"
)

// drawnNeighbours is the neighbour that determines the radius of a ball of [PrecisionRecall], that of the source.
const drawnNeighbours = 3

// mostDrawn is the maximum number of images that the metric drawn compares with as many drawn ones.
const mostDrawn = 1000

// The metric drawn compares images that the model draws with the measured images, by [PrecisionRecall] of their values.
func init() {
	const where = ", in the space of their values, of at most 1000 images each (Kynkäänniemi et al. 2019). For models from which images can be drawn"
	register("drawn", "precision and recall of drawn images", Description{
		Measures: []Measure{
			{Name: "drawn_precision", Better: Higher, Doc: "share of the drawn images that are as near to a measured image as that one's third nearest neighbour is" + where},
			{Name: "drawn_recall", Better: Higher, Doc: "share of the measured images that are as near to a drawn image as that one's third nearest neighbour is" + where},
		},
		Reads: ReadsImages, Ordered: true, Partial: true, OnRequest: true,
	}, func(s *Subject) (Meter, error) {
		sampler, ok := As[Sampler](s.Coder)
		if !ok {
			none := NotApplicable(ErrNoSampler.Error())
			return Fixed(none, none), nil
		}
		return &drawnMeter{sampler: sampler, seed: s.Seed, kept: newSpread(s.Images, mostDrawn, volume.Of(s.Shape))}, nil
	})
}

type drawnMeter struct {
	sampler Sampler
	seed    uint64
	kept    spread
}

func (m *drawnMeter) Add(b *Batch) error {
	m.kept.add(b.Images, func(int) {})
	return nil
}

func (m *drawnMeter) Values(ctx context.Context) ([]Value, error) {
	n := len(m.kept.rows) / m.kept.width
	if n <= drawnNeighbours {
		none := NotApplicable("there are too few images")
		return []Value{none, none}, nil
	}
	drawn, err := m.sampler.Draw(ctx, n, m.seed)
	if errors.Is(err, ErrNoSampler) {
		none := NotApplicable(err.Error())
		return []Value{none, none}, nil
	}
	if err != nil {
		return nil, err
	}
	precision, recall, err := PrecisionRecall(m.kept.rows, drawn, m.kept.width, drawnNeighbours)
	return []Value{Number(precision), Number(recall)}, err
}

// spread keeps at most a number of rows, evenly spaced.
type spread struct {
	width, every, seen int
	rows               []float32
}

func newSpread(n, most, width int) spread { return spread{width: width, every: (n + most - 1) / most} }

// add adds rows, and calls f with the index of each row that is kept.
func (s *spread) add(rows []float32, f func(i int)) {
	for i := range len(rows) / s.width {
		if s.seen++; (s.seen-1)%s.every == 0 {
			s.rows = append(s.rows, rows[i*s.width:(i+1)*s.width]...)
			f(i)
		}
	}
}

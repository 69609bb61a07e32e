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

// The shares are those of [PrecisionRecall].
func init() {
	const where = ", in the space of their values, of at most 1000 samples each (Kynkäänniemi et al. 2019). For models from which samples can be drawn"
	register("drawn", "precision and recall of drawn samples", Description{
		Measures: []Measure{
			{Name: "drawn_precision", Better: Higher, Doc: "share of the drawn samples that are as near to a measured sample as that one's third nearest neighbour is" + where},
			{Name: "drawn_recall", Better: Higher, Doc: "share of the measured samples that are as near to a drawn sample as that one's third nearest neighbour is" + where},
		},
		Reads: ReadsImages, Ordered: true, Partial: true, OnRequest: true,
	}, func(s *Subject) (Meter, error) {
		sampler, ok := As[Sampler](s.Coder)
		if !ok {
			return Fixed(NotApplicable(ErrNoSampler.Error())), nil
		}
		return &drawnMeter{sampler: sampler, seed: s.Seed, spaced: newSpaced(s, volume.Of(s.Shape), mostDrawn)}, nil
	})
}

type drawnMeter struct {
	spaced
	sampler Sampler
	seed    uint64
}

func (m *drawnMeter) Add(b *Batch) error {
	m.add(b.Images)
	return nil
}

func (m *drawnMeter) Values(ctx context.Context) ([]Value, error) {
	n := len(m.rows) / m.width
	if n <= drawnNeighbours {
		return []Value{NotApplicable("there are too few samples")}, nil
	}
	drawn, err := m.sampler.Draw(ctx, n, m.seed)
	if errors.Is(err, ErrNoSampler) {
		return []Value{NotApplicable(err.Error())}, nil
	}
	if err != nil {
		return nil, err
	}
	precision, recall, err := PrecisionRecall(m.rows, drawn, m.width, drawnNeighbours)
	return []Value{Number(precision), Number(recall)}, err
}

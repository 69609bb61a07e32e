package metrics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"tessera/data"
	"tessera/internal/engine/kernel"
	"tessera/internal/lists"
	"tessera/internal/vectors"
	"tessera/internal/volume"
)

// Pair is the names of two values of a sample that are trained to be alike, such as those of a picture and of a text about it.
type Pair struct{ First, Second string }

// PairModel is a [Coder] that may have such values.
type PairModel interface {
	Coder
	// Pair returns their names, nil if the model has none.
	Pair() *Pair
}

// pairOf returns the values of a coder that are trained to be alike, nil if it has none.
func pairOf(c Coder) *Pair {
	p, ok := As[PairModel](c)
	if !ok {
		return nil
	}
	return p.Pair()
}

func init() {
	Registry.Register("retrieval", "how often one value of a sample finds the other one among those of all samples", func() Metric { return &Retrieval{K: 10} })
}

// Retrieval measures how well two values of a sample, such as those of a picture and of a text, find each other. Let s_ij be the cosine of the
// first value of sample i and the second value of sample j. With the n measured samples, ranked for each i by s_ij (equal ones by j), and for each j by
// s_ij over i for the other direction:
//
//	first  = share of the samples whose nearest value belongs to them
//	recall = share of the samples for which one of the k nearest does
//
// A value belongs to a sample if it is that of the sample itself or, where both have labels, of a sample of the same class: two pictures of one kind
// have the same texts. Source: Radford et al., Learning transferable visual models from natural language supervision (CLIP), 2021.
type Retrieval struct {
	K int `toml:"k" want:"> 0" doc:"number of nearest values among which recall looks; 0 means 10"`
}

func (*Retrieval) Describe() Description {
	const of = " (of pictures and texts: the texts of pictures)"
	return Description{
		Measures: []Measure{
			{Name: "retrieval_first", Better: Higher, Doc: "share of the samples whose first value is nearest, by the cosine, to the second value of the sample itself or of one of its class" + of},
			{Name: "retrieval_recall", Better: Higher, Doc: "share of the samples for which such a value is among the 10 nearest; `--with k=5` changes the number"},
			{Name: "retrieval_back_first", Better: Higher, Doc: "the same as `retrieval_first` with both values exchanged (the pictures of texts)"},
			{Name: "retrieval_back_recall", Better: Higher, Doc: "the same as `retrieval_recall` with both values exchanged"},
		},
		Reads: ReadsImages | ReadsPair, ScaleFree: true, Ordered: true, Partial: true,
	}
}

func (m *Retrieval) Start(s *Subject) (Meter, error) {
	p := pairOf(s.Coder)
	if p == nil {
		return nil, errors.New("metrics: retrieval: the model has no two values that the loss contrastive compares")
	}
	return &retrievalMeter{pair: *p, k: cmp.Or(m.K, 10), pixels: volume.Of(s.Shape)}, nil
}

type retrievalMeter struct {
	pair          Pair
	k, pixels, n  int
	first, second []float64
	labels        []float32 // nil if there are none
}

func (m *retrievalMeter) Add(b *Batch) error {
	first, err := b.Value(m.pair.First)
	if err != nil {
		return err
	}
	second, err := b.Value(m.pair.Second)
	if err != nil {
		return err
	}
	if len(first) != len(second) {
		return fmt.Errorf("metrics: retrieval: got %d and %d values of %s and %s, want as many", len(first), len(second), m.pair.First, m.pair.Second)
	}
	m.first, m.second = append(m.first, vectors.Wide(first)...), append(m.second, vectors.Wide(second)...)
	m.labels = append(m.labels, b.Columns[data.LabelsColumn]...)
	m.n += len(b.Images) / m.pixels
	return nil
}

func (m *retrievalMeter) Values(ctx context.Context) ([]Value, error) {
	if m.n < 2 || len(m.first)%m.n != 0 {
		return []Value{NotApplicable("fewer than two samples")}, nil
	}
	toLength1(m.first, len(m.first)/m.n)
	toLength1(m.second, len(m.second)/m.n)
	var all []Value
	for _, pair := range [2][2][]float64{{m.first, m.second}, {m.second, m.first}} {
		first, recall, err := m.found(ctx, pair[0], pair[1])
		if err != nil {
			return nil, err
		}
		all = append(all, Number(first), Number(recall))
	}
	return all, nil
}

// found returns the shares of rows of a that find theirs in b first, and among the k nearest.
func (m *retrievalMeter) found(ctx context.Context, a, b []float64) (first, recall float64, err error) {
	const rows = 64
	width, n := len(a)/m.n, m.n
	all, order := make([]float64, min(rows, n)*n), lists.Range(0, n)
	for from := 0; from < n; from += rows {
		if err := ctx.Err(); err != nil {
			return 0, 0, err
		}
		count := min(rows, n-from)
		kernel.Float64().Gemm(false, true, count, n, width, 1, a[from*width:], width, b, width, 0, all, n)
		for i := range count {
			similar, label := all[i*n:(i+1)*n], m.label(from+i)
			slices.SortFunc(order, func(x, y int) int { return cmp.Or(cmp.Compare(similar[y], similar[x]), x-y) })
			at := slices.IndexFunc(order[:min(m.k, n)], func(j int) bool { return j == from+i || label >= 0 && label == m.label(j) })
			if at == 0 {
				first += 1 / float64(n)
			}
			if at >= 0 {
				recall += 1 / float64(n)
			}
		}
	}
	return first, recall, nil
}

// label returns the class of a sample, negative if it is unknown.
func (m *retrievalMeter) label(i int) float32 {
	if len(m.labels) != m.n {
		return -1
	}
	return m.labels[i]
}

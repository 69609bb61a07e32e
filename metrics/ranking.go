package metrics

import (
	"cmp"
	"context"
	"math"
	"slices"

	"tessera/data"
	"tessera/internal/volume"
)

func init() {
	Registry.Register("ranking", "ranks of the hidden entries of samples among all that are not observed", func() Metric { return &Ranking{K: 10} })
}

// Ranking ranks, for each sample, the values that are not observed by their predictions, the largest first and of equal ones that with the
// lower index, and measures where the hidden entries (`hide` and `leave` of the data set) stand. With hits at the ranks r <= k of the R
// relevant entries of a sample,
//
//	precision = hits / k
//	recall    = hits / R
//	map       = 1 / min(R, k) sum over hits of (hits up to its rank) / r
//	ndcg      = sum over hits of 1 / log2(r + 1), divided by the same sum for hits at the ranks 1 to min(R, k)
//
// The measures are means over the samples with a relevant entry. Sources: G. Shani, A. Gunawardana, Evaluating recommendation systems, 2011;
// K. Järvelin, J. Kekäläinen, Cumulated gain-based evaluation of IR techniques, 2002.
type Ranking struct {
	K     int     `toml:"k" want:"> 0" doc:"number of first ranks that count; 0 means 10"`
	Least float64 `toml:"least" doc:"smallest value of a hidden entry that is relevant, before scale, such as a good rating; 0 for all"`
}

func (*Ranking) Describe() Description {
	const where = ", mean over the samples with a hidden entry. `--with k=5` changes 10, `--with least=4` counts hidden entries of at least 4 only. Not applicable to data without hidden entries (`hide`, `leave`)"
	return Description{
		Measures: []Measure{
			{Name: "ranking_precision", Better: Higher, Doc: "share of hidden entries among the 10 largest predictions of entries that were not observed" + where},
			{Name: "ranking_recall", Better: Higher, Doc: "share of the hidden entries that are among the 10 largest predictions of entries that were not observed" + where},
			{Name: "ranking_map", Better: Higher, Doc: "mean average precision of the 10 largest predictions: the sum, over the hidden entries among them, of the precision down to each, divided by its largest possible number of terms" + where},
			{Name: "ranking_ndcg", Better: Higher, Doc: "normalised discounted cumulative gain of the 10 largest predictions: Σ 1/log2(rank + 1) of the hidden entries among them, divided by its largest possible value (Järvelin and Kekäläinen 2002)" + where},
		},
		Reads: ReadsImages | ReadsOutputs, Ordered: true, Partial: true, OnRequest: true, Masked: true,
	}
}

func (m *Ranking) Start(s *Subject) (Meter, error) {
	return &rankingMeter{k: cmp.Or(m.K, 10), least: m.Least, width: volume.Of(s.Shape), scaling: s.Scaling}, nil
}

type rankingMeter struct {
	k, width int
	least    float64
	scaling  *data.Scaling
	sums     [4]float64
	n        int
	others   bool // there are entries that are not known and not hidden
}

func (m *rankingMeter) Add(b *Batch) error {
	held, complete, observed := b.Columns[data.HeldOutColumn], b.Columns[data.CompleteColumn], b.Observed()
	if held == nil || complete == nil {
		return nil
	}
	var places []int
	for from, width := 0, m.width; from < len(b.Outputs); from += width {
		places = places[:0]
		relevant := 0
		if m.scaling != nil && m.least != 0 { // the key least is in the unit of the file
			complete = slices.Clone(complete)
			m.scaling.Undo(complete[from : from+width])
		}
		for j := from; j < from+width; j++ {
			if observed[j] == 0 {
				places = append(places, j)
				m.others = m.others || held[j] == 0
			}
			if m.relevant(held[j], complete[j]) {
				relevant++
			}
		}
		if relevant == 0 {
			continue
		}
		slices.SortStableFunc(places, func(a, c int) int { return cmp.Compare(b.Outputs[c], b.Outputs[a]) })
		m.add(places[:min(m.k, len(places))], relevant, func(j int) bool { return m.relevant(held[j], complete[j]) })
	}
	return nil
}

func (m *rankingMeter) relevant(held, value float32) bool {
	return held != 0 && (m.least == 0 || float64(value) >= m.least)
}

// add adds a sample, by its first ranks.
func (m *rankingMeter) add(ranks []int, relevant int, hit func(int) bool) {
	hits, average, gain, most := 0.0, 0.0, 0.0, 0.0
	for i, j := range ranks {
		if hit(j) {
			hits++
			average += hits / float64(i+1)
			gain += 1 / math.Log2(float64(i+2))
		}
	}
	for i := range min(relevant, m.k) {
		most += 1 / math.Log2(float64(i+2))
	}
	m.n++
	for i, v := range []float64{hits / float64(m.k), hits / float64(relevant), average / float64(min(relevant, m.k)), gain / most} {
		m.sums[i] += v
	}
}

func (m *rankingMeter) Values(context.Context) ([]Value, error) {
	values := make([]Value, len(m.sums))
	for i, sum := range m.sums {
		if values[i] = Number(sum / float64(m.n)); m.n == 0 {
			values[i] = NotApplicable("no sample has such an entry")
		} else if !m.others {
			values[i] = NotApplicable("every other entry is known, so that only hidden entries could be ranked")
		}
	}
	return values, nil
}

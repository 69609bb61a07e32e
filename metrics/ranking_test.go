package metrics

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// The measures equal loops over all pairs of columns, without sorting.
func TestRankingEqualsPlainLoops(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	const n, width, k, least = 60, 23, 5, 2
	b := &Batch{Outputs: uniform(r, n*width), Columns: map[string][]float32{data.ObservedColumn: make([]float32, n*width), data.HeldOutColumn: make([]float32, n*width), data.CompleteColumn: make([]float32, n*width)}}
	for i := range b.Outputs {
		b.Outputs[i] = float32(math.Floor(8 * float64(b.Outputs[i]))) // many are equal
		switch r.IntN(4) {
		case 0:
			b.Columns[data.ObservedColumn][i] = 1
		case 1:
			b.Columns[data.HeldOutColumn][i] = float32(1 - i/width%2*(i/width%3/2)) // some samples have none
			b.Columns[data.CompleteColumn][i] = float32(r.IntN(4))
		}
	}
	var want [4]float64
	counted := 0.0
	for i := range n {
		at := func(name string, j int) float32 { return b.Columns[name][i*width+j] }
		relevant, all := map[int]bool{}, 0
		for j := range width {
			if at(data.HeldOutColumn, j) == 1 && at(data.CompleteColumn, j) >= least {
				relevant[j] = true
				all++
			}
		}
		if all == 0 {
			continue
		}
		counted++
		var byRank [width]bool
		for j := range width {
			if at(data.ObservedColumn, j) == 1 {
				continue
			}
			rank := 0
			for o := range width {
				if x, y := b.Outputs[i*width+o], b.Outputs[i*width+j]; at(data.ObservedColumn, o) == 0 && (x > y || x == y && o < j) {
					rank++
				}
			}
			byRank[rank] = relevant[j]
		}
		hits, average, gain, ideal := 0.0, 0.0, 0.0, 0.0
		for rank := range k {
			if byRank[rank] {
				hits++
				average += hits / float64(rank+1)
				gain += math.Ln2 / math.Log(float64(rank+2))
			}
			if rank < all {
				ideal += math.Ln2 / math.Log(float64(rank+2))
			}
		}
		want[0] += hits / k
		want[1] += hits / float64(all)
		want[2] += average / math.Min(float64(all), k)
		want[3] += gain / ideal
	}
	meter, err := (&Ranking{K: k, Least: least}).Start(&Subject{Shape: []int{width}})
	fatal.If(t, err)
	fatal.If(t, meter.Add(b))
	values, _ := meter.Values(context.Background())
	if counted == n || counted < n/2 {
		t.Fatalf("%v of %d samples count", counted, n)
	}
	for i, v := range values {
		expect.Near(t, v.Number, want[i]/counted, 1e-12, (&Ranking{}).Describe().Measures[i].Name)
	}
}

// Where every other entry is known, only the hidden ones can be ranked, and any model would be right.
func TestARankingNeedsOtherEntries(t *testing.T) {
	b := &Batch{Outputs: []float32{1, 2}, Columns: map[string][]float32{data.ObservedColumn: {1, 0}, data.HeldOutColumn: {0, 1}, data.CompleteColumn: {1, 1}}}
	m := &rankingMeter{k: 1, width: 2}
	fatal.If(t, m.Add(b))
	values, err := m.Values(t.Context())
	if err != nil || values[0].Missing == "" {
		t.Errorf("got %+v, %v", values, err)
	}
}

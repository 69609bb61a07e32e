package metrics

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tessera/data"
	"tessera/internal/fatal"
)

// Ranks by plain loops over all pairs, with and without labels, are those of the metric, whose blocks do not divide the samples evenly.
func TestRetrievalCountsRanks(t *testing.T) {
	const n, width, k = 150, 6, 5
	r := rand.New(rand.NewPCG(1, 7))
	first, second, labels := make([]float32, n*width), make([]float32, n*width), make([]float32, n)
	for i := range first {
		first[i] = float32(r.NormFloat64())
		second[i] = first[i] + float32(0.7*r.NormFloat64())
	}
	for i := range labels {
		labels[i] = float32(r.IntN(30) - 1) // -1 is unknown
	}
	cosine := func(a, b []float32) float64 {
		var ab, aa, bb float64
		for i, v := range a {
			ab, aa, bb = ab+float64(v)*float64(b[i]), aa+float64(v)*float64(v), bb+float64(b[i])*float64(b[i])
		}
		return ab / math.Sqrt(aa*bb)
	}
	for _, labels := range [][]float32{nil, labels} {
		m := &retrievalMeter{pair: Pair{"a", "b"}, k: k, pixels: 2}
		for from := 0; from < n; from += 40 {
			to := min(from+40, n)
			b := &Batch{Images: make([]float32, 2*(to-from)), coder: pairs{first: first[from*width : to*width], second: second[from*width : to*width]}}
			if labels != nil {
				b.Columns = map[string][]float32{data.LabelsColumn: labels[from:to]}
			}
			fatal.If(t, m.Add(b))
		}
		got, err := m.Values(context.Background())
		fatal.If(t, err)
		var want []float64
		for _, pair := range [][2][]float32{{first, second}, {second, first}} {
			hits := [2]int{}
			for i := range n {
				better := n // samples that are nearer than the nearest that belongs to sample i
				for j := range n {
					if j != i && (labels == nil || labels[i] < 0 || labels[i] != labels[j]) {
						continue
					}
					nearer := 0
					for o := range n {
						if cosine(pair[0][i*width:(i+1)*width], pair[1][o*width:(o+1)*width]) > cosine(pair[0][i*width:(i+1)*width], pair[1][j*width:(j+1)*width]) {
							nearer++
						}
					}
					better = min(better, nearer)
				}
				if better == 0 {
					hits[0]++
				}
				if better < k {
					hits[1]++
				}
			}
			want = append(want, float64(hits[0])/n, float64(hits[1])/n)
		}
		if !slices.EqualFunc(got, want, func(v Value, w float64) bool { return math.Abs(v.Number-w) < 1e-12 }) || want[0] == 1 {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

// pairs is a coder with two values.
type pairs struct {
	Coder
	first, second []float32
}

func (p pairs) ValueOf(name string, _ map[string][]float32) ([]float32, error) {
	if name == "a" {
		return p.first, nil
	}
	return p.second, nil
}

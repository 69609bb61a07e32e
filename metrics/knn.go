package metrics

import (
	"context"
	"math"
	"slices"

	"tessera/internal/fit"
	"tessera/internal/parallel/team"
)

func init() {
	Registry.Register("knn", "classification of the codes by their nearest neighbours", func() Metric { return &KNN{Neighbours: 5} })
}

// KNN classifies every labelled sample by its nearest neighbours among all others. Of equally distant samples the one with the lower index is
// nearer, of equally frequent classes the one with the lowest index is predicted. With fewer samples than neighbours, all others are neighbours.
// The complexity is O(samples² units).
//
// Source: T. Cover, P. Hart, Nearest neighbor pattern classification, IEEE Trans. Information Theory 13(1), 1967.
type KNN struct {
	Neighbours int `toml:"neighbours" want:"> 0" doc:"number of neighbours that determine the class; 0 means 5"`
}

func (*KNN) Describe() Description {
	return Description{
		Measures: []Measure{{Name: "knn_accuracy", Better: Higher,
			Doc: "accuracy of classifying every labelled sample by its 5 nearest neighbours among all other measured samples with labels. Euclidean distance of the " +
				"contributions h_j \\|w_j\\|₂; only where every value of a code weighs one atom"}},
		Reads: ReadsCodes | ReadsSums | ReadsLabels, ScaleFree: true, Ordered: true, OnRequest: true,
	}
}

func (m *KNN) Start(s *Subject) (Meter, error) {
	return contributionReadout("knn_accuracy", s, neighbours(m.Neighbours)), nil
}

// neighbours returns the accuracy of the classes of the nearest codes.
func neighbours(k int) func(ctx context.Context, p *fit.Labelled) ([]Value, error) {
	if k < 1 {
		k = 5
	}
	return func(ctx context.Context, p *fit.Labelled) ([]Value, error) {
		right := make([]float64, p.N)
		team.For(p.N, 50, func(from, to int) {
			votes := make([]int, len(p.Classes))
			for i := from; i < to && ctx.Err() == nil; i++ {
				clear(votes)
				for _, j := range nearest(p, i, min(k, p.N-1)) {
					votes[p.Labels[j]]++
				}
				if slices.Index(votes, slices.Max(votes)) == p.Labels[i] {
					right[i] = 1
				}
			}
		})
		return []Value{Number(mean(right, len(right)))}, ctx.Err()
	}
}

// nearest returns the indices of the k rows nearest to row i.
func nearest(p *fit.Labelled, i, k int) []int {
	row := p.Row(i)
	found, distances := make([]int, 0, k+1), make([]float64, 0, k+1) // ascending
	for j := range p.N {
		if j == i {
			continue
		}
		most := math.Inf(1)
		if len(found) == k {
			most = distances[k-1]
		}
		d := squaredDistanceUpTo(row, p.Row(j), most)
		if len(found) == k && d >= most {
			continue
		}
		at := len(found)
		for at > 0 && d < distances[at-1] {
			at--
		}
		found, distances = slices.Insert(found, at, j), slices.Insert(distances, at, d)
		if len(found) > k {
			found, distances = found[:k], distances[:k]
		}
	}
	return found
}

// squaredDistanceUpTo returns the sum of (a - b)^2 if it is below most, otherwise a number that is not. Partial sums only increase,
// so a sum that has reached most is not completed. Most pairs of codes end early.
func squaredDistanceUpTo(a, b []float64, most float64) (sum float64) {
	const block = 8
	b = b[:len(a)]
	for len(a) > block && sum < most {
		for i, v := range a[:block] {
			d := v - b[i]
			sum += d * d
		}
		a, b = a[block:], b[block:]
	}
	if sum >= most {
		return sum
	}
	for i, v := range a {
		d := v - b[i]
		sum += d * d
	}
	return sum
}

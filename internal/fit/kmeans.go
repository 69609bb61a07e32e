package fit

import (
	"context"
	"math"
	"math/rand/v2"

	"tessera/internal/parallel/team"
)

// KMeans clusters rows (n x width) by Lloyd's algorithm from several starts, which k-means++ draws with a generator each, and returns the
// cluster of each row, of the start with the smallest sum of squared distances.
func KMeans(ctx context.Context, rows []float64, width, clusters, starts int, generator func(start int) *rand.Rand) (nearest []int, err error) {
	l, least := &lloyd{rows: rows, width: width}, math.Inf(1)
	for start := range starts {
		l.seed(clusters, generator(start))
		sum, err := l.run(ctx)
		if err != nil {
			return nil, err
		}
		if nearest == nil || sum < least {
			least, nearest = sum, append(nearest[:0], l.nearest...)
		}
	}
	return nearest, nil
}

// Lloyd runs Lloyd's algorithm from given centres, which it moves, and returns the cluster of each row and the sum of squared distances.
func Lloyd(ctx context.Context, rows []float64, width int, centres []float64) (nearest []int, sum float64, err error) {
	l := &lloyd{rows: rows, width: width, centres: centres}
	sum, err = l.run(ctx)
	return l.nearest, sum, err
}

// iterations is the maximum number of iterations from one initialisation of k-means.
const iterations = 300

// lloyd is Lloyd's algorithm for k-means in float64. It ends when no row changes its cluster.
type lloyd struct {
	rows      []float64 // n x width
	width     int
	centres   []float64 // clusters x width
	nearest   []int     // cluster of each row
	distances []float64 // squared distance of each row to its centre
}

func (l *lloyd) row(i int) []float64    { return l.rows[i*l.width : (i+1)*l.width] }
func (l *lloyd) centre(c int) []float64 { return l.centres[c*l.width : (c+1)*l.width] }

// seed draws the initial centres by k-means++: rows, with a probability proportional to the squared distance from the nearest
// centre so far.
func (l *lloyd) seed(clusters int, r *rand.Rand) {
	n := len(l.rows) / l.width
	l.centres = append(make([]float64, 0, clusters*l.width), l.row(r.IntN(n))...)
	nearest := make([]float64, n)
	for c := 1; c < clusters; c++ {
		total := 0.0
		for i := range nearest {
			if d := SquaredDistance(l.row(i), l.centre(c-1)); c == 1 || d < nearest[i] {
				nearest[i] = d
			}
			total += nearest[i]
		}
		chosen, left := 0, r.Float64()*total
		for i, d := range nearest {
			if d > 0 {
				chosen = i
				if left -= d; left < 0 {
					break
				}
			}
		}
		l.centres = append(l.centres, l.row(chosen)...)
	}
}

// run updates the centres until no row changes its cluster, and returns the sum of squared distances.
func (l *lloyd) run(ctx context.Context) (sum float64, err error) {
	n := len(l.rows) / l.width
	l.nearest, l.distances = make([]int, n), make([]float64, n)
	for i := range l.nearest {
		l.nearest[i] = -1
	}
	for iteration := 0; l.assign() && iteration < iterations; iteration++ {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		l.move()
	}
	return total(l.distances), nil
}

// assign finds the nearest centre of every row, the first of equally near ones, and reports whether any assignment changed.
func (l *lloyd) assign() bool {
	n := len(l.nearest)
	changed := make([]bool, n)
	team.For(n, 200, func(from, to int) {
		for i := from; i < to; i++ {
			best, least := 0, math.Inf(1)
			for c := range len(l.centres) / l.width {
				if d := SquaredDistance(l.row(i), l.centre(c)); d < least {
					best, least = c, d
				}
			}
			changed[i] = best != l.nearest[i]
			l.nearest[i], l.distances[i] = best, least
		}
	})
	for _, c := range changed {
		if c {
			return true
		}
	}
	return false
}

// move sets every centre to the mean of its rows. A centre without rows becomes the row that is farthest from its centre.
func (l *lloyd) move() {
	counts := make([]int, len(l.centres)/l.width)
	clear(l.centres)
	for i, c := range l.nearest {
		counts[c]++
		for j, v := range l.row(i) {
			l.centres[c*l.width+j] += v
		}
	}
	for c, count := range counts {
		if count > 0 {
			for j := range l.width {
				l.centres[c*l.width+j] /= float64(count)
			}
			continue
		}
		farthest := 0
		for i, d := range l.distances {
			if d > l.distances[farthest] {
				farthest = i
			}
		}
		copy(l.centre(c), l.row(farthest))
		l.distances[farthest] = 0
	}
}

// total returns the sum of the values, added in order.
func total(values []float64) (sum float64) {
	for _, v := range values {
		sum += v
	}
	return sum
}

package fit

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"tessera/internal/engine/kernel"
	"tessera/internal/parallel/team"
)

// KMeans is Lloyd's algorithm for k-means. A result is the same on any number of processors.
type KMeans struct {
	Rows
	Centres   []float32 // k x width
	Nearest   []int32   // index of the nearest centre of each row
	Distances []float32 // squared distance of each row to its nearest centre

	among Search    // the centres to which Nearest and Distances refer
	sums  *LaneSums // sum of the rows of each centre, minus the origin
}

// NewKMeans returns k-means of rows from given centres, which [KMeans.Move] changes, or nil for those that [KMeans.Seed] draws.
func NewKMeans(rows Rows, centres []float32) *KMeans {
	return &KMeans{Rows: rows, Centres: centres, Nearest: make([]int32, rows.N), Distances: make([]float32, rows.N)}
}

// maxIterations is the maximum number of iterations of [Clusters] from one start.
const maxIterations = 300

// Clusters clusters rows by k-means from several starts, which k-means++ draws with a generator each, and returns the cluster of each row,
// of the start with the smallest sum of squared distances.
func Clusters(ctx context.Context, rows []float32, width, k, starts int, generator func(start int) *rand.Rand) (nearest []int, err error) {
	least := math.Inf(1)
	for start := range starts {
		m := NewKMeans(Dense(rows, width), nil)
		m.Seed(k, 1, generator(start))
		if err := m.Run(ctx); err != nil {
			return nil, err
		}
		if sum := m.Sum(); nearest == nil || sum < least {
			least, nearest = sum, nearest[:0]
			for _, c := range m.Nearest {
				nearest = append(nearest, int(c))
			}
		}
	}
	return nearest, nil
}

// Run moves the centres until no row changes its centre.
func (m *KMeans) Run(ctx context.Context) error {
	m.Assign()
	var before []int32
	for i := 0; i < maxIterations && !slices.Equal(before, m.Nearest); i++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		before = slices.Clone(m.Nearest)
		m.Move()
		m.Assign()
	}
	return nil
}

// Assign finds the nearest centre of every row, and its distance.
func (m *KMeans) Assign() {
	p := m.Width
	m.among = NewSearch(m.Centres, p)
	team.For(m.N, m.Step(), func(from, to int) {
		var space []float32
		rows := m.Block(&space, from, to)
		m.among.Nearest(rows, m.Nearest[from:to])
		for i := from; i < to; i++ {
			c := int(m.Nearest[i]) * p
			m.Distances[i] = kernel.Float32().SquaredDistance(rows[(i-from)*p:(i-from+1)*p], m.Centres[c:c+p])
		}
	})
}

// Search finds nearest centres. The mean of the centres is subtracted from all values, so that a large common offset of the rows does
// not reduce the precision of the products.
type Search struct {
	Origin, Centres []float32 // mean of the centres, and the centres minus this mean
	Halves          []float32 // half the squared norm of each centre, after subtraction of the origin
}

// NewSearch returns a search among centres (k x width).
func NewSearch(centres []float32, width int) Search {
	k := len(centres) / width
	origin := ColumnMeans(centres, k, width)
	s := Search{origin, SubtractRow(centres, origin), make([]float32, k)}
	for j := range s.Halves {
		s.Halves[j] = kernel.Float32().SumSquares(s.Centres[j*width:(j+1)*width]) / 2
	}
	return s
}

// Nearest writes the index of the nearest centre of each row x: the centre c with the largest xc - |c|^2/2, the first of equally near ones.
func (s *Search) Nearest(rows []float32, nearest []int32) {
	n, k, p := len(nearest), len(s.Halves), len(s.Origin)
	products := make([]float32, n*k)
	kernel.Float32().Gemm(false, true, n, k, p, 1, SubtractRow(rows, s.Origin), p, s.Centres, p, 0, products, k)
	for i := range nearest {
		row := products[i*k : (i+1)*k]
		best := 0
		for j, v := range row {
			if v-s.Halves[j] > row[best]-s.Halves[best] {
				best = j
			}
		}
		nearest[i] = int32(best)
	}
}

// Move moves every centre to the mean of its rows. A centre without rows moves to the row that is farthest from its centre.
func (m *KMeans) Move() {
	ops, n, p := kernel.Float32(), m.N, m.Width
	if m.sums == nil {
		m.sums = NewLaneSums(n, len(m.Centres))
	}
	m.sums.Reset()
	origin := m.among.Origin
	ForLanes(n, func(lane, from, to int) {
		left := make([]float32, p)
		m.Each(from, to, func(i int, row []float32) {
			sum := m.sums.Sums[lane][int(m.Nearest[i])*p : (int(m.Nearest[i])+1)*p]
			ops.Sub(left, row, origin)
			ops.Add(sum, sum, left)
		})
	})
	total := make([]float32, len(m.Centres))
	m.sums.Total(total)
	counts := make([]int, len(m.Centres)/p)
	for _, c := range m.Nearest {
		counts[c]++
	}
	for j, count := range counts {
		centre := m.Centres[j*p : (j+1)*p]
		if count > 0 {
			ops.DivScalar(centre, total[j*p:(j+1)*p], float32(count))
			ops.Add(centre, centre, origin)
		} else if far := m.Farthest(); m.Distances[far] > 0 {
			copy(centre, m.Row(far))
			m.Distances[far] = 0 // another empty centre takes the next
		}
	}
}

// Farthest returns the row that is farthest from its centre.
func (m *KMeans) Farthest() int {
	far := 0
	for i, d := range m.Distances {
		if d > m.Distances[far] {
			far = i
		}
	}
	return far
}

// Sum returns the sum of the squared distances.
func (m *KMeans) Sum() (sum float64) {
	for _, d := range m.Distances {
		sum += float64(d)
	}
	return sum
}

// Seed draws k centres by k-means++: each is the best of several trials, rows that are drawn with a probability proportional to their
// squared distance from the nearest previous centre.
func (m *KMeans) Seed(k, trials int, rng *rand.Rand) {
	m.Centres = make([]float32, 0, k*m.Width)
	for i := range m.Distances {
		m.Distances[i] = math.MaxFloat32
	}
	candidates := []int{rng.IntN(len(m.Distances))}
	for range k {
		m.Centres = append(m.Centres, m.Row(m.Best(candidates))...)
		candidates = candidates[:0]
		for range trials {
			candidates = append(candidates, Drawn(m.Distances, rng.Float64()))
		}
	}
}

// Best returns the candidate with the smallest resulting sum of squared distances, the first of equal ones, and updates the distances
// for it.
func (m *KMeans) Best(candidates []int) int {
	n, rows := m.N, make([][]float32, len(candidates))
	for c, candidate := range candidates {
		rows[c] = m.Row(candidate)
	}
	sums := make([][]float64, Lanes(n))
	ForLanes(n, func(lane, from, to int) {
		if sums[lane] == nil {
			sums[lane] = make([]float64, len(candidates))
		}
		m.Each(from, to, func(i int, row []float32) {
			for c, candidate := range rows {
				sums[lane][c] += float64(min(m.Distances[i], kernel.Float32().SquaredDistance(row, candidate)))
			}
		})
	})
	best, least := 0, math.Inf(1)
	for c := range candidates {
		total := 0.0
		for _, s := range sums {
			total += s[c]
		}
		if total < least {
			best, least = c, total
		}
	}
	team.For(n, m.Step(), func(from, to int) {
		m.Each(from, to, func(i int, row []float32) {
			m.Distances[i] = min(m.Distances[i], kernel.Float32().SquaredDistance(row, rows[best]))
		})
	})
	return candidates[best]
}

// Drawn returns an index with a probability proportional to its weight, for u uniform in [0,1).
func Drawn(weights []float32, u float64) int {
	var total float64
	for _, w := range weights {
		total += float64(w)
	}
	if total == 0 {
		return int(u * float64(len(weights)))
	}
	left, last := u*total, 0
	for i, w := range weights {
		if w == 0 {
			continue
		}
		last = i
		if left -= float64(w); left < 0 {
			break
		}
	}
	return last
}

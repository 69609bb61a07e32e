package baselines

import (
	"math"

	"tessera/internal/random"
	"tessera/kernel"
	"tessera/parallel/team"
)

// seedCentres draws the first centres.
func (m *kmeans) seedCentres() {
	rng := random.Stream(m.seed, "init/centres", 0)
	trials := 2 + int(math.Log(float64(m.units)))
	m.atoms = make([]float32, 0, m.units*m.pixels)
	for i := range m.distances {
		m.distances[i] = math.MaxFloat32
	}
	candidates := []int{rng.IntN(m.n)}
	for range m.units {
		m.atoms = append(m.atoms, m.image(m.bestCentre(candidates))...)
		candidates = candidates[:0]
		for range trials {
			candidates = append(candidates, draw(m.distances, rng.Float64()))
		}
	}
}

// bestCentre returns the candidate with which the sum of the squared distances is least, the first of equals, and lowers the
// distances to those from it.
func (m *kmeans) bestCentre(candidates []int) int {
	sums := make([][]float64, laneCount(m.n))
	forLanes(m.n, func(lane, from, to int) {
		if sums[lane] == nil {
			sums[lane] = make([]float64, len(candidates))
		}
		for i := from; i < to; i++ {
			for c, candidate := range candidates {
				sums[lane][c] += float64(min(m.distances[i], kernel.Float32().SquaredDistance(m.image(i), m.image(candidate))))
			}
		}
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
	centre := m.image(candidates[best])
	team.For(m.n, blockSize, func(from, to int) {
		for i := from; i < to; i++ {
			m.distances[i] = min(m.distances[i], kernel.Float32().SquaredDistance(m.image(i), centre))
		}
	})
	return candidates[best]
}

// draw returns an index with a probability proportional to its weight, by a number u in [0,1).
func draw(weights []float32, u float64) int {
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

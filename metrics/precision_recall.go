package metrics

import (
	"fmt"
	"math"
	"slices"

	"tessera/internal/engine/kernel"
	"tessera/internal/parallel/team"
)

// PrecisionRecall compares generated images with real ones by their features: rows of width values each, with at least
// neighbours + 1 rows of either kind. The manifold of a set of rows is the union of balls around its rows; the radius of a ball is
// the distance of its row from the neighbours-th nearest other row of the set.
//
//	precision = share of the generated rows in the manifold of the real rows: how many generated images look real
//	recall    = share of the real rows in the manifold of the generated rows: how much of the variety of the real images is generated
//
// Both depend on the numbers of rows: compare models with equal numbers. Source: Kynkäänniemi et al., Improved precision and
// recall metric for assessing generative models, 2019, with neighbours = 3.
func PrecisionRecall(real, generated []float32, width, neighbours int) (precision, recall float64, err error) {
	if width < 1 || neighbours < 1 || len(real)%width != 0 || len(generated)%width != 0 {
		return 0, 0, fmt.Errorf("metrics: precision and recall: got %d and %d values in rows of %d, and %d neighbours, want whole rows and at least one neighbour",
			len(real), len(generated), width, neighbours)
	}
	if few := min(len(real), len(generated)) / width; few <= neighbours {
		return 0, 0, fmt.Errorf("metrics: precision and recall: got %d samples, want more than %d, the number of neighbours", few, neighbours)
	}
	return within(generated, real, width, neighbours), within(real, generated, width, neighbours), nil
}

// within returns the share of the rows x that lie in the manifold of the rows y.
func within(x, y []float32, width, neighbours int) float64 {
	distance := kernel.Float32().SquaredDistance
	row := func(m []float32, i int) []float32 { return m[i*width : (i+1)*width] }
	radii := make([]float32, len(y)/width) // squared
	team.For(len(radii), 8, func(from, to int) {
		nearest := make([]float32, neighbours)
		for i := from; i < to; i++ {
			for k := range nearest {
				nearest[k] = float32(math.Inf(1))
			}
			for j := range radii {
				if d := distance(row(y, i), row(y, j)); j != i && d < nearest[neighbours-1] {
					place, _ := slices.BinarySearch(nearest, d)
					copy(nearest[place+1:], nearest[place:])
					nearest[place] = d
				}
			}
			radii[i] = nearest[neighbours-1]
		}
	})
	inside := make([]bool, len(x)/width)
	team.For(len(inside), 8, func(from, to int) {
		for i := from; i < to; i++ {
			for j, radius := range radii {
				if distance(row(x, i), row(y, j)) <= radius {
					inside[i] = true
					break
				}
			}
		}
	})
	count := 0
	for _, is := range inside {
		if is {
			count++
		}
	}
	return float64(count) / float64(len(inside))
}

package parts

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"tessera/classical"
	"tessera/config"
)

// Medians is k-medians: every atom is the median, computed for each value separately, of the samples that are nearest to it in
// the l1 distance. The code of a sample is 1 for its nearest atom and 0 for the others.
type Medians struct {
	Components int `toml:"components" want:"> 0" doc:"number of atoms"`
	Iterations int `toml:"iterations" want:"> 0" doc:"maximum number of iterations"`
}

func init() {
	config.Baselines.Register("medians", "k-medians: the nearest atom in the l1 distance", func() config.Baseline {
		return &Medians{Components: 100, Iterations: 50}
	})
}

// Units implements [classical.Method].
func (m *Medians) Units() int { return m.Components }

// MostIterations implements [classical.Method].
func (m *Medians) MostIterations() int { return m.Iterations }

// New implements [classical.Method].
func (m *Medians) New(shape []int, seed uint64) (classical.Model, error) {
	values := 1
	for _, d := range shape {
		values *= d
	}
	return classical.NewModel(m, shape, seed, classical.Options{Name: "medians", Signed: true}, medians{m.Components, values})
}

// medians implements [classical.Algorithm].
type medians struct{ atoms, values int }

// Start draws samples as the initial atoms.
func (m medians) Start(x []float32, r *rand.Rand) (atoms, bias []float32, err error) {
	n := len(x) / m.values
	for range m.atoms {
		i := r.IntN(n)
		atoms = append(atoms, x[i*m.values:(i+1)*m.values]...)
	}
	return atoms, nil, nil
}

// Improve replaces every atom by the median of its samples. The objective is the mean absolute error.
func (m medians) Improve(ctx context.Context, x, atoms, _ []float32) (objective float64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	own := make([][]float32, m.atoms*m.values) // by atom and value
	for sample := range slices.Chunk(x, m.values) {
		j, _ := m.nearest(sample, atoms)
		for i, v := range sample {
			own[j*m.values+i] = append(own[j*m.values+i], v)
		}
	}
	for i, values := range own {
		if len(values) > 0 {
			slices.Sort(values)
			atoms[i] = values[len(values)/2]
		}
	}
	for sample := range slices.Chunk(x, m.values) {
		_, distance := m.nearest(sample, atoms)
		objective += distance / float64(len(x))
	}
	return objective, nil
}

// Encode implements [classical.Algorithm].
func (m medians) Encode(x, atoms, _ []float32) ([]float32, error) {
	codes := make([]float32, len(x)/m.values*m.atoms)
	for i := range len(x) / m.values {
		j, _ := m.nearest(x[i*m.values:(i+1)*m.values], atoms)
		codes[i*m.atoms+j] = 1
	}
	return codes, nil
}

// nearest returns the index of the atom that is nearest to a sample, and its distance.
func (m medians) nearest(sample, atoms []float32) (best int, least float64) {
	least = math.Inf(1)
	for j := range m.atoms {
		sum := 0.0
		for i, v := range sample {
			sum += math.Abs(float64(v - atoms[j*m.values+i]))
		}
		if sum < least {
			best, least = j, sum
		}
	}
	return best, least
}

package parts

import (
	"context"
	"math"
	"slices"

	"tessera/classical"
)

// Medians is k-medians: every atom is the median, computed for each value separately, of the samples that are nearest to it in
// the l1 distance. The code of a sample is 1 for its nearest atom and 0 for the others.
type Medians struct {
	Components int `toml:"components" want:"> 0" doc:"number of atoms"`
	Iterations int `toml:"iterations" want:"> 0" doc:"maximum number of iterations"`
}

func init() {
	classical.Registry.Register("medians", "k-medians: the nearest atom in the l1 distance", func() classical.Method {
		return &Medians{Components: 100, Iterations: 50}
	})
}

// Describe implements [classical.Method].
func (m *Medians) Describe() classical.Fitting {
	return classical.Fitting{Name: "medians", Units: m.Components, Iterations: m.Iterations, Signed: true}
}

// New implements [classical.Method].
func (m *Medians) New(shape []int, seed uint64) (classical.Model, error) {
	return classical.NewModel(m, shape, seed, func(b classical.Base) classical.Algorithm { return &medians{Base: b} })
}

type medians struct {
	classical.Base
	samples [][]float32
}

// Start implements [classical.Algorithm]: the first atoms are samples.
func (m *medians) Start(images classical.Images) error {
	x, err := m.Load(images)
	if err != nil {
		return err
	}
	m.samples = slices.Collect(slices.Chunk(x, images.Pixels()))
	if atoms, _ := m.Parameters(); atoms != nil { // restored
		return nil
	}
	var atoms []float32
	r := m.Random("start")
	for range m.Units() {
		atoms = append(atoms, m.samples[r.IntN(len(m.samples))]...)
	}
	m.SetParameters(atoms, nil)
	return nil
}

// Improve implements [classical.Algorithm]: every atom becomes the median of its samples. The objective is the mean absolute
// error.
func (m *medians) Improve(ctx context.Context) (objective float64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	atoms, _ := m.Parameters()
	own := make([][]float32, len(atoms)) // values of the samples of each atom
	for _, sample := range m.samples {
		j, _ := m.nearest(sample)
		for i, v := range sample {
			own[j*len(sample)+i] = append(own[j*len(sample)+i], v)
		}
	}
	for i, values := range own {
		if len(values) > 0 {
			slices.Sort(values)
			atoms[i] = values[len(values)/2]
		}
	}
	for _, sample := range m.samples {
		_, distance := m.nearest(sample)
		objective += distance / float64(len(m.samples)*len(sample))
	}
	return objective, nil
}

// Infer implements [classical.Algorithm].
func (m *medians) Infer(x []float32) (codes []float32, err error) {
	atoms, _ := m.Parameters()
	for sample := range slices.Chunk(x, len(atoms)/m.Units()) {
		code := make([]float32, m.Units())
		j, _ := m.nearest(sample)
		code[j] = 1
		codes = append(codes, code...)
	}
	return codes, nil
}

// nearest returns the index of the atom that is nearest to a sample, and its distance.
func (m *medians) nearest(sample []float32) (best int, least float64) {
	atoms, _ := m.Parameters()
	least = math.Inf(1)
	for j := range m.Units() {
		sum := 0.0
		for i, v := range sample {
			sum += math.Abs(float64(v - atoms[j*len(sample)+i]))
		}
		if sum < least {
			best, least = j, sum
		}
	}
	return best, least
}

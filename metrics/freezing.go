package metrics

import (
	"math"

	"tessera/kernel"
	"tessera/parallel/team"
)

// freezing computes what happens to reconstructions when units are frozen at their mean activation.
type freezing struct {
	*usefulMeter
	n     int
	means []float32 // activation of each unit
	error float64   // squared error with no unit frozen
	gram  []float64 // k x k: <d_j, d_l> <w_j, w_l>
	gain  []float64 // <d_j, r w_j>: by how much freezing a unit would lower the error, were its gram 0
}

// newFreezing decodes the codes and prepares the order.
func newFreezing(m *usefulMeter) (*freezing, error) {
	k := m.atoms.Count
	f := &freezing{usefulMeter: m, n: len(m.codes) / k, means: make([]float32, k)}
	sums := unitSums{sums: make([]float64, k)}
	sums.add(m.codes)
	for j, mean := range sums.means() {
		f.means[j] = float32(mean)
	}
	atoms := wide(m.atoms.Values)
	d := make([]float64, len(m.codes))
	for i, v := range m.codes {
		d[i] = float64(f.means[i%k]) - float64(v)
	}
	f.gain = make([]float64, k)
	for from, to := range batches(f.n) {
		outputs, err := decode(m.coder, m.codes[from*k:to*k])
		if err != nil {
			return nil, err
		}
		f.addResiduals(outputs, atoms, d[from*k:to*k], from, to)
	}
	gemm := kernel.Float64().Gemm
	lengths := make([]float64, k*k)
	f.gram = make([]float64, k*k)
	gemm(false, true, k, k, m.pixels, 1, atoms, m.pixels, atoms, m.pixels, 0, lengths, k)
	gemm(true, false, k, k, f.n, 1, d, k, d, k, 0, f.gram, k)
	for i, v := range lengths {
		f.gram[i] *= v
	}
	return f, nil
}

// addResiduals adds the error of some outputs, and what freezing each unit gains there.
func (f *freezing) addResiduals(outputs []float32, atoms, d []float64, from, to int) {
	k, n := f.atoms.Count, to-from
	residuals := make([]float64, len(outputs))
	for i, x := range f.images[from*f.pixels : to*f.pixels] {
		residuals[i] = float64(x) - float64(outputs[i])
		f.error += residuals[i] * residuals[i]
	}
	along := make([]float64, n*k) // residuals x atoms'
	const rows = 50
	team.For(n, rows, func(a, b int) {
		kernel.Float64().Gemm(false, true, b-a, k, f.pixels, 1, residuals[a*f.pixels:], f.pixels, atoms, f.pixels, 0, along[a*k:], k)
	})
	for i, v := range along {
		f.gain[i%k] += d[i] * v
	}
}

// order returns the units in the order in which they are frozen.
func (f *freezing) order() []int {
	k := f.atoms.Count
	rise, frozen, order := make([]float64, k), make([]bool, k), make([]int, 0, k)
	for j := range rise {
		rise[j] = f.gram[j*k+j] - 2*f.gain[j]
	}
	for range k {
		next, least := -1, math.Inf(1)
		for j, v := range rise {
			if !frozen[j] && (next < 0 || v < least) {
				next, least = j, v
			}
		}
		frozen[next], order = true, append(order, next)
		for j := range rise {
			rise[j] += 2 * f.gram[next*k+j]
		}
	}
	return order
}

// frozenError is the squared error of the reconstructions with these units frozen.
func (f *freezing) frozenError(units []int) (sum float64, err error) {
	k := f.atoms.Count
	var squares imageSum
	for from, to := range batches(f.n) {
		codes := append([]float32(nil), f.codes[from*k:to*k]...)
		for i := 0; i < len(codes); i += k {
			for _, j := range units {
				codes[i+j] = f.means[j]
			}
		}
		outputs, err := decode(f.coder, codes)
		if err != nil {
			return 0, err
		}
		images := f.images[from*f.pixels : to*f.pixels]
		squares.add(to-from, 25, func(i int) float64 {
			return squaredError(images[i*f.pixels:(i+1)*f.pixels], outputs[i*f.pixels:(i+1)*f.pixels])
		})
	}
	return squares.sum, nil
}

// wide returns the values in float64.
func wide(v []float32) []float64 {
	w := make([]float64, len(v))
	for i, x := range v {
		w[i] = float64(x)
	}
	return w
}

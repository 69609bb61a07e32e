package layers

import (
	"math"
	"math/rand/v2"
)

// Orthogonal draws a matrix whose columns are orthogonal with the norm gain, or its rows where it has more columns than rows.
// A parameter is the matrix of its last axis (units, filters) and all other axes. The directions are uniform: those of a
// matrix of N(0,1) made orthonormal by Gram and Schmidt. Saxe, McClelland and Ganguli, Exact solutions to the nonlinear
// dynamics of learning in deep linear neural networks, 2013.
type Orthogonal struct {
	Gain float64 `toml:"gain" want:"> 0" doc:"norm of the columns, or of the rows"`
}

func init() {
	Inits.Register("orthogonal", "orthogonal columns, or rows, with the norm gain", func() Init { return &Orthogonal{Gain: 1} })
}

// Fill implements [Init] for a matrix (fanIn, units).
func (o *Orthogonal) Fill(w []float32, fanIn, _ int, r *rand.Rand) {
	o.FillMatrix(w, len(w)/max(fanIn, 1), r)
}

// FillMatrix implements [MatrixInit].
func (o *Orthogonal) FillMatrix(w []float32, columns int, r *rand.Rand) {
	if len(w) == 0 || columns < 1 {
		return
	}
	rows := len(w) / columns
	long, short := max(rows, columns), min(rows, columns)
	vectors := make([][]float64, short)
	for i := range vectors {
		vectors[i] = make([]float64, long)
		for k := range vectors[i] {
			vectors[i][k] = r.NormFloat64()
		}
		orthonormal(vectors[i], vectors[:i])
	}
	for i := range rows {
		for j := range columns {
			v, at := j, i
			if rows < columns {
				v, at = i, j
			}
			w[i*columns+j] = float32(o.Gain * vectors[v][at])
		}
	}
}

// orthonormal removes from v its parts along orthonormal vectors, twice because of rounding, and gives it the norm 1.
func orthonormal(v []float64, others [][]float64) {
	for range 2 {
		for _, u := range others {
			along := dot(u, v)
			for k := range v {
				v[k] -= along * u[k]
			}
		}
	}
	norm := math.Sqrt(dot(v, v))
	for k := range v {
		v[k] /= norm
	}
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}

package layers

import (
	"math"
	"math/rand/v2"

	"tessera/internal/vectors"
)

// Orthogonal draws a matrix with orthogonal columns of norm gain. If it has more columns than rows, the rows are orthogonal
// instead. The columns are along the last axis of the parameter (units, filters). The directions are uniformly distributed: a
// matrix of N(0,1) is orthonormalised by the Gram-Schmidt process. Saxe, McClelland and Ganguli, Exact solutions to the
// nonlinear dynamics of learning in deep linear neural networks, 2013.
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

// orthonormal subtracts from v its projections on orthonormal vectors, twice because of rounding, and scales v to norm 1.
func orthonormal(v []float64, others [][]float64) {
	for range 2 {
		for _, u := range others {
			along := vectors.Dot(u, v)
			for k := range v {
				v[k] -= along * u[k]
			}
		}
	}
	norm := math.Sqrt(vectors.Dot(v, v))
	for k := range v {
		v[k] /= norm
	}
}

package layers

import (
	"math"
	"math/rand/v2"
)

// SparseInit draws from N(0, stddev²) and sets a fraction of the inputs of every unit to 0; the number of zeros is rounded
// up. The units are along the last axis of the parameter. Martens, Deep learning via Hessian-free optimization, 2010;
// PyTorch's sparse_.
type SparseInit struct {
	Sparsity float64 `toml:"sparsity" want:"in [0,1)" doc:"share of zeros among the inputs of a unit"`
	Stddev   float64 `toml:"stddev" want:"> 0" doc:"standard deviation of the other values"`
}

func init() {
	Inits.Register("sparse", "N(0, stddev²), with zeros for a share of the inputs of every unit", func() Init {
		return &SparseInit{Sparsity: 0.9, Stddev: 0.1}
	})
}

// Fill implements [Init] for a matrix (fanIn, units).
func (s *SparseInit) Fill(w []float32, fanIn, _ int, r *rand.Rand) {
	s.FillMatrix(w, len(w)/max(fanIn, 1), r)
}

func (s *SparseInit) FillMatrix(w []float32, columns int, r *rand.Rand) {
	if len(w) == 0 || columns < 1 {
		return
	}
	fillNormal(w, 0, s.Stddev, r)
	rows := len(w) / columns
	zeros := min(int(math.Ceil(s.Sparsity*float64(rows))), rows)
	for j := range columns {
		for _, i := range r.Perm(rows)[:zeros] {
			w[i*columns+j] = 0
		}
	}
}

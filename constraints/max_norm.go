package constraints

// MaxNorm keeps the norm of every row (atom) at most Max: the projection argmin ||v-w|| over ||v|| <= Max, row by row,
// which is v = w * min(1, Max / ||w||).
//
// Source: Srebro and Shraibman, Rank, trace-norm and max-norm, 2005; used with dropout by Srivastava et al., 2014.
type MaxNorm struct {
	Max float64 `toml:"max" want:"> 0" doc:"largest Euclidean norm of a row"`
}

func init() {
	Registry.Register("max_norm", "every row of Euclidean norm <= max: w <- w * min(1, max / ||w||)",
		func() Constraint { return &MaxNorm{Max: 1} })
}

func (*MaxNorm) RowWise() {}

func (m *MaxNorm) Project(w []float32, shape []int) {
	for row := range rows(w, shape) {
		if norm := length(row); !(norm <= m.Max*(1+rounding)) {
			rescale(row, m.Max/norm)
		}
	}
}

// Violation implements [Constraint]. It is the largest excess of the norm of a row over Max.
func (m *MaxNorm) Violation(w []float32, shape []int) float64 {
	return worstRow(w, shape, func(row []float32) float64 { return length(row) - m.Max })
}

package parts

import "tessera/constraints"

// AtLeast is the lower bound low for every weight. The projection is w <- max(w, low).
type AtLeast struct {
	Low float64 `toml:"low" doc:"least weight"`
}

func init() {
	constraints.Registry.Register("at_least", "every weight >= low", func() constraints.Constraint { return &AtLeast{Low: -1} })
}

// Pointwise implements [constraints.Pointwise]: weights are projected independently.
func (*AtLeast) Pointwise() {}

// Project implements [constraints.Constraint].
func (a *AtLeast) Project(w []float32, _ []int) {
	for i, v := range w {
		w[i] = max(v, float32(a.Low))
	}
}

// Violation implements [constraints.Constraint].
func (a *AtLeast) Violation(w []float32, _ []int) float64 {
	var worst float32
	for _, v := range w {
		worst = max(worst, float32(a.Low)-v)
	}
	return float64(worst)
}

package data

import (
	"fmt"
	"math"

	"tessera/config/part"
)

// PPMI is the positive pointwise mutual information of counts x of pairs of a row and a column,
//
//	max(0, log(p(column | row) / p(column)) - log(shift)),   p(column | row) = x / sum of the row,   p(column) = c^smoothing / sum of c^smoothing
//
// where c is the sum of a column over the fitted samples. A column whose sum is 0 gives 0; negative counts count as 0.
//
// Source: O. Levy, Y. Goldberg, I. Dagan, Improving distributional similarity with lessons learned from word embeddings, TACL 3, 2015, for
// shift and smoothing.
type PPMI struct {
	Shift     float64 `toml:"shift" want:"> 0" doc:"its logarithm is subtracted before negative values become 0; the number of negative samples of word2vec"`
	Smoothing float64 `toml:"smoothing" want:"in (0,1]" doc:"power of the sums of columns; 0.75 gives rare columns less weight"`

	Columns []float32 // log(p(column) shift), the largest float32 for columns without counts
}

func init() {
	Scalings.Register("ppmi", "max(0, log(p(column | row) / p(column))), of counts", func() Scaler { return &PPMI{Shift: 1, Smoothing: 1} })
}

func (s *PPMI) Check() error {
	switch {
	case !(s.Shift > 0) || math.IsInf(s.Shift, 0):
		return part.KeyErrorf("shift", "got %g, want a number > 0", s.Shift)
	case !(s.Smoothing > 0 && s.Smoothing <= 1):
		return part.KeyErrorf("smoothing", "got %g, want a number in (0,1]", s.Smoothing)
	}
	return nil
}

func (*PPMI) Fits() bool { return true }

func (s *PPMI) Fit(m *Images) (*Scaling, error) {
	if err := m.counts(); err != nil {
		return nil, err
	}
	sums, total := make([]float64, m.pixels), 0.0
	m.EachRow(func(columns []int32, values []float32) {
		eachPositive(columns, values, func(j int, v float64) { sums[j] += v })
	})
	for j, c := range sums {
		sums[j] = math.Pow(c, s.Smoothing)
		total += sums[j]
	}
	if !(total > 0) {
		return nil, fmt.Errorf("all counts of the fitted samples are 0")
	}
	fitted := *s
	fitted.Columns = make([]float32, m.pixels)
	for j, c := range sums {
		if fitted.Columns[j] = math.MaxFloat32; c > 0 {
			fitted.Columns[j] = float32(math.Log(c / total * s.Shift))
		}
	}
	return NewSteps(m.pixels, &fitted), nil
}

func (s *PPMI) FittedTo(values int) bool { return len(s.Columns) == values && allFinite(s.Columns) }

func (s *PPMI) Apply(columns []int32, values []float32) {
	row := 0.0
	eachPositive(columns, values, func(_ int, v float64) { row += v })
	for e, v := range values {
		j := e
		if columns != nil {
			j = int(columns[e])
		}
		switch {
		case v > 0:
			values[e] = float32(max(0, math.Log(float64(v)/row)-float64(s.Columns[j])))
		case v == v:
			values[e] = 0
		}
	}
}

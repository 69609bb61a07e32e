package losses

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// Counts are the weights of a mean over the entries of a batch. A nil node stands for ones.
type Counts struct {
	Entries *gorgonia.Node // (batch, values): 1 for an included entry, else 0; nil if all are included
	Samples *gorgonia.Node // (batch): the weights of the samples, >= 0; nil if all are 1
}

// leastCount is the smallest divisor. A smaller sum of counts is treated as 0.
const leastCount = 1e-30

// MeanOf returns the masked and weighted mean of x, which has the shape of the value `on`, (batch, values):
//
//	sum_ij w_i m_ij x_ij / sum_ij w_i m_ij
//
// with the mask m and the sample weights w of the term. It is 0 if the divisor is 0. Without mask and weights it is the mean
// of x.
func MeanOf(c *ops.Chain, v Values, x *gorgonia.Node) *gorgonia.Node {
	counts, err := v.Counts()
	if err != nil {
		return c.Do("counts", func() (*gorgonia.Node, error) { return nil, err })
	}
	m, w := counts.Entries, counts.Samples
	switch {
	case c.Err() != nil || m == nil && w == nil:
		return c.Mean(x)
	case w == nil:
		return ratio(c, c.Mul(m, x), m)
	case len(x.Shape()) != 2:
		return c.Do("counts", func() (*gorgonia.Node, error) {
			return nil, fmt.Errorf("got shape %v, want (batch, values)", x.Shape())
		})
	case m == nil:
		return ratio(c, c.Mul(w, c.Sum(x, 1)), c.Scale(w, float64(x.Shape()[1])))
	}
	return ratio(c, c.Mul(w, c.Sum(c.Mul(m, x), 1)), c.Mul(w, c.Sum(m, 1)))
}

// ratio returns sum(x) / sum(counts), 0 if all counts are 0.
func ratio(c *ops.Chain, x, counts *gorgonia.Node) *gorgonia.Node {
	return c.Div(c.Sum(x), c.Clip(c.Sum(counts), leastCount, 1e30))
}

package losses

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// NegativeSampling tells true pairs from drawn ones by their logits, for vectors of words. The value `on` has, for every sample, the logits z of its p
// true words and then those of its q drawn words, the negatives. With the weights m_j of the true words, it is
//
//	sum over samples of sum_j m_j (softplus(-z_j) + negatives/q sum_k softplus(z_k)) / sum over samples and j of m_j
//
// so that every true pair has `negatives` drawn ones on average. The p values of m are those of the column `near`; without it p = 1 and m = 1.
// softplus(-z) = -log sigmoid(z). Source: T. Mikolov et al., Distributed representations of words and phrases and their compositionality, NIPS 2013;
// the words of one context share their negatives.
type NegativeSampling struct {
	Negatives float64 `toml:"negatives" want:"> 0" doc:"how many drawn words each true pair is compared with"`
	Near      string  `toml:"near" optional:"true" doc:"column with the weight of every true word; empty: one word, with the weight 1"`
}

func init() {
	Registry.Register("negative_sampling", "true words against drawn ones: -log sigmoid(z) and -log sigmoid(-z)", func() Loss { return &NegativeSampling{Negatives: 5} })
}

// On implements [Loss]: a head named score.
func (*NegativeSampling) On() string { return "score" }

func (l *NegativeSampling) Reads() Reads {
	r := Reads{Per: Means, On: true}
	if l.Near != "" {
		r.Values = []string{l.Near}
	}
	return r
}

func (*NegativeSampling) CheckUnits(units int) error {
	if units < 2 {
		return fmt.Errorf("got %d logits of a sample, want those of true words and of drawn ones", units)
	}
	return nil
}

func (l *NegativeSampling) Build(v Values) (*gorgonia.Node, error) {
	var c ops.Chain
	z := c.Do("on", v.On)
	if c.Err() != nil {
		return nil, c.Err()
	}
	batch, n, p := z.Shape()[0], z.Shape()[1], 1
	var near *gorgonia.Node
	if l.Near != "" {
		near = c.Do("near", func() (*gorgonia.Node, error) { return v.Value(l.Near) })
		if c.Err() != nil {
			return nil, c.Err()
		}
		p = near.Shape()[1]
	}
	if n <= p {
		return nil, fmt.Errorf("on has %d logits for %d true words: want those of drawn words too", n, p)
	}
	agree := c.Softplus(c.Neg(c.Columns(z, 0, p)))
	differ := c.Scale(c.Sum(c.Softplus(c.Columns(z, p, n-p)), 1), l.Negatives/float64(n-p)) // (batch)
	if near == nil {
		return c.Scale(c.Add(c.Sum(agree), c.Sum(differ)), 1/float64(batch)), c.Err()
	}
	pairs := c.Sum(near, 1)
	return c.Div(c.Add(c.Sum(c.Mul(near, agree)), c.Sum(c.Mul(pairs, differ))), c.Clip(c.Sum(pairs), leastCount, 1e30)), c.Err()
}

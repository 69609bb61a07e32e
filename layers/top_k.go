package layers

import (
	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
)

// TopK sets all values along the last axis of every input to 0, except for the k largest; of equal values the first ones
// remain. After a relu, codes have at most k active units. Gradients flow only to the remaining values. Makhzani and Frey,
// k-Sparse Autoencoders, 2013. Unlike in the paper, k is the same in training and at inference.
type TopK struct {
	K int `toml:"k" want:"> 0" doc:"number of values that are not set to 0"`
}

func init() {
	Registry.Register("top_k", "keeps the k largest values of every input, 0 elsewhere", func() Layer {
		return &TopK{K: 25}
	})
}

func (l *TopK) OutputShape(in []int) ([]int, error) {
	if l.K < 1 {
		return nil, part.KeyErrorf("k", "got %d, want > 0", l.K)
	}
	return in, nil
}

func (*TopK) Parameters([]int) []Parameter                              { return nil }
func (l *TopK) Apply(_ Scope, x *gorgonia.Node) (*gorgonia.Node, error) { return ops.TopK(x, l.K) }

// OutputRange implements [Ranged]: the range of the input, extended to 0.
func (*TopK) OutputRange(in Interval) Interval { return Interval{min(in.Low, 0), max(in.High, 0)} }

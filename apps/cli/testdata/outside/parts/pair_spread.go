package parts

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
	"tessera/losses"
)

// PairSpread is a contrastive term over the two views of a batch. With the cosine similarities s of all 2 n views it is
//
//	mean over all pairs of s², less the mean over all views of the similarity to the other view of the same image
//
// It makes the views of one image similar and all other views orthogonal.
type PairSpread struct {
	Epsilon float64 `toml:"epsilon" want:"> 0" doc:"added to squared lengths, so that none is 0"`
}

func init() {
	losses.Registry.Register("pair_spread", "views of one image alike, all others orthogonal", func() losses.Loss { return &PairSpread{Epsilon: 1e-12} })
}

// On implements [losses.Loss]. The default is a head named projection.
func (*PairSpread) On() string { return "projection" }

// Reads implements [losses.Loss].
func (*PairSpread) Reads() losses.Reads {
	return losses.Reads{Per: losses.Batch, On: true, Views: true}
}

// Build implements [losses.Loss].
func (l *PairSpread) Build(v losses.Values) (*gorgonia.Node, error) {
	z, err := v.On()
	if err != nil {
		return nil, err
	}
	var c ops.Chain
	transpose := func(x *gorgonia.Node) *gorgonia.Node {
		return c.Do("transpose", func() (*gorgonia.Node, error) { return ops.Transpose(x) })
	}
	lengths := c.InvSqrt(c.Shift(c.Sum(c.Square(z), 1), l.Epsilon))
	columns := c.MulRow(transpose(z), lengths)
	others := c.Do("others", func() (*gorgonia.Node, error) {
		return ops.WithDiagonal(c.MatMul(transpose(columns), columns), 0)
	})
	aligned := c.Do("partners", func() (*gorgonia.Node, error) { return ops.Partners(others) })
	return c.Sub(c.Mean(c.Square(others)), c.Mean(aligned)), c.Err()
}

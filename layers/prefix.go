package layers

import (
	"gorgonia.org/gorgonia"

	"tessera/config/part"
	"tessera/graph/ops"
	"tessera/internal/volume"
)

// Prefix keeps the first `units` values of the flattened input and sets the others to 0. Heads that decode prefixes of a code by
// the decoder's own parameters (share) make a Matryoshka auto-encoder: the first units learn what matters most, later ones
// details. Source: Bussmann et al., Learning multi-level features with Matryoshka sparse autoencoders, 2025.
type Prefix struct {
	Units int `toml:"units" want:"> 0" required:"true" doc:"number of values that are kept"`
}

func init() {
	Registry.Register("prefix", "keeps the first units, 0 elsewhere", func() Layer { return &Prefix{} })
}

func (l *Prefix) OutputShape(in []int) ([]int, error) {
	n := volume.Of(in)
	if l.Units < 1 || l.Units > n {
		return nil, part.KeyErrorf("units", "got %d, want 1 to %d, the number of values", l.Units, n)
	}
	return []int{n}, nil
}

func (*Prefix) Parameters([]int) []Parameter { return nil }

func (l *Prefix) Apply(_ Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	x = c.Flatten(x)
	return c.Do("prefix", func() (*gorgonia.Node, error) { return ops.Prefix(x, l.Units) }), c.Err()
}

func (*Prefix) OutputRange(in Interval) Interval { return Interval{min(in.Low, 0), max(in.High, 0)} }

package data

import (
	"math/rand/v2"

	"tessera/config/part"
)

// DrawOther gives each sample the value of a column for another sample, drawn uniformly from all other samples of the set: a
// negative. In a set with a single sample, the sample gets its own value. With count = n it has the values of n other samples, drawn independently,
// of shape (n) and that of the column.
type DrawOther struct {
	Of    string `toml:"of" doc:"column whose values of another sample it has"`
	Count int    `toml:"count" want:"> 0" optional:"true" doc:"number of other samples; by default one, without an axis"`
}

func init() {
	Draws.Register("other", "the values of a column of another sample, drawn from all others: negatives", func() Draw { return &DrawOther{Of: ImagesColumn} })
}

func (o *DrawOther) Reads() []string { return []string{o.Of} }

func (o *DrawOther) Column(other func(string) (Column, bool)) (Column, error) {
	c, ok := other(o.Of)
	if !ok {
		return c, part.KeyErrorf("of", "there is no column %q", o.Of)
	}
	if c.Name == ImagesColumn {
		c.Type = Float32 // as they are read
		if c.Shape == nil {
			c.Type = ""
		}
	}
	if o.Count > 0 {
		c.Shape = append([]int{o.Count}, c.Shape...)
	}
	return c, nil
}

func (o *DrawOther) Draw(dst []float32, s Drawing, r *rand.Rand) {
	others, n := make([]int, max(1, o.Count)), s.Samples()
	for i := range others {
		others[i] = s.Sample()
		if n > 1 {
			if others[i] = r.IntN(n - 1); others[i] >= s.Sample() {
				others[i]++
			}
		}
	}
	s.Values(dst, o.Of, others...)
}

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
	each := len(dst) / max(1, o.Count)
	for from := 0; from < len(dst); from += each {
		i := s.Sample()
		if n := s.Samples(); n > 1 {
			if k := r.IntN(n - 1); k < i {
				i = k
			} else {
				i = k + 1
			}
		}
		s.Values(dst[from:from+each], o.Of, i)
	}
}

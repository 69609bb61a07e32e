package layers

import (
	"fmt"
	"math/rand/v2"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
	"tessera/internal/volume"
)

var _ Reader = (*Replace)(nil)

// Replace puts the number `by` in the places that a mask selects: y = by where the mask is at least 0.5, x elsewhere. x are whole numbers from 0 to `by`, such as
// tokens, and the mask has one number for each, such as a column that is drawn (`bernoulli`). A head that predicts the replaced tokens, with the loss
// [tessera/losses.MaskedToken], makes a bidirectional model of language. In training, each selected place has with the probability `random` a number
// drawn evenly from 0 to by - 1 instead, and with the probability `keep` its own, so that the model cannot trust the tokens that it sees. The layer has
// no parameters, and its input has no gradient. Devlin et al., BERT: Pre-training of deep bidirectional transformers for language understanding, 2019.
type Replace struct {
	Mask   string  `toml:"mask" required:"true" doc:"name of the value that is 1 where a number is replaced, else 0"`
	By     int     `toml:"by" want:"> 0" required:"true" doc:"the number that is put there; the number of tokens of the vocabulary is a new token"`
	Random float64 `toml:"random" want:"in [0,1]" doc:"probability of a random number instead, in training"`
	Keep   float64 `toml:"keep" want:"in [0,1]" doc:"probability that the number stays, in training"`

	mask []int // shape of the mask
}

func init() {
	Registry.Register("replace", "a given number in the places that a mask selects: hidden tokens", func() Layer { return &Replace{Random: 0.1, Keep: 0.1} })
}

func (l *Replace) Reads() []Reading       { return maskRead("mask", l.Mask, l.mask) }
func (l *Replace) Receive(shapes [][]int) { l.mask = shapes[0] }
func (l *Replace) Indices() int           { return l.By + 1 }
func (l *Replace) Noisy() bool            { return l.Random > 0 || l.Keep > 0 }

func (l *Replace) OutputRange(Interval) Interval { return Interval{0, float64(l.By)} }

func (l *Replace) OutputShape(in []int) ([]int, error) {
	return in, fitsTokens("mask", l.Mask, l.mask, volume.Of(in))
}

func (*Replace) Parameters([]int) []Parameter { return nil }

func (l *Replace) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	mask := c.From(1, c.Lt(c.Reshape(s.Value(l.Mask), x.Shape()...), 0.5)) // a part of a number is no token
	change := c.Shift(c.Neg(x), float64(l.By))
	if s.Training() && l.Noisy() {
		other := s.Noise(replacements{l.By, l.Random, l.Keep}, x.Shape()...) // -1 stands for x itself
		change = c.Mul(c.From(1, c.Lt(other, 0)), c.Sub(other, x))
	}
	y := c.Add(x, c.Mul(mask, change))
	if c.Err() != nil {
		return nil, fmt.Errorf("replace: %w", c.Err())
	}
	return y, nil
}

// replacements draws what selected places have in training: a number, or -1 for their own.
type replacements struct {
	by           int
	random, keep float64
}

func (o replacements) Sample(dst []float32, r *rand.Rand) {
	for i := range dst {
		switch u := r.Float64(); {
		case u < o.keep:
			dst[i] = -1
		case u < o.keep+o.random:
			dst[i] = float32(r.IntN(o.by))
		default:
			dst[i] = float32(o.by)
		}
	}
}

package layers

import (
	"slices"

	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
	"tessera/internal/volume"
)

var (
	_ Sized        = (*Embedding)(nil)
	_ Reader       = (*Embedding)(nil)
	_ TakesUnknown = (*Embedding)(nil)
)

// Embedding replaces each whole number k of its input by row k of a learned table E, y = E_k: tokens (n) become (n, units).
// Any input other than the whole numbers from 0 to vocabulary - 1 gives NaN. If the input is a column of the data set, such a
// value is an error before the training. The input has no gradient. Parameter: weight E, of shape (vocabulary, units).
//
// With unknown = true E has one more row, the last, for -1: an unknown class, such as a text of a table that is missing or that no training sample has.
// It is learned from the missing ones.
//
// With mask = "VALUE" the output is the mean of the rows of the tokens with these weights (1, 0 or others), of shape (units), and 0 without any: a bag of
// words, as of take_token behind it with mean = true, but computed at once, so that other tokens cost nothing.
type Embedding struct {
	Vocabulary int    `toml:"vocabulary" want:"> 0" required:"true" doc:"number of rows of the table: the largest number and one"`
	Units      int    `toml:"units" want:"> 0" doc:"length of a row"`
	Unknown    bool   `toml:"unknown" doc:"true: -1, an unknown class, has a row, the last one; false: -1 is an error"`
	Init       Init   `toml:"init" doc:"initial values of the table"`
	Mask       string `toml:"mask" optional:"true" doc:"name of the value with the weight of each token in a mean of rows, 0 for none; empty: all rows, and no mean"`

	mask []int // shape of the value that mask names
}

func init() {
	Registry.Register("embedding", "a row of a learned table for every whole number", func() Layer {
		return &Embedding{Init: &Normal{Stddev: 0.02}}
	})
}

func (e *Embedding) OutputUnits() int     { return e.Units }
func (e *Embedding) SetOutputUnits(n int) { e.Units = n }
func (e *Embedding) Indices() int         { return e.Vocabulary }
func (e *Embedding) Unknowns() bool       { return e.Unknown }

// rows returns the number of rows of the table.
func (e *Embedding) rows() int {
	if e.Unknown {
		return e.Vocabulary + 1
	}
	return e.Vocabulary
}

func (e *Embedding) Reads() []Reading { return maskRead("mask", e.Mask, e.mask) }

func (e *Embedding) Receive(shapes [][]int) {
	if e.Mask != "" {
		e.mask = shapes[0]
	}
}

func (e *Embedding) OutputShape(in []int) ([]int, error) {
	if e.Units < 1 {
		return nil, part.KeyErrorf("units", "got %d, want > 0", e.Units)
	}
	if e.Vocabulary < 1 {
		return nil, part.KeyErrorf("vocabulary", "got %d, want > 0", e.Vocabulary)
	}
	if e.Mask != "" {
		return []int{e.Units}, fitsTokens("mask", e.Mask, e.mask, volume.Of(in))
	}
	return append(slices.Clone(in), e.Units), nil
}

func (e *Embedding) Parameters([]int) []Parameter {
	return []Parameter{{Name: "weight", Shape: []int{e.rows(), e.Units}, Init: e.Init, FanIn: e.rows(), FanOut: e.Units}}
}

func (e *Embedding) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	if e.Unknown { // -1 becomes the index of the last row; what is below, or no index without it, leaves the table
		moved := c.Sub(c.Sub(c.Lt(x, 0), c.Lt(x, -1)), c.Lt(x, float64(e.Vocabulary)))
		x = c.Add(x, c.Shift(c.Scale(moved, float64(e.rows())), float64(e.rows())))
	}
	if e.Mask == "" {
		return c.Gather(s.Parameter("weight"), x), c.Err()
	}
	weights := meanWeights(&c, s.Value(e.Mask), x.Shape()[0], volume.Of(x.Shape()[1:]))
	return c.Do("gather sum", func() (*gorgonia.Node, error) { return ops.GatherSum(s.Parameter("weight"), c.Flatten(x), weights) }), c.Err()
}

// meanWeights returns the mask of each token divided by their sum, 0 without one above 0, as a softmax of logarithms.
func meanWeights(c *ops.Chain, mask *gorgonia.Node, batch, tokens int) *gorgonia.Node {
	mask = c.Reshape(mask, batch, tokens)
	counted := c.From(1, c.Lt(mask, leastWeight))
	return c.Do("softmax", func() (*gorgonia.Node, error) {
		return ops.MaskedSoftmax(c.Log(c.Clip(mask, leastWeight, 1e30)), counted)
	})
}

// leastWeight is the smallest weight of a mean: a smaller one is 0.
const leastWeight = 1e-30

package layers

import (
	"slices"

	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
)

var _ Sized = (*Embedding)(nil)

// Embedding replaces each whole number k of its input by row k of a learned table E, y = E_k: tokens (n) become (n, units).
// Any input other than the whole numbers from 0 to vocabulary - 1 gives NaN. If the input is a column of the data set, such a
// value is an error before the training. The input has no gradient. Parameter: weight E, of shape (vocabulary, units).
type Embedding struct {
	Vocabulary int  `toml:"vocabulary" want:"> 0" required:"true" doc:"number of rows of the table: the largest number and one"`
	Units      int  `toml:"units" want:"> 0" doc:"length of a row"`
	Init       Init `toml:"init" doc:"initial values of the table"`
}

func init() {
	Registry.Register("embedding", "a row of a learned table for every whole number", func() Layer {
		return &Embedding{Init: &Normal{Stddev: 0.02}}
	})
}

func (e *Embedding) OutputUnits() int     { return e.Units }
func (e *Embedding) SetOutputUnits(n int) { e.Units = n }
func (e *Embedding) Indices() int         { return e.Vocabulary }

func (e *Embedding) OutputShape(in []int) ([]int, error) {
	if e.Units < 1 {
		return nil, part.KeyErrorf("units", "got %d, want > 0", e.Units)
	}
	if e.Vocabulary < 1 {
		return nil, part.KeyErrorf("vocabulary", "got %d, want > 0", e.Vocabulary)
	}
	return append(slices.Clone(in), e.Units), nil
}

func (e *Embedding) Parameters([]int) []Parameter {
	return []Parameter{{Name: "weight", Shape: []int{e.Vocabulary, e.Units}, Init: e.Init, FanIn: e.Vocabulary, FanOut: e.Units}}
}

func (e *Embedding) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	return ops.Gather(s.Parameter("weight"), x)
}

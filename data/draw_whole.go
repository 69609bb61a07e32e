package data

import (
	"math/rand/v2"

	"tessera/config/part"
)

// DrawWhole draws every value uniformly from the whole numbers from, from + 1, ..., below - 1.
type DrawWhole struct {
	Shaped
	From  int `toml:"from" doc:"smallest number"`
	Below int `toml:"below" doc:"all numbers are less" required:"true"`
}

func init() {
	Draws.Register("whole", "whole numbers >= from and < below: steps of a noise schedule, random tokens, classes", func() Draw { return &DrawWhole{} })
}

// Check returns an error for an empty range, or for numbers that float32 cannot represent.
func (w *DrawWhole) Check() error {
	switch {
	case w.Below <= w.From:
		return part.KeyErrorf("below", "got %d, want > from (%d)", w.Below, w.From)
	case w.From <= -wholeBound:
		return part.KeyErrorf("from", "got %d, want > %d", w.From, -wholeBound)
	case w.Below > wholeBound:
		return part.KeyErrorf("below", "got %d, want at most %d", w.Below, wholeBound)
	}
	return w.Shaped.Check()
}

func (w *DrawWhole) Column(other func(string) (Column, bool)) (Column, error) {
	c, err := w.Of(Whole, other)
	c.Between = []int{w.From, w.Below - 1}
	return c, err
}

func (w *DrawWhole) Draw(dst []float32, _ Drawing, r *rand.Rand) {
	for i := range dst {
		dst[i] = float32(w.From + r.IntN(w.Below-w.From))
	}
}

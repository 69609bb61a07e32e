package parts

import "tessera/losses"

// Alternating sets the weight of a term to 0 in every second step. Two such terms, one of which begins with 0, alternate.
type Alternating struct {
	From float64 `toml:"from" want:"in [0,1]" doc:"weight of the first step, 0 or 1"`
}

func init() {
	losses.Weights.Register("alternating", "on and off from step to step", func() losses.Weight { return &Alternating{From: 1} })
}

// At implements [losses.Weight].
func (a *Alternating) At(float64) float64 { return a.From }

// Next implements [losses.Adaptive].
func (a *Alternating) Next(weight, _ float64) float64 { return 1 - weight }

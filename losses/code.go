package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/ops"
)

// onCode is embedded by the penalties of the code.
type onCode struct{}

// On implements [Loss].
func (onCode) On() string { return "code" }

// targeted is embedded by the penalties that draw each unit's mean activation over the batch, t_j, towards a target p.
// They are sums over the units, so that each unit is held to p by itself however many there are.
type targeted struct {
	onCode
	Target float64 `toml:"target" doc:"p, the wanted mean activation of every unit"`
}

// fromTarget returns p - t, one value per unit.
func (l targeted) fromTarget(c *ops.Chain, code *gorgonia.Node) *gorgonia.Node {
	return c.From(l.Target, c.Mean(code, 0))
}

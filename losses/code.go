package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/ops"
)

// onCode is embedded by penalties of the code that are means over the images.
type onCode struct{}

// On implements [Loss].
func (onCode) On() string { return Code }

// Reads implements [Loss].
func (onCode) Reads() Reads { return Reads{On: true} }

// meanActivation is embedded by the penalties of the mean activations of the units over the batch.
type meanActivation struct{ onCode }

// Reads implements [Loss].
func (meanActivation) Reads() Reads { return Reads{Per: Means, On: true} }

// Targeted is embedded by the penalties that draw each unit's mean activation over the batch, t_j, towards a target p. They
// are sums over the units: the gradient of one unit does not depend on the number of units.
type Targeted struct {
	meanActivation
	Target float64 `toml:"target" doc:"p, the target mean activation of every unit"`
}

// fromTarget returns p - t, one value per unit.
func (l Targeted) fromTarget(c *ops.Chain, v Values) *gorgonia.Node {
	return c.From(l.Target, c.Mean(c.Do("on", v.On), 0))
}

package losses

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/ops"
)

// ActivityFloor keeps units in use: it is the sum over the units of max(0, 1 - t_j / p), t_j the mean activation of unit
// j over the batch, which must be p at least. A unit in use is left alone; one that a sparse code is about to lose is
// held by a gradient of constant size. It cannot bring back a unit of relu that is active on no image at all, whose
// gradient is 0; softplus has no such units.
type ActivityFloor struct {
	meanActivation
	Floor float64 `toml:"floor" want:"> 0" doc:"p, the minimum mean activation of every unit"`
}

func init() {
	Registry.Register("activity_floor", "sum over units of max(0, 1 - t/p), t the mean over the batch", func() Loss {
		return &ActivityFloor{Floor: 0.01}
	})
}

// Build implements [Loss].
func (l *ActivityFloor) Build(v Values) (*gorgonia.Node, error) {
	if !(l.Floor > 0) {
		return nil, fmt.Errorf("floor: got %v, want > 0", l.Floor)
	}
	var c ops.Chain
	lacking := c.From(1, c.Scale(c.Mean(c.Do("on", v.On), 0), 1/l.Floor))
	return c.Sum(c.Ramp(lacking, 1, 0)), c.Err()
}

package losses

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// ActivityFloor keeps units in use. The term is the sum over the units of max(0, 1 - t_j / p), where t_j is the mean
// activation of unit j over the batch and p its minimum. A unit above the minimum gets no gradient; a unit below it gets a
// gradient of constant size. The term cannot revive a relu unit that is active on no image, because its gradient is 0. Units
// of softplus can always be revived.
//
// With `relative` the minimum is p times the mean activation of all units over the batch, so that it follows the scale of the
// codes.
type ActivityFloor struct {
	meanActivation
	Floor    float64 `toml:"floor" want:"> 0" doc:"p, the minimum mean activation of every unit"`
	Relative bool    `toml:"relative" doc:"p is a fraction of the mean activation of all units"`
}

func init() {
	Registry.Register("activity_floor", "sum over units of max(0, 1 - t/p), t the mean over the batch", func() Loss {
		return &ActivityFloor{Floor: 0.01}
	})
}

func (l *ActivityFloor) Build(v Values) (*gorgonia.Node, error) {
	if !(l.Floor > 0) {
		return nil, fmt.Errorf("floor: got %v, want > 0", l.Floor)
	}
	var c ops.Chain
	means := c.Mean(c.Do("on", v.On), 0)
	if l.Relative {
		means = ofMean(&c, means)
	}
	lacking := c.From(1, c.Scale(means, 1/l.Floor))
	return c.Sum(c.Ramp(lacking, 1, 0)), c.Err()
}

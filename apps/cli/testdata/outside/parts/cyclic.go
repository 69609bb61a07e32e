package parts

import (
	"math"

	"tessera/losses"
)

// Cyclic raises the weight of a term from 0 to a peak in the first half of every cycle, and keeps it there in the second half
// (Fu et al., Cyclical annealing schedule, 2019). Evaluations outside of training use the peak.
type Cyclic struct {
	Peak   float64 `toml:"peak" want:">= 0" doc:"largest weight"`
	Epochs float64 `toml:"epochs" want:"> 0" doc:"length of a cycle"`
}

func init() {
	losses.Weights.Register("cyclic", "from 0 to a peak, again and again", func() losses.Weight { return &Cyclic{Peak: 1, Epochs: 10} })
}

// At implements [losses.Weight].
func (c *Cyclic) At(epoch float64) float64 {
	if math.IsInf(epoch, 1) { // in the end
		return c.Peak
	}
	return c.Peak * min(1, 2*math.Mod(epoch/c.Epochs, 1))
}

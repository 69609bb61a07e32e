package hooks

import "math"

// Plateau lowers the learning rate when the validation error stops decreasing. The error is that of early_stopping: val_mse,
// else val_loss, else the sum of the heads' negative log-likelihoods on the validation images, else the training loss. After
// every epoch it is compared with the lowest value so far. The epoch is an improvement if
//
//	value < lowest - threshold |lowest|
//
// After more than patience epochs without an improvement the learning rate is multiplied by factor, but never reduced to less
// than smallest times its original value. The following cooldown epochs are not counted. For errors >= 0 the rule equals
// PyTorch's ReduceLROnPlateau with a relative threshold; for others PyTorch takes some worse values for an improvement.
type Plateau struct {
	Factor    float64 `toml:"factor" want:"in (0,1)" doc:"multiplies the learning rate at every reduction"`
	Patience  int     `toml:"patience" want:">= 0" doc:"epochs without an improvement before a reduction"`
	Threshold float64 `toml:"threshold" want:"in [0,1)" doc:"smallest relative decrease that counts as an improvement"`
	Cooldown  int     `toml:"cooldown" want:">= 0" doc:"epochs after a reduction that are not counted"`
	Smallest  float64 `toml:"smallest" want:"in [0,1]" doc:"lower bound of the product of all reductions"`
}

func init() {
	Registry.Register("plateau", "lowers the learning rate when the validation error stops decreasing",
		func() Hook { return &Plateau{Factor: 0.1, Patience: 10, Threshold: 1e-4} })
}

func (*Plateau) NeedsSteps() (problem, hint string) {
	return "%s has no learning rate to lower", "remove the hook"
}

func (*Plateau) Replicated() (state bool) { return false }

func (p *Plateau) Attach(Training) (*Active, error) {
	r := &plateau{Plateau: p, Rate: 1}
	return &Active{EndEpoch: r.endEpoch, Rate: func() float64 { return r.Rate },
		Save: func(s *State) { s.PutRecord(r) }, Restore: func(s *State) error { return s.LoadRecord(r) }}, nil
}

// plateau is the hook's state in a training; exported fields are saved.
type plateau struct {
	*Plateau `json:"-"`
	Rate     float64  `json:"rate"`             // product of all reductions
	Lowest   *float64 `json:"lowest,omitempty"` // lowest error so far; nil before the first epoch is complete
	Bad      int      `json:"bad"`              // epochs since an improvement or a reduction
	Cooling  int      `json:"cooling"`          // remaining epochs of the cooldown
}

// endEpoch compares a complete epoch with the best one.
func (r *plateau) endEpoch(e *Epoch) error {
	value := e.error()
	if r.Lowest == nil || value < *r.Lowest*(1-math.Copysign(r.Threshold, *r.Lowest)) {
		r.Lowest, r.Bad = &value, 0
	} else {
		r.Bad++
	}
	if r.Cooling > 0 {
		r.Cooling, r.Bad = r.Cooling-1, 0
	}
	if r.Bad > r.Patience {
		r.Rate = max(r.Rate*r.Factor, r.Smallest)
		r.Cooling, r.Bad = r.Cooldown, 0
	}
	return nil
}

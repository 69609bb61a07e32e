package hooks

import "tessera/optim"

// Sharpness is sharpness-aware minimization (SAM). It replaces the gradient g of every step by the gradient at the parameters
// w + rho g / |g|, where |g| is the norm over all parameters that the step updates. It thus minimises the largest loss within
// a distance of about rho, which favours flat minima. A step computes two gradients of the same batch, with the same noise,
// and takes about twice as long. Reported loss terms are those at w. Parameters without a gradient are not changed.
//
// Source: Foret et al., Sharpness-aware minimization for efficiently improving generalization, 2021 (with the default rho).
type Sharpness struct {
	Rho float64 `toml:"rho" want:"> 0" doc:"distance from the parameters at which the gradient is taken"`
}

func init() {
	Registry.Register("sharpness", "takes the gradient where the loss nearby is largest: flat minima",
		func() Hook { return &Sharpness{Rho: 0.05} })
}

func (*Sharpness) Stage() Stage { return Repeat }

func (*Sharpness) NeedsSteps() (problem, hint string) {
	return "%s has no mini-batch steps whose gradients could be replaced", "remove the hook"
}

// Replicated implements [Replicated]: all processes have the same gradients.
func (*Sharpness) Replicated() (state bool) { return false }

func (h *Sharpness) Attach(Training) (*Active, error) {
	kept := map[*Parameter][]float32{}
	return &Active{Gradients: func(g *Gradients) error {
		length := optim.Norm(g.Values...)
		if !(length > 0) { // nothing to climb; NaN stays visible
			return nil
		}
		by := float32(h.Rho / length)
		for i, p := range g.Of {
			if g.Values[i] == nil {
				continue
			}
			kept[p] = append(kept[p][:0], p.Data...)
			for k, v := range g.Values[i] {
				p.Data[k] += by * v
			}
		}
		moved := make([]bool, len(g.Of))
		for i := range g.Of {
			moved[i] = g.Values[i] != nil
		}
		err := g.Again()
		for i, p := range g.Of {
			if moved[i] {
				copy(p.Data, kept[p])
			}
		}
		return err
	}}, nil
}

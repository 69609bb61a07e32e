package hooks

// Teacher maintains an exponential moving average of the parameters, a second model whose values losses can read. It starts
// with the initial parameters w_0; after every step t
//
//	w'_t = decay w'_(t-1) + (1-decay) w_t
//
// with w_t after the projection, running averages of layers included. The run's model is not averaged; the run's state
// contains the teacher.
//
// Source: Tarvainen and Valpola, Mean teachers are better role models, 2017; Grill et al., Bootstrap your own latent, 2020.
type Teacher struct {
	Decay float64 `toml:"decay" want:"in (0,1)" doc:"decay of the exponential moving average"`
}

func init() {
	Registry.Register("teacher", "a moving average of the parameters whose values losses can read",
		func() Hook { return &Teacher{Decay: 0.99} })
}

// NeedsSteps implements [NeedsSteps].
func (*Teacher) NeedsSteps() (problem, hint string) {
	return "%s has no mini-batch steps to average", "remove the hook"
}

// Replicated implements [Replicated].
func (*Teacher) Replicated() (state bool) { return false }

// Attach implements [Hook].
func (h *Teacher) Attach(t Training) (*Active, error) {
	active, m := movingAverage(t, func(int) float32 { return float32(1 - h.Decay) })
	active.Lend = func() (list []*Parameter) {
		for i, p := range m.of {
			list = append(list, &Parameter{Index: p.Index, Path: p.Path, Shape: p.Shape, Data: m.values[i], Frozen: true})
		}
		return list
	}
	return active, nil
}

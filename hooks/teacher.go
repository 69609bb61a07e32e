package hooks

import (
	"slices"

	"tessera/config/part"
	"tessera/losses"
)

// Teacher maintains an exponential moving average of the parameters, a second model whose values losses can read. It starts
// with the initial parameters w_0; after every step t
//
//	w'_t = decay w'_(t-1) + (1-decay) w_t
//
// where w_t are the parameters after the projection, including running averages of layers. The decay may be a schedule over
// the epochs, like the weight of a loss: Grill et al. use { kind = "cosine", from = 0.99, to = 1.0, epochs = 100 }. A model
// may have several teachers, each a table with its own name and kind = "teacher"; a loss selects one by its key teacher. The
// averages do not replace the run's model, but the run's state contains them.
//
// Source: Tarvainen and Valpola, Mean teachers are better role models, 2017; Grill et al., Bootstrap your own latent, 2020.
type Teacher struct {
	Decay losses.Weight `toml:"decay" bare:"constant.value" doc:"decay of the exponential moving average: a number in (0,1), or a schedule that may end at 1"`
}

func init() {
	Registry.Register("teacher", "a moving average of the parameters whose values losses can read",
		func() Hook { return &Teacher{Decay: &losses.Constant{Value: 0.99}} })
}

// Check returns an error for a decay that leaves (0,1), but for an end at 1.
func (h *Teacher) Check() error {
	if h.Decay == nil {
		return part.KeyErrorf("decay", "got nothing, want a number in (0,1) or a schedule")
	}
	if _, adapts := h.Decay.(losses.Adaptive); adapts {
		return part.KeyErrorf("decay", "got a schedule that follows the value of a loss term, want a number in (0,1) or a schedule over the epochs")
	}
	through := losses.Through(h.Decay)
	moving := through // the decays before an end at 1
	for len(moving) > 1 && moving[len(moving)-1] == 1 {
		moving = moving[:len(moving)-1]
	}
	i := slices.IndexFunc(moving, func(decay float64) bool { return !(decay > 0 && decay < 1) })
	switch _, constant := h.Decay.(*losses.Constant); {
	case i < 0:
		return nil
	case constant || len(through) == 1:
		return part.KeyErrorf("decay", "got %v, want a number in (0,1)", through[i])
	default:
		return part.KeyErrorf("decay", "goes from %v to %v and passes %v, want numbers in (0,1), 1 only at the end", through[0], through[len(through)-1], moving[i])
	}
}

func (*Teacher) Lends() {}

func (*Teacher) NeedsSteps() (problem, hint string) {
	return "%s has no mini-batch steps to average", "remove the hook"
}

func (*Teacher) Replicated() (state bool) { return false }

func (h *Teacher) Attach(t Training) (*Active, error) {
	active, m := movingAverage(t, func(s *Step) float32 { return float32(1 - h.Decay.At(s.Epochs)) })
	active.Lend = func() (list []*Parameter) {
		for i, p := range m.of {
			list = append(list, &Parameter{Index: p.Index, Path: p.Path, Shape: p.Shape, Data: m.values[i], Frozen: true})
		}
		return list
	}
	return active, nil
}

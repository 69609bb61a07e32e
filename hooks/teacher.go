package hooks

import (
	"math"

	"tessera/losses"
	"tessera/part"
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

// Check returns an error for a decay that is outside (0,1) at the beginning, or outside (0,1] at the end.
func (h *Teacher) Check() error {
	if h.Decay == nil {
		return part.KeyErrorf("decay", "got nothing, want a number in (0,1) or a schedule")
	}
	first, last := h.Decay.At(0), h.Decay.At(math.Inf(1))
	_, constant := h.Decay.(*losses.Constant)
	if !(first > 0 && first < 1) || !(last > 0 && last <= 1) {
		if constant {
			return part.KeyErrorf("decay", "got %v, want a number in (0,1)", first)
		}
		return part.KeyErrorf("decay", "goes from %v to %v, want numbers in (0,1), 1 only at the end", first, last)
	}
	return nil
}

// Lends implements [Lender].
func (*Teacher) Lends() {}

// NeedsSteps implements [NeedsSteps].
func (*Teacher) NeedsSteps() (problem, hint string) {
	return "%s has no mini-batch steps to average", "remove the hook"
}

// Replicated implements [Replicated].
func (*Teacher) Replicated() (state bool) { return false }

// Attach implements [Hook].
func (h *Teacher) Attach(t Training) (*Active, error) {
	steps := 0.0 // of an epoch; known once the training begins
	active, m := movingAverage(t, func(step int) float32 {
		if steps == 0 {
			steps = float64(max(1, len(t.BatchSizes())))
		}
		return float32(1 - h.Decay.At(float64(step-1)/steps))
	})
	active.Lend = func() (list []*Parameter) {
		for i, p := range m.of {
			list = append(list, &Parameter{Index: p.Index, Path: p.Path, Shape: p.Shape, Data: m.values[i], Frozen: true})
		}
		return list
	}
	return active, nil
}

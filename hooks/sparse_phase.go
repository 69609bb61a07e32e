package hooks

import (
	"strings"

	"tessera/config/part"
	"tessera/layers"
)

// SparsePhase turns the layers `sparsify` of a model on for a phase of the training, and off before and after: dense-sparse-dense
// training of codes. The phase begins before the first step of an epoch. After the phase the learning rate is multiplied by rate.
//
// Source: Han et al., DSD: Dense-Sparse-Dense Training for Deep Neural Networks, 2017, with activations in place of weights
// (for weights see [Prune]).
type SparsePhase struct {
	On    string  `toml:"on" doc:"a glob over the switches of the layers, such as encoder.3.active"`
	From  int     `toml:"from" want:">= 0" doc:"the phase begins after this many epochs"`
	Until int     `toml:"until" want:"> 0" doc:"the phase ends after this many epochs; by default it never ends"`
	Rate  float64 `toml:"rate" want:"> 0" doc:"factor of the learning rate after the phase"`
}

func init() {
	Registry.Register("sparse_phase", "turns layers sparsify on during a phase of the training",
		func() Hook { return &SparsePhase{On: "*." + layers.Switch, Rate: 0.1} })
}

// Check returns an error unless the phase ends after it begins.
func (h *SparsePhase) Check() error {
	if h.Until != 0 && h.Until <= h.From {
		return part.KeyErrorf("until", "got %d, want > from (%d)", h.Until, h.From)
	}
	return nil
}

func (h *SparsePhase) Begins() (epoch int, without string) { return h.From, "no code would be sparse" }

func (*SparsePhase) NeedsSteps() (problem, hint string) {
	return "%s cannot be combined with a sparse phase: another objective invalidates its curvature history", "remove the phase"
}

func (h *SparsePhase) Suits(m Declared) error {
	for _, p := range m.Parameters(h.On) {
		if strings.HasSuffix(p.Path, "."+layers.Switch) {
			return nil
		}
	}
	return part.KeyErrorf("on", "%q matches no switch of a layer sparsify: add the layer to the encoder", h.On)
}

func (*SparsePhase) Stage() Stage             { return Select }
func (*SparsePhase) Replicated() (state bool) { return false }

func (h *SparsePhase) Attach(t Training) (*Active, error) {
	ended := func() bool { return h.Until > 0 && t.Epoch() >= h.Until }
	return &Active{
		BeginEpoch: func() error {
			var active float32
			if t.Epoch() >= h.From && !ended() {
				active = 1
			}
			for _, p := range t.Parameters(h.On) {
				if strings.HasSuffix(p.Path, "."+layers.Switch) {
					t.Rewrite(p, func(values []float32) { values[0] = active })
				}
			}
			return nil
		},
		Rate: func() float64 {
			if ended() {
				return h.Rate
			}
			return 1
		},
	}, nil
}

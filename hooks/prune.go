package hooks

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"tessera/config/part"
)

// Prune is a training phase that sets the smallest weights of matching parameters to 0 and keeps them there.
//
// The phase begins before the first step of an epoch. Of each parameter with n weights it selects the floor(fraction n)
// weights with the smallest absolute values (of equal ones the first), or the weights with an absolute value <= threshold.
// The selected weights and their moving averages are set to 0. A projection after every step, after
// all constraints, keeps them at 0. The optimizer's state is updated as usual, so that the first step of a released weight
// does not differ from other steps. After the phase
// the learning rate is multiplied by rate. A model may have several phases; phases that begin with the same epoch select
// among the same weights.
//
// Source: Han et al., DSD: Dense-Sparse-Dense Training for Deep Neural Networks, 2017.
type Prune struct {
	On        string  `toml:"on" doc:"a glob over parameter paths"`
	Fraction  float64 `toml:"fraction" want:"in (0,1)" doc:"fraction of each parameter that is pruned: its smallest weights"`
	Threshold float64 `toml:"threshold" want:"> 0" doc:"instead of fraction: prune weights whose magnitude is at most this"`
	From      int     `toml:"from" want:">= 0" doc:"the phase begins after this many epochs"`
	Until     int     `toml:"until" want:"> 0" doc:"the phase ends after this many epochs; by default it never ends"`
	Rate      float64 `toml:"rate" want:"> 0" doc:"factor of the learning rate after the phase"`
}

func init() {
	Registry.Register("prune", "prunes small weights during a phase of the training",
		func() Hook { return &Prune{On: "*.weight", Rate: 0.1} })
}

// Check returns an error unless exactly one of fraction and threshold is set and the phase ends after it begins.
func (p *Prune) Check() error {
	var wrong []error
	switch {
	case p.Fraction == 0 && p.Threshold == 0:
		wrong = append(wrong, errors.New("nothing to prune: set fraction or threshold"))
	case p.Fraction != 0 && p.Threshold != 0:
		wrong = append(wrong, part.KeyError{Key: "threshold", Problem: "fraction is set too; set only one of them"})
	}
	if p.Until != 0 && p.Until <= p.From {
		wrong = append(wrong, part.KeyErrorf("until", "got %d, want > from (%d)", p.Until, p.From))
	}
	return errors.Join(wrong...)
}

func (p *Prune) Begins() (epoch int, without string) { return p.From, "nothing would be pruned" }
func (p *Prune) Glob() (key, glob string)            { return "on", p.On }

func (p *Prune) NeedsSteps() (problem, hint string) {
	return "%s cannot be combined with pruning: weights fixed at 0 invalidate its curvature history", "remove the phase"
}

// ended reports whether the phase has ended after the given number of complete epochs.
func (p *Prune) ended(epoch int) bool { return p.Until > 0 && epoch >= p.Until }

func (*Prune) Stage() Stage             { return Select }
func (*Prune) Replicated() (state bool) { return false }

func (p *Prune) Attach(t Training) (*Active, error) {
	h := &pruning{Prune: p, training: t, indices: make([][]int32, len(t.Parameters("*")))}
	for _, q := range t.Parameters(p.On) {
		if q.Trainable {
			h.of = append(h.of, q)
		}
	}
	return &Active{BeginEpoch: h.beginEpoch, BeforeStep: h.beforeStep, Project: h.project, Rate: h.rate, Save: h.save, Restore: h.restore}, nil
}

// pruning is the hook's state in a training.
type pruning struct {
	*Prune
	training Training
	of       []*Parameter
	inPhase  bool
	selected bool      // the weights for the next step are selected
	indices  [][]int32 // indices of the pruned weights, ascending, by the parameter's index in the model
}

// beginEpoch begins or ends the phase. The selected weights are set to 0 later, before the step, when all phases have
// selected their weights.
func (h *pruning) beginEpoch() error {
	epoch := h.training.Epoch()
	inPhase := epoch >= h.From && !h.ended(epoch)
	if inPhase && !h.inPhase {
		for _, p := range h.of {
			h.indices[p.Index] = smallest(p.Data, h.Fraction, h.Threshold)
		}
		h.selected = true
	} else if !inPhase {
		clear(h.indices)
	}
	h.inPhase = inPhase
	return nil
}

func (h *pruning) beforeStep(*Step) error {
	if !h.selected {
		return nil
	}
	h.selected = false
	for _, p := range h.of {
		h.training.Rewrite(p, func(values []float32) { h.project(p, values, 0) })
	}
	return nil
}

// project sets the pruned weights to 0.
func (h *pruning) project(p *Parameter, values []float32, from int) {
	pruned := h.indices[p.Index]
	if len(pruned) == 0 {
		return
	}
	first, _ := slices.BinarySearch(pruned, int32(from))
	for _, i := range pruned[first:] {
		if int(i) >= from+len(values) {
			return
		}
		values[int(i)-from] = 0
	}
}

func (h *pruning) rate() float64 {
	if h.ended(h.training.Epoch()) {
		return h.Rate
	}
	return 1
}

// save adds a mask of every parameter during the phase: 1 for a pruned weight, 0 for others.
func (h *pruning) save(s *State) {
	if !h.inPhase {
		return
	}
	for _, p := range h.of {
		mask := make([]float32, len(p.Data))
		for _, i := range h.indices[p.Index] {
			mask[i] = 1
		}
		s.Put(p.Path, p.Shape, mask)
	}
}

func (h *pruning) restore(s *State) error {
	if h.inPhase = len(s.Tensors) > 0; !h.inPhase {
		return nil
	}
	for _, p := range h.of {
		mask := make([]float32, len(p.Data))
		if err := s.Load(p.Path, p.Shape, mask); err != nil {
			return err
		}
		h.indices[p.Index] = nil
		for i, pruned := range mask {
			if pruned != 0 {
				h.indices[p.Index] = append(h.indices[p.Index], int32(i))
			}
		}
	}
	return nil
}

// smallest returns, in ascending order, the indices of the values <= threshold or, if a fraction is set, of the
// floor(fraction n) smallest of n values; of equal values it takes the first.
func smallest(values []float32, fraction, threshold float64) (indices []int32) {
	size := func(i int32) float64 { return math.Abs(float64(values[i])) }
	for i := range int32(len(values)) {
		if fraction > 0 || size(i) <= threshold {
			indices = append(indices, i)
		}
	}
	if fraction > 0 {
		slices.SortStableFunc(indices, func(i, j int32) int { return cmp.Compare(size(i), size(j)) })
		indices = indices[:int(fraction*float64(len(values))+1e-9)] // 0.29 times 100 is below 29
		slices.Sort(indices)
	}
	return indices
}

package train

import (
	"math"
	"slices"
	"sort"
	"strconv"

	"tessera/config"
	"tessera/train/checkpoint"
)

// pruned are the indices, ascending, that one phase holds at 0 in each of the stepper's parameters; nil while the phase
// does not hold.
//
// A phase begins with the first step of its epoch: the weights that are small then are set to 0, and so is their average.
// Holding is a projection after every step, the last one: the optimizer's state goes on as if there were none, so that a
// released weight starts at 0 with a step like all others. Han et al., DSD: Dense-Sparse-Dense Training for Deep Neural
// Networks, 2017.
type pruned [][]int32

// prune begins and ends the phases that begin or end with the present epoch. It changes nothing in the middle of one.
func (n *network) prune() {
	changed := false
	for i := range n.spec.Prune {
		phase := &n.spec.Prune[i]
		switch holds := phase.Holds(n.progress.Epoch); {
		case holds && n.pruned[i] == nil:
			n.pruned[i], changed = n.stepper.choose(phase), true
		case !holds && n.pruned[i] != nil:
			n.pruned[i], changed = nil, true
		}
	}
	if changed {
		n.stepper.hold(n.pruned)
	}
}

// relearning is what multiplies the learning rate in the present epoch: the factors of all phases that are over.
func (n *network) relearning() float64 {
	factor := 1.0
	for i := range n.spec.Prune {
		if phase := &n.spec.Prune[i]; phase.Over(n.progress.Epoch) {
			factor *= phase.Rate
		}
	}
	return factor
}

// choose returns what a phase prunes of the parameters as they are.
func (s *stepper) choose(phase *config.Prune) pruned {
	all := make(pruned, len(s.moved))
	for i, m := range s.moved {
		if config.MatchPath(phase.On, m.Path) {
			all[i] = smallest(m.Data, phase.Fraction, phase.Threshold)
		}
	}
	return all
}

// smallest returns the indices of the values that are not larger than the threshold or, where a fraction is given, those
// of the smallest floor(fraction n) of n values; of equal ones the first.
func smallest(values []float32, fraction, threshold float64) []int32 {
	below, ties := threshold, len(values) // how many of the size of the threshold are taken
	if fraction > 0 {
		sizes := make([]float32, len(values))
		for i, v := range values {
			sizes[i] = float32(math.Abs(float64(v)))
		}
		slices.Sort(sizes)
		count := int(fraction * float64(len(values)))
		if count == 0 {
			return nil
		}
		last := sizes[count-1]
		ties = count - sort.Search(count, func(i int) bool { return sizes[i] >= last })
		below = float64(last)
	}
	var indices []int32
	for i, v := range values {
		size := math.Abs(float64(v))
		if size < below || size == below && ties > 0 {
			indices = append(indices, int32(i))
		}
		if size == below {
			ties--
		}
	}
	return indices
}

// hold makes every step hold at 0 what any of the phases prunes, and sets it to 0 now.
func (s *stepper) hold(phases []pruned) {
	for i, m := range s.moved {
		m.pruned = nil
		for _, p := range phases {
			if p != nil {
				m.pruned = append(m.pruned, p[i]...)
			}
		}
		slices.Sort(m.pruned)
		m.pruned = slices.Compact(m.pruned)
		zero(m.Data, m.pruned)
		zero(m.average, m.pruned)
	}
	for i := range s.chunks {
		c := &s.chunks[i]
		of := s.moved[c.of].pruned
		from, _ := slices.BinarySearch(of, int32(c.from))
		to, _ := slices.BinarySearch(of, int32(c.to))
		c.pruned = of[from:to]
	}
}

// zero sets the values of those indices to 0; there may be no values.
func zero(values []float32, indices []int32) {
	if values == nil {
		return
	}
	for _, i := range indices {
		values[i] = 0
	}
}

// heldInState reports whether a state holds what a phase prunes: whether the phase held in the last step. A phase that begins
// with the next step has chosen nothing yet, and one that ends with it has released nothing.
func heldInState(phase *config.Prune, p progress) bool {
	last := p.Epoch
	if p.Position == 0 {
		last--
	}
	return phase.Holds(last)
}

func prunedName(phase int, m *moved) string { return prunedPrefix + strconv.Itoa(phase) + "/" + m.Path }

// savePruned adds what is held at 0 to a state, by phase and parameter: 1 where a value is, else 0.
func (n *network) savePruned(state *checkpoint.File) {
	for i := range n.spec.Prune {
		phase := &n.spec.Prune[i]
		if !heldInState(phase, n.progress) {
			continue
		}
		for j, m := range n.stepper.moved {
			if !config.MatchPath(phase.On, m.Path) {
				continue
			}
			mask := make([]float32, len(m.Data))
			for _, k := range n.pruned[i][j] {
				mask[k] = 1
			}
			state.Tensors = append(state.Tensors, checkpoint.Tensor{Name: prunedName(i, m), Shape: m.Shape, Data: mask})
		}
	}
}

// restorePruned takes it back.
func (n *network) restorePruned(from *stored) (err error) {
	if n.pruned, err = n.stepper.loadPruned(n.spec.Prune, from); err == nil {
		n.stepper.hold(n.pruned)
	}
	return err
}

// loadPruned returns what a state holds at 0, by phase.
func (s *stepper) loadPruned(phases []config.Prune, from *stored) ([]pruned, error) {
	all := make([]pruned, len(phases))
	for i := range phases {
		phase := &phases[i]
		if !heldInState(phase, from.progress) {
			continue
		}
		all[i] = make(pruned, len(s.moved))
		for j, m := range s.moved {
			if !config.MatchPath(phase.On, m.Path) {
				continue
			}
			mask := make([]float32, len(m.Data))
			if err := load(from.path, from.file, prunedName(i, m), m.Shape, mask); err != nil {
				return nil, err
			}
			all[i][j] = nonZero(mask)
		}
	}
	return all, nil
}

// nonZero returns the indices of the values that are not 0.
func nonZero(values []float32) (indices []int32) {
	for i, v := range values {
		if v != 0 {
			indices = append(indices, int32(i))
		}
	}
	return indices
}

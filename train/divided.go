package train

import (
	"slices"

	"tessera/optim"
	"tessera/parallel/collective"
	"tessera/train/checkpoint"
)

// gathering is the memory to gather the parts of one parameter.
type gathering struct {
	counts    []int     // elements of each process
	part      []float32 // those of this one
	mine, all any       // part and the parameter, stored once: calls do not allocate
}

// divide gives every process an equal number of a parameter's blocks, of which it keeps the optimizer's state (ZeRO stage 1). The
// update, the projections that are fused with it and the norm of the gradient are computed block by block in any case: the
// parameters get the same bits.
//
// Source: Rajbhandari et al., ZeRO: memory optimizations toward training trillion parameter models, 2020.
func (s *stepper) divide(m *moved) {
	blocks := (len(m.Data) + optim.NormBlock - 1) / optim.NormBlock
	size := s.processes.size()
	limits := make([]int, size+1)
	for r := range size {
		_, to := collective.Share(blocks, r, size)
		limits[r+1] = min(to*optim.NormBlock, len(m.Data))
	}
	g := &m.gathering
	for r := range size {
		g.counts = append(g.counts, limits[r+1]-limits[r])
	}
	rank := s.processes.group.Rank()
	m.from, m.to = limits[rank], limits[rank+1]
	g.part = make([]float32, m.to-m.from)
	g.mine, g.all = g.part, m.Data
}

// gather replaces values of a parameter's shape by the parts that all processes have of them.
func (s *stepper) gather(m *moved, part []float32, all any) error {
	copy(m.gathering.part, part)
	return s.processes.group.AllGather(m.gathering.mine, m.gathering.counts, all)
}

// exchange gives every process the updated parameters of all, and calls the Moved functions of hooks for those that others
// updated. It reports whether all updates were sound.
func (s *stepper) exchange(sound bool) (bool, error) {
	bad, err := s.processes.any(!sound)
	if err != nil || bad {
		return !bad, err
	}
	for i, m := range s.moved {
		if s.gradients[i] == nil {
			continue
		}
		if err := s.gather(m, m.Data[m.from:m.to], m.gathering.all); err != nil {
			return false, err
		}
	}
	if len(s.watching) > 0 {
		s.team.Do(s.follow)
	}
	return true, nil
}

// followOthers calls the Moved functions for a thread's share of the chunks that other processes updated.
func (s *stepper) followOthers(thread int) {
	from, to := s.share(thread, len(s.chunks))
	for i := from; i < to; i++ {
		c := &s.chunks[i]
		m := s.moved[c.of]
		if !c.mine && len(m.whole) == 0 && s.gradients[c.of] != nil {
			s.tell(thread, m, m.Data[c.from:c.to], c.from)
		}
	}
}

// saveState adds the optimizer's state of all processes to a checkpoint.
func (s *stepper) saveState(state *checkpoint.File) error {
	for _, m := range s.moved {
		for i, values := range m.State {
			if s.processes != nil {
				all := make([]float32, len(m.Data))
				if err := s.gather(m, values, all); err != nil {
					return err
				}
				values = all
			}
			state.Tensors = append(state.Tensors, checkpoint.Tensor{Name: optimizerName(m, i), Shape: m.Shape, Data: values})
		}
	}
	return nil
}

// restoreState loads this process's part of the optimizer's state.
func (s *stepper) restoreState(from *stored) error {
	for _, m := range s.moved {
		for i, values := range m.State {
			t, ok := from.file.Tensor(optimizerName(m, i))
			if !ok || !slices.Equal(t.Shape, m.Shape) { // load names the problem
				return load(from.path, from.file, optimizerName(m, i), m.Shape, values)
			}
			copy(values, t.Data[m.from:m.to])
		}
	}
	return nil
}

package engine

import (
	"slices"

	"tessera/engine/ir"
)

// phase is a set of steps between two barriers. Its serial steps run first, one after the other, on the thread that
// comes to the barrier last; then every thread runs its units of the shared steps, in order, without waiting for the
// others.
type phase struct {
	serial []*step
	shared []*step
	bands  []band // of the shared steps
}

// schedule arranges steps, given in an order that respects their dependencies, into as few phases as it can. A step may
// join the phase of a step that it reads when both are split into the same units and unit i needs unit i only.
func schedule(steps []*step) []phase {
	s := &scheduler{done: map[*step]bool{}, writer: map[*ir.Value]*step{}}
	for _, st := range steps {
		for _, w := range st.writes {
			s.writer[w.value] = st
		}
	}
	left := slices.Clone(steps)
	var phases []phase
	for len(left) > 0 {
		var p phase
		for more := []*step(nil); len(p.serial) == 0 || len(more) > 0; p.serial = append(p.serial, more...) {
			if more, left = s.takeSerial(left); len(more) == 0 {
				break
			}
		}
		p.shared, left = s.takeShared(left)
		phases = append(phases, p)
	}
	delay(phases)
	for i := range phases {
		phases[i].bands = bands(phases[i].shared)
	}
	return phases
}

// delay moves a shared step whose result only one later phase reads, unit by unit, into that phase: the result is then read
// while it is in the caches.
func delay(phases []phase) {
	for i := len(phases) - 2; i >= 0; i-- {
		for _, st := range slices.Clone(phases[i].shared) {
			if to := readersOf(st, phases[i:]); to > 0 && st.divisible {
				phases[i].shared = slices.DeleteFunc(phases[i].shared, func(other *step) bool { return other == st })
				phases[i+to].shared = slices.Insert(phases[i+to].shared, 0, st)
			}
		}
	}
}

// readersOf returns the one phase in which shared steps read all results of st in the same units; 0 if there is none.
func readersOf(st *step, phases []phase) int {
	found := 0
	for i, p := range phases {
		for _, reader := range slices.Concat(p.serial, p.shared) {
			for _, r := range reader.reads {
				switch {
				case !slices.ContainsFunc(st.writes, func(w reading) bool { return w.value == r.value }):
				case reader.serial || reader.units != st.units || r.way == whole || !writes(st, r) || i == 0 || found > 0 && found != i:
					return 0
				default:
					found = i
				}
			}
		}
	}
	return found
}

type scheduler struct {
	done   map[*step]bool
	writer map[*ir.Value]*step
}

// takeSerial removes every serial step that can run now, until no more can.
func (s *scheduler) takeSerial(left []*step) (taken, rest []*step) {
	for _, st := range left {
		if st.serial && s.ready(st, nil) {
			taken = append(taken, st)
			s.done[st] = true
		} else {
			rest = append(rest, st)
		}
	}
	return taken, rest
}

// takeShared removes every shared step that can run in one phase.
func (s *scheduler) takeShared(left []*step) (taken, rest []*step) {
	in := map[*step]bool{}
	for _, st := range left {
		if !st.serial && s.ready(st, in) {
			taken = append(taken, st)
			in[st] = true
		} else {
			rest = append(rest, st)
		}
	}
	for _, st := range taken {
		s.done[st] = true
	}
	return taken, rest
}

// ready reports whether all that st reads is computed, or computed row by row in the same phase.
func (s *scheduler) ready(st *step, in map[*step]bool) bool {
	if st.after != nil && !s.done[st.after] {
		return false
	}
	for _, r := range st.reads {
		w := s.writer[r.value]
		if w == nil || s.done[w] {
			continue
		}
		if !in[w] || w.units != st.units || r.way == whole || !writes(w, r) {
			return false
		}
	}
	return true
}

// writes reports whether unit i of w writes exactly the values that unit i of r's reader reads.
func writes(w *step, r reading) bool { return slices.Contains(w.writes, r) }

package engine

import (
	"slices"

	"tessera/internal/engine/ir"
	"tessera/internal/parallel/team"
	"tessera/internal/volume"
)

// phase is a set of steps between two barriers. The last thread to reach the barrier first runs the serial steps, one
// after the other. Then every thread runs its units of the shared steps, in order, without waiting for the others.
type phase struct {
	serial []*step
	shared []*step
	bands  []band // bands of the shared steps
}

// schedule arranges steps into as few phases as possible. The steps are given in an order that respects their
// dependencies. A step may join the phase of a step whose results it reads if both have the same units and unit i of
// the reader needs only unit i of the results.
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

// delay moves a shared step into a later phase if only that phase reads its result, unit by unit. The result is then
// read while it is in the caches.
func delay(phases []phase) {
	for i := len(phases) - 2; i >= 0; i-- {
		for _, st := range slices.Clone(phases[i].shared) {
			if to := readingPhase(st, phases[i:]); to > 0 && st.divisible {
				phases[i].shared = slices.DeleteFunc(phases[i].shared, func(other *step) bool { return other == st })
				phases[i+to].shared = slices.Insert(phases[i+to].shared, 0, st)
			}
		}
	}
}

// readingPhase returns the only phase that reads results of st, if its shared steps read them in the same units.
// Otherwise it returns 0.
func readingPhase(st *step, phases []phase) int {
	found := 0
	for i, p := range phases {
		for _, reader := range slices.Concat(p.serial, p.shared) {
			for _, r := range reader.reads {
				switch {
				case !slices.ContainsFunc(st.writes, func(w operand) bool { return w.value == r.value }):
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

// takeSerial removes from left the serial steps that can run now, one after the other.
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

// takeShared removes from left all shared steps that can run in one phase.
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

// ready reports whether every value that st reads has been computed, or is computed unit by unit by a step in the same
// phase.
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

// writes reports whether unit i of w writes exactly the values that unit i of the reader reads as r.
func writes(w *step, r operand) bool { return slices.Contains(w.writes, r) }

// band is a sequence of shared steps of a phase that a thread runs on a few units at a time. The results of one step
// are then still in the caches when the next step reads them.
type band struct {
	steps []*step
	units int // number of units that are processed at a time
}

// bandValues is the number of values that the steps of a band access at a time. They occupy half of the second-level
// cache.
const bandValues = 1 << 18

// If a band has more than wholeTiles units at a time, their number is a multiple of wholeTiles. Products whose units
// are rows then have only full tiles.
const wholeTiles = 12

// bands groups the shared steps of a phase. A step joins the previous band if it reads, row by row, values that this
// band writes row by row. Products form separate bands, because they are faster with more rows at a time.
func bands(shared []*step) []band {
	var list []band
	for _, st := range shared {
		if n := len(list); n > 0 && joins(st, list[n-1].steps) {
			list[n-1].steps = append(list[n-1].steps, st)
		} else {
			list = append(list, band{steps: []*step{st}})
		}
	}
	for i := range list {
		list[i].units = list[i].steps[0].units
		if len(list[i].steps) > 1 {
			list[i].units = max(1, bandValues/valuesPerUnit(list[i].steps))
			if units := list[i].units; units > wholeTiles {
				list[i].units = units - units%wholeTiles
			}
		}
	}
	return list
}

func joins(st *step, before []*step) bool {
	if !st.divisible || !before[0].divisible || st.columns || before[0].columns || st.units != before[0].units {
		return false
	}
	return slices.ContainsFunc(before, func(w *step) bool {
		return slices.ContainsFunc(st.reads, func(r operand) bool { return r.way == rows && writes(w, r) })
	})
}

// valuesPerUnit returns the number of values that one unit of the steps reads and writes. Memory that several steps
// access counts once.
func valuesPerUnit(steps []*step) int {
	n, counted := 0, map[*ir.Value]bool{}
	for _, st := range steps {
		for v := range st.overwrites {
			counted[v] = true
		}
		for _, r := range slices.Concat(st.reads, st.writes) {
			if r.way == rows && !counted[r.value] {
				counted[r.value] = true
				n += volume.Of(r.value.Shape) / st.units
			}
		}
	}
	return max(1, n)
}

// run computes the band for a thread's share of the units.
func (b *band) run(thread, threads int) {
	from, to := team.Share(b.steps[0].units, thread, threads)
	for _, st := range b.steps {
		st.begin(thread, from, to)
	}
	for first := from; first == from || first < to; first += b.units {
		for _, st := range b.steps {
			st.work.run(thread, first, min(first+b.units, to))
		}
	}
}

package engine

import (
	"slices"

	"tessera/engine/ir"
	"tessera/internal/volume"
	"tessera/parallel/team"
)

// band is a sequence of shared steps of a phase that a thread processes a few units at a time: the results of one step are
// then still in the caches when the next step reads them.
type band struct {
	steps []*step
	units int // at a time
}

// bandValues is the number of values that the steps of a band touch at a time: half of a second-level cache.
const bandValues = 1 << 18

// Larger bands are multiples of wholeTiles, so that products whose rows are units have only full tiles.
const wholeTiles = 12

// bands groups the shared steps of a phase. A step joins the preceding band if it reads, row by row, values that the band
// writes row by row. Products stay alone: the more rows at a time, the faster they are.
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
		return slices.ContainsFunc(st.reads, func(r reading) bool { return r.way == rows && writes(w, r) })
	})
}

// valuesPerUnit is the number of values that a unit of the steps reads and writes; a shared place counts once.
func valuesPerUnit(steps []*step) int {
	n, counted := 0, map[*ir.Value]bool{}
	for _, st := range steps {
		for v := range st.over {
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

// run computes a thread's units of a band.
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

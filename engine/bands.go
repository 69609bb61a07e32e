package engine

import (
	"slices"

	"tessera/internal/volume"
	"tessera/ir"
	"tessera/team"
)

// band is consecutive shared steps of a phase that a thread goes through a few units at a time: what one of them writes is
// then still in the caches when the next reads it.
type band struct {
	steps []*step
	units int // at a time
}

// bandValues is how many values the steps of a band touch at a time: half of a second-level cache.
const bandValues = 1 << 18

// wholeTiles is what larger bands are multiples of: products whose rows are units then have no tile that is not full.
const wholeTiles = 12

// bands groups the shared steps of a phase. A step joins the band before it when it reads there, row by row, what was
// written row by row. Products stay alone: the more rows at a time, the faster they are.
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

// valuesPerUnit is how many values a unit of the steps reads and writes, those of one place once.
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

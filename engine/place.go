package engine

import (
	"cmp"
	"slices"

	"tessera/engine/ir"
	"tessera/internal/volume"
)

// block is the place of one value in the arena, in elements.
type block struct {
	value       *ir.Value
	first, last int // phases from which and until which it lives
	offset, len int
}

// align is the distance to which places are rounded, in elements: whole cache lines in both precisions.
const align = 16

// place gives every written value a place in one arena; values that live at the same time do not overlap. Wanted values live
// to the end. The largest values are placed first, each at the lowest free offset. over maps a value to the one that it
// overwrites element by element: both share a place.
func place(phases []phase, wanted []*ir.Value, over map[*ir.Value]*ir.Value) (blocks []block, total int) {
	live := map[*ir.Value]*block{}
	for i, p := range phases {
		for _, st := range slices.Concat(p.serial, p.shared) {
			for _, w := range st.writes {
				if below := over[w.value]; below != nil {
					live[w.value] = live[below]
					live[w.value].last = i
				}
				if live[w.value] == nil {
					live[w.value] = &block{value: w.value, first: i, last: i, len: volume.Of(w.value.Shape)}
				}
			}
			for _, r := range st.reads {
				if b := live[r.value]; b != nil {
					b.last = i
				}
			}
		}
	}
	for _, w := range wanted {
		if b := live[skipReshapes(w)]; b != nil {
			b.last = len(phases)
		}
	}
	for v, b := range live {
		if over[v] == nil {
			blocks = append(blocks, *b)
		}
	}
	slices.SortFunc(blocks, func(a, b block) int {
		return cmp.Or(cmp.Compare(b.len, a.len), cmp.Compare(a.value.ID, b.value.ID))
	})
	for i := range blocks {
		blocks[i].offset = lowest(&blocks[i], blocks[:i])
		total = max(total, blocks[i].offset+blocks[i].len)
	}
	return blocks, total
}

// lowest is the smallest offset at which b overlaps none of the placed blocks that live when it does.
func lowest(b *block, placed []block) int {
	var busy []block
	for _, p := range placed {
		if p.first <= b.last && b.first <= p.last {
			busy = append(busy, p)
		}
	}
	slices.SortFunc(busy, func(x, y block) int { return cmp.Compare(x.offset, y.offset) })
	at := 0
	for _, p := range busy {
		if at+b.len <= p.offset {
			break
		}
		at = max(at, (p.offset+p.len+align-1)/align*align)
	}
	return at
}

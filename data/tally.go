package data

import (
	"bufio"
	"cmp"
	"container/heap"
	"context"
	"encoding/binary"
	"io"
	"math/bits"
	"slices"
)

// Tally counts unordered pairs of whole numbers: in memory, or, with a budget, in sorted parts of a file that are merged in the end. Counts are whole
// numbers too, so that their sums do not depend on the order of the terms.
type Tally struct {
	spill spill
	table []pairCount // a pair is at the hash of its key or behind it
	n     int         // pairs in the table
	parts [][2]int64  // begin and end of the parts of the file
	wrong error       // that pairs were not written
}

// pairCount is a pair, whose first number is the upper half of the key, with its count: 0 for a free place of the table.
type pairCount struct{ key, count uint64 }

func (p pairCount) swapped() pairCount { return pairCount{bits.RotateLeft64(p.key, 32), p.count} }

const (
	pairSize  = 16
	mostParts = 128 // of the file, before they are merged
)

// NewTally returns a tally without pairs. Its file lies beside the file at path. Pairs are divided among two tallies of the budget if there are test samples.
func NewTally(path string, budget Budget, tests bool) *Tally {
	return &Tally{spill: spill{r: reading{Files: Files{File: path, Memory: budget}, recorded: true, halved: tests}}, table: make([]pairCount, 1<<10)}
}

// Add adds to the count of a pair. A failure is an error of Each.
func (t *Tally) Add(a, b int32, count uint64) {
	if 4*t.n >= 3*len(t.table) && t.wrong == nil {
		budget := t.spill.r.budget()
		if budget > 0 && int64(2*len(t.table)*pairSize) > budget/2 { // the other half is the garbage collector's
			t.wrong = t.move()
		} else {
			old := t.table
			t.table, t.n = make([]pairCount, 2*len(old)), 0
			for _, p := range old {
				t.put(p)
			}
		}
	}
	if t.wrong == nil {
		t.put(pairCount{uint64(max(a, b))<<32 | uint64(min(a, b)), count})
	}
}

func (t *Tally) put(p pairCount) {
	if p.count == 0 {
		return
	}
	last := len(t.table) - 1 // all bits of it are 1
	at := int(p.key * 0x9e3779b97f4a7c15 >> bits.LeadingZeros64(uint64(last)))
	for t.table[at].count > 0 && t.table[at].key != p.key {
		at = (at + 1) & last
	}
	if t.table[at].count == 0 {
		t.n++
	}
	t.table[at] = pairCount{p.key, t.table[at].count + p.count}
}

// list returns the pairs of the table, which are then at its begin.
func (t *Tally) list() []pairCount {
	list := t.table[:0]
	for _, p := range t.table {
		if p.count > 0 {
			list = append(list, p)
		}
	}
	return list
}

func byKey(p, q pairCount) int { return cmp.Compare(p.key, q.key) }

// move moves the pairs of the table to the file, in two parts: as they are, and swapped.
func (t *Tally) move() error {
	list := t.list()
	for range 2 {
		slices.SortFunc(list, byKey)
		err := t.write(func(do func(pairCount) error) (err error) {
			for i := 0; i < len(list) && err == nil; i++ {
				err = do(list[i])
			}
			return err
		})
		if err != nil {
			return err
		}
		swapped := list[:0]
		for _, p := range list {
			if q := p.swapped(); q.key != p.key {
				swapped = append(swapped, q)
			}
		}
		list = swapped
	}
	clear(t.table)
	t.n = 0
	if len(t.parts) < mostParts {
		return nil
	}
	old := *t
	defer old.spill.file.Close()
	t.spill.file, t.parts = nil, nil
	return t.write(old.merge)
}

// write appends a part to the file: the difference of each key to the one before it, and the count.
func (t *Tally) write(each func(do func(pairCount) error) error) error {
	if t.spill.file == nil {
		if err := t.spill.create(); err != nil {
			return err
		}
	}
	var from, n int64
	if len(t.parts) > 0 {
		from = t.parts[len(t.parts)-1][1]
	}
	var b []byte
	key := uint64(0)
	err := each(func(p pairCount) error {
		b = binary.AppendUvarint(binary.AppendUvarint(b[:0], p.key-key), p.count)
		key, n = p.key, n+int64(len(b))
		_, err := t.spill.to.Write(b)
		return err
	})
	t.parts = append(t.parts, [2]int64{from, from + n})
	return t.spill.wrong(cmp.Or(err, t.spill.to.Flush()))
}

// partial is the next pair of a part of the file.
type partial struct {
	pairCount
	from *bufio.Reader
}

// next reads the next pair: io.EOF after the last one.
func (p *partial) next() error {
	step, err := binary.ReadUvarint(p.from)
	if err != nil {
		return err
	}
	p.key += step
	if p.count, err = binary.ReadUvarint(p.from); err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// partials is a heap, with the smallest key first.
type partials []*partial

func (h partials) Len() int           { return len(h) }
func (h partials) Less(i, j int) bool { return h[i].key < h[j].key }
func (h partials) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *partials) Push(x any)        { *h = append(*h, x.(*partial)) }
func (h *partials) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// merge calls do for all pairs of the file in the order of their keys.
func (t *Tally) merge(do func(pairCount) error) (err error) {
	var h partials
	for _, part := range t.parts {
		p := &partial{from: bufio.NewReaderSize(io.NewSectionReader(t.spill.file, part[0], part[1]-part[0]), 1<<14)}
		if err := p.next(); err == nil {
			h = append(h, p)
		} else if err != io.EOF {
			return err
		}
	}
	heap.Init(&h)
	for len(h) > 0 {
		sum := pairCount{key: h[0].key}
		for len(h) > 0 && h[0].key == sum.key {
			sum.count += h[0].count
			if err := h[0].next(); err == nil {
				heap.Fix(&h, 0)
			} else if heap.Pop(&h); err != io.EOF {
				return err
			}
		}
		if err := do(sum); err != nil {
			return err
		}
	}
	return nil
}

// Each calls do for all pairs (a, b) and (b, a), sorted by the first number, then the second. Nothing can be added then.
func (t *Tally) Each(ctx context.Context, do func(a, b int32, count uint64) error) error {
	row := int32(-1)
	one := func(p pairCount) error {
		a := int32(p.key >> 32)
		if a != row { // seldom enough
			if row = a; ctx.Err() != nil {
				return ctx.Err()
			}
		}
		return do(a, int32(p.key), p.count)
	}
	if t.spill.r.Memory > 0 {
		if t.wrong == nil {
			t.wrong = t.move()
		}
		if t.table = nil; t.wrong != nil {
			return t.wrong
		}
		defer t.spill.file.Close()
		return t.merge(one)
	}
	list := t.list()
	for _, p := range list {
		if q := p.swapped(); q.key != p.key {
			list = append(list, q)
		}
	}
	slices.SortFunc(list, byKey)
	for _, p := range list {
		if err := one(p); err != nil {
			return err
		}
	}
	return nil
}

package tokens

import (
	"container/heap"
	"iter"
	"maps"
	"slices"
	"unicode"
	"unicode/utf8"
)

// runs divides a text into the pieces over whose borders no pair is merged: a run of letters, of digits or of other signs, each with the space
// before it, and other white space. Joined they are the text, which may have any bytes.
func runs(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for from := 0; from < len(text); {
			to := from
			if text[to] == ' ' && to+1 < len(text) {
				if r, _ := utf8.DecodeRuneInString(text[to+1:]); classOf(r) != space {
					to++
				}
			}
			first, size := utf8.DecodeRuneInString(text[to:])
			class := classOf(first)
			for to += size; to < len(text); to += size {
				var r rune
				if r, size = utf8.DecodeRuneInString(text[to:]); classOf(r) != class {
					break
				}
				if class == space && r == ' ' && to+1 < len(text) { // the last space belongs to the word behind it
					if next, _ := utf8.DecodeRuneInString(text[to+1:]); classOf(next) != space {
						break
					}
				}
			}
			if !yield(text[from:to]) {
				return
			}
			from = to
		}
	}
}

// The classes of signs.
const (
	other = iota
	letter
	digit
	space
)

func classOf(r rune) int {
	switch {
	case unicode.IsLetter(r) || unicode.IsMark(r):
		return letter
	case unicode.IsNumber(r):
		return digit
	case unicode.IsSpace(r):
		return space
	}
	return other
}

// merged returns the tokens of a piece of a text: its bytes, of which the pair that was merged first in the fit is merged first.
func (t *Tokenizer) merged(piece string) []int32 {
	list := make([]int32, len(piece))
	for i := range len(piece) {
		list[i] = t.single[piece[i]]
	}
	for len(t.ranks) > 0 {
		best := int32(-1)
		for i := 1; i < len(list); i++ {
			if rank, ok := t.ranks[[2]int32{list[i-1], list[i]}]; ok && (best < 0 || rank < best) {
				best = rank
			}
		}
		if best < 0 {
			break
		}
		list = joined(list, t.Merges[best], t.results[best])
	}
	return list
}

// joined replaces every pair, from the left, by a token, in place.
func joined(list []int32, pair [2]int32, token int32) []int32 {
	to := list[:0]
	for i := 0; i < len(list); i++ {
		if i+1 < len(list) && list[i] == pair[0] && list[i+1] == pair[1] {
			to = append(to, token)
			i++
			continue
		}
		to = append(to, list[i])
	}
	return to
}

// counted is a pair of tokens with its number of occurrences when it was added to the queue.
type counted struct {
	pair [2]int32
	n    int
}

// queue is a heap of pairs: the most frequent first, of equally frequent ones that of the smallest numbers.
type queue []counted

func (q queue) Len() int      { return len(q) }
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q queue) Less(i, j int) bool {
	if q[i].n != q[j].n {
		return q[i].n > q[j].n
	}
	return slices.Compare(q[i].pair[:], q[j].pair[:]) < 0
}
func (q *queue) Push(x any) { *q = append(*q, x.(counted)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// mergesOf returns the first merges, at most `most`, of byte-pair encoding for pieces of texts with their numbers of occurrences: each is the most frequent
// pair of neighbours after those before it; of equally frequent ones that of the smallest numbers. Pairs that occur once are not merged.
//
// Source: R. Sennrich, B. Haddow, A. Birch, Neural machine translation of rare words with subword units, ACL 2016.
func mergesOf(pieces map[string]int, most int) (merges [][2]int32) {
	type part struct {
		list []int32
		n    int
	}
	parts := make([]part, 0, len(pieces))
	total, where := map[[2]int32]int{}, map[[2]int32]map[int]bool{}
	count := func(k, sign int) (changed [][2]int32) {
		list := parts[k].list
		for i := 1; i < len(list); i++ {
			p := [2]int32{list[i-1], list[i]}
			if total[p] += sign * parts[k].n; sign > 0 {
				if where[p] == nil {
					where[p] = map[int]bool{}
				}
				where[p][k] = true
			}
			changed = append(changed, p)
		}
		return changed
	}
	for _, piece := range slices.Sorted(maps.Keys(pieces)) {
		list := make([]int32, len(piece))
		for i := range len(piece) {
			list[i] = int32(piece[i])
		}
		parts = append(parts, part{list, pieces[piece]})
		count(len(parts)-1, 1)
	}
	q := &queue{}
	for p, n := range total {
		*q = append(*q, counted{p, n})
	}
	heap.Init(q)
	for len(merges) < most && q.Len() > 0 {
		top := heap.Pop(q).(counted)
		if top.n != total[top.pair] { // an old number, of which a newer one is in the queue
			continue
		}
		if top.n < 2 {
			break
		}
		token := int32(256 + len(merges))
		merges = append(merges, top.pair)
		changed := map[[2]int32]bool{}
		for _, k := range slices.Sorted(maps.Keys(where[top.pair])) {
			for _, p := range count(k, -1) {
				changed[p] = true
			}
			parts[k].list = joined(parts[k].list, top.pair, token)
			for _, p := range count(k, 1) {
				changed[p] = true
			}
		}
		delete(where, top.pair)
		for p := range changed {
			if total[p] > 0 {
				heap.Push(q, counted{p, total[p]})
			}
		}
	}
	return merges
}

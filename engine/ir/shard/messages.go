package shard

import (
	"cmp"
	"slices"

	"tessera/engine/ir"
)

// message is a collective operation.
type message struct {
	values []*ir.Value
	late   bool
	level  int // messages before it that it must wait for, one after the other
	depth  int // the length of the longest computation before it: about when its values are ready
}

// Sizes in elements of 4 bytes. Values up to together are sent in one message: it costs less to copy them than to wait once
// more. A message of late values is full from bucket on.
const (
	together = 16 << 10
	bucket   = 64 << 10
)

// number assigns the collective values of a program to messages and puts the messages in one order for all processes. The
// result depends on the program's structure only, which is the same on all processes.
//
// Values that can be sent at the same time are one message, if they are small. Late values are sent as soon as they are
// ready, while the computation continues, the small ones together in buckets.
func number(m *ir.Module) {
	l := leveller{read: map[*ir.Value]bool{}, level: map[*ir.Value]int{}, depth: map[*ir.Value]int{}}
	var early, late []*message
	for _, v := range l.measure(m) {
		o, sum := v.Op.(ir.AllReduce)
		one := &message{[]*ir.Value{v}, sum && !l.read[v], l.level[v], l.depth[v]}
		switch {
		case one.late:
			late = append(late, one)
		case sum && size(v) <= together:
			early = joined(early, one, o.F)
		default:
			early = append(early, one)
		}
	}
	for i, sent := range ordered(early, buckets(late)) {
		for j, v := range sent.values {
			switch o := v.Op.(type) {
			case ir.AllReduce:
				v.Op = ir.AllReduce{F: o.F, Message: i, Member: j, Late: sent.late}
			case ir.AllGather:
				o.Message = i
				v.Op = o
			}
		}
	}
}

// leveller measures the values of a program.
type leveller struct {
	read         map[*ir.Value]bool
	level, depth map[*ir.Value]int
}

// measure returns the collective values.
func (l *leveller) measure(m *ir.Module) []*ir.Value {
	for _, v := range m.Values() {
		for _, a := range v.Args {
			l.read[a] = true
			l.level[v] = max(l.level[v], l.level[a])
			l.depth[v] = max(l.depth[v], l.depth[a]+1)
		}
		if _, ok := ir.MessageOf(v.Op); ok {
			l.level[v]++
		}
	}
	return collectives(m)
}

// joined adds a small all-reduce to the message of its level and reducer.
func joined(list []*message, one *message, f ir.Reducer) []*message {
	for _, m := range list {
		o, ok := m.values[0].Op.(ir.AllReduce)
		if ok && o.F == f && m.level == one.level && size(m.values[0]) <= together {
			m.values = append(m.values, one.values...)
			m.depth = max(m.depth, one.depth)
			return list
		}
	}
	return append(list, one)
}

// buckets collects late values in the order in which they become ready. A large value is a separate message, which
// needs no copy.
func buckets(late []*message) (full []*message) {
	slices.SortStableFunc(late, func(a, b *message) int { return cmp.Compare(a.depth, b.depth) })
	open := map[ir.Reducer]*message{}
	length := map[ir.Reducer]int{}
	for _, m := range late {
		f := m.values[0].Op.(ir.AllReduce).F
		switch n := size(m.values[0]); {
		case n > together:
			full = append(full, m)
			continue
		case open[f] == nil:
			open[f], length[f] = m, n
		default:
			open[f].values = append(open[f].values, m.values...)
			open[f].level, open[f].depth = max(open[f].level, m.level), max(open[f].depth, m.depth)
			length[f] += n
		}
		if length[f] >= bucket {
			full = append(full, open[f])
			delete(open, f)
		}
	}
	for _, f := range []ir.Reducer{ir.Sum, ir.Largest} {
		if open[f] != nil {
			full = append(full, open[f])
		}
	}
	return full
}

// ordered merges both kinds. A message comes after those that its values may need, which are of a lower level; of the messages
// that can be sent, the one that is ready first comes first.
func ordered(early, late []*message) (all []*message) {
	byReadiness := func(a, b *message) int {
		return cmp.Or(cmp.Compare(a.level, b.level), cmp.Compare(a.depth, b.depth))
	}
	slices.SortStableFunc(early, byReadiness)
	slices.SortStableFunc(late, func(a, b *message) int { return cmp.Compare(a.depth, b.depth) })
	for _, next := range early {
		late = slices.DeleteFunc(late, func(m *message) bool {
			before := m.level <= next.level && m.depth <= next.depth
			if before {
				all = append(all, m)
			}
			return before
		})
		all = append(all, next)
	}
	return append(all, late...)
}

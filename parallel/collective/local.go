package collective

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Local returns a group of n goroutines of one process, one member for each, for tests and measurements. Sums are in the order of the
// ranks. The group has no deadline: if one member stops calling, the others wait forever.
func Local(n int) []Group {
	s := &shared{size: n}
	s.wake.L = &s.mu
	members := make([]Group, n)
	for rank := range members {
		members[rank] = &local{shared: s, rank: rank}
	}
	return members
}

// shared is the state of a local group.
type shared struct {
	size   int
	mu     sync.Mutex
	wake   sync.Cond
	parked atomic.Int32
	rounds []*round // the operations that have begun and that some member has not completed
	free   []*round
}

// local is a member.
type local struct {
	*shared
	rank int
	next uint64 // number of its next operation
}

// signature is what the members must agree on.
type signature struct {
	name   string
	op     Op
	root   int
	kind   string
	length int
}

// round is one operation of all members.
type round struct {
	number  uint64
	want    signature // of the first member to arrive
	parts   []any     // the values of each rank
	err     error     // of members that disagree
	arrived atomic.Int32
	claimed atomic.Int64 // pieces that a member works on or has completed
	done    atomic.Int64 // pieces that are complete
	left    int
	tickets []ticket // by rank
}

// ticket is a member's part in a round that has begun. It implements [Pending].
type ticket struct {
	member *local
	round  *round
}

// Rank implements [Group].
func (l *local) Rank() int { return l.rank }

// Size implements [Group].
func (l *local) Size() int { return l.size }

// Start implements [Group]. The members combine the values in Wait, piece by piece.
func (l *local) Start(op Op, values any) (Pending, error) {
	n, err := Len(values)
	if err != nil {
		return nil, err
	}
	return l.enter(signature{"all-reduce", op, 0, kind(values), n}, values), nil
}

// AllReduce implements [Group].
func (l *local) AllReduce(op Op, values any) error {
	p, err := l.Start(op, values)
	if err != nil {
		return err
	}
	return p.Wait()
}

// AllGather implements [Group].
func (l *local) AllGather(mine any, counts []int, all any) error {
	if err := l.gathers(mine, counts, all); err != nil {
		return err
	}
	total, _ := Len(all)
	t := l.enter(signature{"all-gather", 0, 0, kind(mine), total}, mine)
	return t.each(func() { concatenate(t.round.parts, all) })
}

// gathers returns an error for lengths or types that do not fit.
func (l *local) gathers(mine any, counts []int, all any) error {
	m, err := Len(mine)
	if err != nil {
		return err
	}
	n, err := Len(all)
	if err != nil {
		return err
	}
	total := 0
	for _, c := range counts {
		total += c
	}
	if len(counts) != l.size || counts[l.rank] != m || total != n || kind(mine) != kind(all) {
		return fmt.Errorf("collective: all-gather on rank %d of %d: got %d values of %s for %d of %s, counts %v", l.rank, l.size, m, kind(mine), n, kind(all), counts)
	}
	return nil
}

// Broadcast implements [Group].
func (l *local) Broadcast(root int, values []byte) error {
	if root < 0 || root >= l.size {
		return fmt.Errorf("collective: broadcast from rank %d of %d", root, l.size)
	}
	t := l.enter(signature{"broadcast", 0, root, "bytes", len(values)}, values)
	return t.each(func() {
		if l.rank != root {
			copy(values, t.round.parts[root].([]byte))
		}
	})
}

// Barrier implements [Group].
func (l *local) Barrier() error { return l.enter(signature{name: "barrier"}, nil).each(func() {}) }

// kind is the type of values.
func kind(values any) string {
	switch values.(type) {
	case []float32:
		return "float32"
	case []float64:
		return "float64"
	}
	return "uint64"
}

// enter joins the member's next round; the first member to arrive opens it.
func (l *local) enter(s signature, part any) *ticket {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.IndexFunc(l.rounds, func(r *round) bool { return r.number == l.next })
	if at < 0 {
		at = len(l.rounds)
		l.rounds = append(l.rounds, l.open(l.next, s))
	}
	r := l.rounds[at]
	l.next++
	if s != r.want && r.err == nil {
		r.err = fmt.Errorf("collective: the processes disagree: %+v on rank %d, %+v on another", s, l.rank, r.want)
	}
	r.parts[l.rank] = part
	r.tickets[l.rank] = ticket{l, r}
	if int(r.arrived.Add(1)) == l.size {
		l.wake.Broadcast()
	}
	return &r.tickets[l.rank]
}

// open returns an empty round; it reuses one that has ended.
func (s *shared) open(number uint64, want signature) *round {
	if len(s.free) == 0 {
		s.free = append(s.free, &round{parts: make([]any, s.size), tickets: make([]ticket, s.size)})
	}
	r := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	r.number, r.want, r.err, r.left = number, want, nil, 0
	r.arrived.Store(0)
	r.claimed.Store(0)
	r.done.Store(0)
	return r
}

// leave ends the member's part in the round; the last to leave closes the round.
func (t *ticket) leave() {
	s, r := t.member.shared, t.round
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.left++; r.left == s.size {
		s.rounds = slices.DeleteFunc(s.rounds, func(other *round) bool { return other == r })
		clear(r.parts)
		s.free = append(s.free, r)
	}
}

// piece is the number of elements that a member combines at a time.
const piece = 4096

// Wait implements [Pending].
func (t *ticket) Wait() error {
	s, r := t.member.shared, t.round
	s.await(func() bool { return int(r.arrived.Load()) == s.size })
	defer t.leave()
	if r.err != nil {
		return r.err
	}
	pieces := int64((r.want.length + piece - 1) / piece)
	for i := r.claimed.Add(1) - 1; i < pieces; i = r.claimed.Add(1) - 1 {
		from := int(i) * piece
		combine(r.want.op, r.parts, from, min(from+piece, r.want.length))
		if r.done.Add(1) == pieces {
			s.notify()
		}
	}
	s.await(func() bool { return r.done.Load() == pieces })
	return nil
}

// each runs f on every member after all have arrived, and returns when all have run it.
func (t *ticket) each(f func()) error {
	s, r := t.member.shared, t.round
	s.await(func() bool { return int(r.arrived.Load()) == s.size })
	defer t.leave()
	if r.err != nil {
		return r.err
	}
	f()
	if int(r.done.Add(1)) == s.size {
		s.notify()
	}
	s.await(func() bool { return int(r.done.Load()) == s.size })
	return nil
}

// notify wakes the members that are parked.
func (s *shared) notify() {
	if s.parked.Load() > 0 {
		s.mu.Lock()
		s.wake.Broadcast()
		s.mu.Unlock()
	}
}

// patrol is the time for which a member polls before it parks.
const patrol = 100 * time.Microsecond

// await returns when the condition holds: it polls for a while and then parks.
func (s *shared) await(holds func() bool) {
	for began := time.Now(); time.Since(began) <= patrol; runtime.Gosched() {
		for range 200 {
			if holds() {
				return
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parked.Add(1)
	for !holds() {
		s.wake.Wait()
	}
	s.parked.Add(-1)
}

// combine replaces elements [from, to) of every part by their combination in the order of the parts.
func combine(op Op, parts []any, from, to int) {
	switch parts[0].(type) {
	case []float32:
		combined[float32](op, parts, from, to)
	case []float64:
		combined[float64](op, parts, from, to)
	case []uint64:
		combined[uint64](op, parts, from, to)
	}
}

func combined[T float32 | float64 | uint64](op Op, parts []any, from, to int) {
	first := parts[0].([]T)[from:to]
	for _, p := range parts[1:] {
		other := p.([]T)[from:to]
		if op == Max {
			for i, v := range other {
				first[i] = max(first[i], v)
			}
			continue
		}
		for i, v := range other {
			first[i] += v
		}
	}
	for _, p := range parts[1:] {
		copy(p.([]T)[from:to], first)
	}
}

// concatenate copies the parts to all, one after the other.
func concatenate(parts []any, all any) {
	switch to := all.(type) {
	case []float32:
		concatenated(parts, to)
	case []float64:
		concatenated(parts, to)
	case []uint64:
		concatenated(parts, to)
	}
}

func concatenated[T float32 | float64 | uint64](parts []any, to []T) {
	for _, p := range parts {
		to = to[copy(to, p.([]T)):]
	}
}

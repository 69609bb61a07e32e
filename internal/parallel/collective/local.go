package collective

import (
	"fmt"
	"slices"
	"sync"

	"tessera/internal/lists"
)

// Local returns a group of n goroutines of one process, for tests: one member for each goroutine. Sums are in the order
// of the ranks. The group has no deadline: if one member stops calling, the others wait forever.
func Local(n int) []Group {
	s := &shared{size: n}
	s.wake.L = &s.mu
	return lists.Of(n, func(rank int) Group { return &local{shared: s, rank: rank} })
}

// shared is the state of a local group.
type shared struct {
	size   int
	mu     sync.Mutex // guards all fields below
	wake   sync.Cond  // signalled when a round is complete
	rounds []*round   // operations that have started and that not all members have completed
	free   []*round
}

// local is one member of a group.
type local struct {
	*shared
	rank int
	next uint64 // number of the next operation of this member
}

// signature describes an operation; it must be the same for all members.
type signature struct {
	name   string
	op     Op
	root   int
	kind   string
	length int
}

// round is one operation of all members. The last member to arrive performs it for all.
type round struct {
	shared   *shared
	number   uint64
	want     signature // signature of the first member to arrive
	parts    []any     // values of each rank
	results  []any     // for a gather, the slice of each rank that receives all values
	err      error     // error if the members disagree
	arrived  int
	complete bool
	left     int
}

func (l *local) Rank() int { return l.rank }
func (l *local) Size() int { return l.size }

func (l *local) Start(op Op, values any) (Pending, error) {
	n, err := Len(values)
	if err != nil {
		return nil, err
	}
	return l.enter(signature{"all-reduce", op, 0, kind(values), n}, values, nil), nil
}

func (l *local) AllReduce(op Op, values any) error {
	p, err := l.Start(op, values)
	if err != nil {
		return err
	}
	return p.Wait()
}

func (l *local) AllGather(mine any, counts []int, all any) error {
	if err := CheckGather(l, mine, counts, all); err != nil {
		return err
	}
	total, _ := Len(all)
	return l.enter(signature{"all-gather", 0, 0, kind(mine), total}, mine, all).Wait()
}

func (l *local) Broadcast(root int, values []byte) error {
	if root < 0 || root >= l.size {
		return fmt.Errorf("collective: broadcast from rank %d of %d", root, l.size)
	}
	return l.enter(signature{"broadcast", 0, root, "bytes", len(values)}, values, nil).Wait()
}

func (l *local) Barrier() error { return l.enter(signature{name: "barrier"}, nil, nil).Wait() }

// kind returns the type of values as text.
func kind(values any) string {
	switch values.(type) {
	case []float32:
		return "float32"
	case []float64:
		return "float64"
	}
	return "uint64"
}

// enter joins the next round of the member. The first member to arrive opens the round, the last one performs its
// operation.
func (l *local) enter(s signature, part, result any) *round {
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
	r.parts[l.rank], r.results[l.rank] = part, result
	if r.arrived++; r.arrived == l.size {
		if r.err == nil {
			r.do()
		}
		r.complete = true
		l.wake.Broadcast()
	}
	return r
}

// open returns an empty round. It reuses a round that has ended.
func (s *shared) open(number uint64, want signature) *round {
	if len(s.free) == 0 {
		s.free = append(s.free, &round{shared: s, parts: make([]any, s.size), results: make([]any, s.size)})
	}
	r := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	*r = round{shared: s, number: number, want: want, parts: r.parts, results: r.results}
	return r
}

// Wait implements [Pending]. The last member to leave closes the round.
func (r *round) Wait() error {
	s := r.shared
	s.mu.Lock()
	defer s.mu.Unlock()
	for !r.complete {
		s.wake.Wait()
	}
	err := r.err
	if r.left++; r.left == s.size {
		s.rounds = slices.DeleteFunc(s.rounds, func(other *round) bool { return other == r })
		clear(r.parts)
		clear(r.results)
		s.free = append(s.free, r)
	}
	return err
}

// do performs the operation for all members.
func (r *round) do() {
	switch r.want.name {
	case "all-reduce":
		combine(r.want.op, r.parts)
	case "all-gather":
		for _, to := range r.results {
			concatenate(r.parts, to)
		}
	case "broadcast":
		for _, to := range r.parts {
			copy(to.([]byte), r.parts[r.want.root].([]byte))
		}
	}
}

// combine replaces every part by the reduction of all parts, in their order.
func combine(op Op, parts []any) {
	switch parts[0].(type) {
	case []float32:
		combined[float32](op, parts)
	case []float64:
		combined[float64](op, parts)
	case []uint64:
		combined[uint64](op, parts)
	}
}

func combined[T float32 | float64 | uint64](op Op, parts []any) {
	first := parts[0].([]T)
	for _, p := range parts[1:] {
		for i, v := range p.([]T) {
			if op == Max {
				first[i] = max(first[i], v)
			} else {
				first[i] += v
			}
		}
	}
	for _, p := range parts[1:] {
		copy(p.([]T), first)
	}
}

// concatenate writes the concatenation of the parts to the slice all.
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

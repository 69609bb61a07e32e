package mpi

import (
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"tessera/internal/engine/kernel"
	"tessera/internal/lists"
	"tessera/internal/parallel/collective"
	"tessera/internal/parallel/team"
)

// message is one point-to-point message of an operation.
type message struct {
	peer     int // rank of the other process, or anyone
	receives bool
	done     bool
	at       unsafe.Pointer
	bytes    int
	got      int    // number of bytes received
	request  uint64 // memory of the MPI_Request
}

// anyone is the peer of a message that may be received from any process.
const anyone = -1

// action is the kind of an operation.
type action uint8

const (
	exchange action = iota // all-reduce of few values: every process sends its values to all others and combines everything
	divide                 // all-reduce of many values: each process combines one part and sends the result
	gather
	broadcast
	tell // sends a failure to all other processes
	end  // calls MPI_Finalize
	abort
)

// operation is one operation of this process. It consists of phases of messages, each followed by [operation.after].
type operation struct {
	group    *Group
	action   action
	name     string
	number   uint64 // number of the operation in the group, which determines its tag
	phase    int
	op       collective.Op
	values   view
	others   view   // result of a gather
	counts   []int  // number of values of each rank in a gather
	memory   []byte // values received from other processes
	root     int
	code     int
	messages []message
	pin      runtime.Pinner
	waited   time.Duration
	patience time.Duration
	done     chan error
}

// view is a slice of values of one type, as memory.
type view struct {
	at    unsafe.Pointer
	n     int
	width int
	of    any
}

// viewOf returns the view of a []float32, []float64, []uint64 or []byte.
func viewOf(values any) (view, error) {
	switch v := values.(type) {
	case []float32:
		return view{unsafe.Pointer(unsafe.SliceData(v)), len(v), 4, values}, nil
	case []float64:
		return view{unsafe.Pointer(unsafe.SliceData(v)), len(v), 8, values}, nil
	case []uint64:
		return view{unsafe.Pointer(unsafe.SliceData(v)), len(v), 8, values}, nil
	case []byte:
		return view{unsafe.Pointer(unsafe.SliceData(v)), len(v), 1, values}, nil
	}
	return view{}, fmt.Errorf("mpi: got values of type %T, want []float32, []float64 or []uint64", values)
}

func (v view) element(i int) unsafe.Pointer { return unsafe.Add(v.at, i*v.width) }

// send and receive add a message with elements [from, to) of a view.
func (o *operation) send(peer int, v view, from, to int)    { o.add(peer, false, v, from, to) }
func (o *operation) receive(peer int, v view, from, to int) { o.add(peer, true, v, from, to) }

func (o *operation) add(peer int, receives bool, v view, from, to int) {
	if from < to {
		o.messages = append(o.messages, message{peer: peer, receives: receives, at: v.element(from), bytes: (to - from) * v.width})
	}
}

// scratch returns memory for n values from every process, in the order of the ranks. The values have the type of the
// operation.
func (o *operation) scratch(n int) view {
	bytes := n * o.values.width * o.group.size
	if cap(o.memory) < bytes {
		words := make([]uint64, (bytes+7)/8) // aligned for every type
		o.memory = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(words)*8)
	}
	return view{unsafe.Pointer(unsafe.SliceData(o.memory)), n * o.group.size, o.values.width, nil}
}

// prepare lists the messages of the current phase, receives before sends.
func (o *operation) prepare() {
	o.messages = o.messages[:0]
	v, rank, size := o.values, o.group.rank, o.group.size
	share := func(r int) (from, to int) { return team.EvenShare(v.n, r, size) }
	from, to := share(rank)
	for _, receives := range []bool{true, false} {
		for i := 1; i < size; i++ { // each process starts with its neighbour, so that not all send to rank 0 first
			peer := (rank + i) % size
			if receives {
				peer = (rank - i + size) % size
			}
			switch {
			case o.action == exchange && receives:
				o.receive(peer, o.scratch(v.n), peer*v.n, (peer+1)*v.n)
			case o.action == exchange:
				o.send(peer, v, 0, v.n)
			case o.action == divide && o.phase == 0 && receives:
				o.receive(peer, o.scratch(to-from), peer*(to-from), (peer+1)*(to-from))
			case o.action == divide && o.phase == 0:
				first, last := share(peer)
				o.send(peer, v, first, last)
			case o.action == divide && receives:
				first, last := share(peer)
				o.receive(peer, v, first, last)
			case o.action == divide:
				o.send(peer, v, from, to)
			case o.action == gather && receives:
				first := o.before(peer)
				o.receive(peer, o.others, first, first+o.counts[peer])
			case o.action == gather, o.action == tell && !receives:
				o.send(peer, v, 0, v.n)
			case o.action == broadcast && receives && peer == o.root:
				o.receive(peer, v, 0, v.n)
			case o.action == broadcast && !receives && rank == o.root:
				o.send(peer, v, 0, v.n)
			}
		}
	}
}

// before returns the number of values that the ranks below rank contribute to a gather.
func (o *operation) before(rank int) int { return lists.Sum(o.counts[:rank]) }

// after completes a phase whose messages are complete, and reports whether another phase follows.
func (o *operation) after() (more bool) {
	switch {
	case o.action == exchange:
		o.combine(0, o.values.n)
	case o.action == divide && o.phase == 0:
		o.combine(team.EvenShare(o.values.n, o.group.rank, o.group.size))
		o.phase++
		return true
	case o.action == gather:
		first := o.before(o.group.rank)
		copy(bytesOf(o.others.element(first), o.values), bytesOf(o.values.at, o.values))
	}
	return false
}

// bytesOf returns memory at the given address as a byte slice. It has the size of the view like.
func bytesOf(at unsafe.Pointer, like view) []byte {
	return unsafe.Slice((*byte)(at), like.n*like.width)
}

// combine replaces elements [from, to) by their reduction over all processes, in the order of the ranks.
func (o *operation) combine(from, to int) {
	parts := o.scratch(to - from)
	switch v := o.values.of.(type) {
	case []float32:
		combined(o.op, v[from:to], unsafe.Slice((*float32)(parts.at), parts.n), o.group.rank, kernel.Float32().Add)
	case []float64:
		combined(o.op, v[from:to], unsafe.Slice((*float64)(parts.at), parts.n), o.group.rank, kernel.Float64().Add)
	case []uint64:
		combined(o.op, v[from:to], unsafe.Slice((*uint64)(parts.at), parts.n), o.group.rank, addIntegers)
	}
}

func addIntegers(dst, a, b []uint64) {
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}

// combined reduces the parts of all processes in the order of their ranks and writes the result to values. parts
// contains the parts of the other processes one after the other; the part of rank is in values.
func combined[T float32 | float64 | uint64](op collective.Op, values, parts []T, rank int, add func(dst, a, b []T)) {
	n := len(values)
	if n == 0 || len(parts) == n {
		return
	}
	part := func(r int) []T { return parts[r*n : (r+1)*n] }
	if rank > 1 {
		copy(part(rank), values)
	}
	first, second := part(0), part(1)
	switch rank {
	case 0:
		first = values
	case 1:
		second = values
	}
	both := func(a, b []T) {
		if op == collective.Sum {
			add(values, a, b)
			return
		}
		for i := range values {
			values[i] = max(a[i], b[i])
		}
	}
	both(first, second)
	for r := 2; r < len(parts)/n; r++ {
		both(values, part(r))
	}
}

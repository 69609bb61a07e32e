package mpi

import (
	"fmt"
	"slices"
	"sync"
	"time"
	"unsafe"
)

// transport sends and receives messages. Its methods other than pause are called one after the other. join and finalize
// are called on the same thread.
type transport interface {
	join() (rank, size int, err error)
	version() string
	// post begins to send or receive a message. test reports whether the message is complete.
	post(m *message, tag int) error
	test(m *message) (done bool, err error)
	// cancel stops the receive of a message; test then completes it.
	cancel(m *message) error
	// pause yields the processor for a while.
	pause(d time.Duration)
	abort(code int)
	finalize() error
}

// Tags of messages. The tags of operations repeat, so that they stay below 32767, which every library allows. An
// operation has two phases.
const (
	tags       = 8192
	failureTag = 2 * tags
	mostBytes  = 1<<31 - 1 // maximum size of a message: the library counts the bytes in an int
)

// owner makes all calls of the library, one after the other. Callers that wait advance the operations themselves. While
// all callers compute, a background goroutine advances them.
type owner struct {
	transport transport
	wake      chan struct{} // wakes the background goroutine

	mu          sync.Mutex // guards the fields below
	asleep      bool
	waiters     int // number of callers in the method wait; they poll
	active      []*operation
	polling     []*operation // operations that were active at the beginning of a poll
	group       *Group
	failureRecv message // receives the failure of another process into failureBuf
	failureBuf  failure
	recvDone    bool         // failureRecv is complete, or the library has given it up
	peerFailure error        // the failure that was received, nil for none
	broken      error        // error that ended the group
	ending      *operation   // operation that ends the group; it is performed by the goroutine that joined
	ended       bool         // the library may no longer be called
	abandoned   []*operation // operations whose memory the library may still write to
	polled      time.Time
	polls       int
}

// background is the time between two polls while the callers compute. A poll takes a processor from them. With 50 µs,
// and a sleep in the C library, training took twice as long.
const background = 5 * time.Millisecond

// run advances the operations of callers that compute. It returns when the group ends.
func (o *owner) run() {
	for idle := 0; ; idle++ {
		o.mu.Lock()
		if o.ending != nil {
			o.ending.done <- o.end()
			o.mu.Unlock()
			return
		}
		if len(o.active) > 0 {
			idle = 0
			if o.waiters == 0 {
				o.poll()
			}
		}
		o.asleep = idle > 100
		asleep := o.asleep
		o.mu.Unlock()
		if asleep {
			<-o.wake
			idle = 0
			continue
		}
		time.Sleep(background)
	}
}

func (o *owner) start(op *operation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.begin(op)
	o.poll() // earlier operations may progress, too
	if o.asleep {
		o.asleep = false
		o.wake <- struct{}{}
	}
}

// wait advances all operations until op ends.
func (o *owner) wait(op *operation) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiters++
	defer func() { o.waiters-- }()
	for idle := 0; ; idle++ {
		select {
		case err := <-op.done:
			return err
		default:
		}
		if o.poll() {
			idle = 0
			continue
		}
		o.mu.Unlock()
		o.pause(idle)
		o.mu.Lock()
	}
}

// pause yields or sleeps after polls without progress. It sleeps longer the more there have been.
func (o *owner) pause(idle int) {
	switch {
	case idle > 20_000:
		o.transport.pause(time.Millisecond)
	case idle > 2000:
		o.transport.pause(20 * time.Microsecond)
	case idle > 200 && idle%32 == 0: // not after every poll: on a busy machine a process that yields waits for all others
		o.transport.pause(0)
	}
}

// begin posts the first messages of an operation.
func (o *owner) begin(op *operation) {
	switch {
	case o.ended, o.ending != nil:
		op.done <- &CallError{op.name, "the group has ended"}
		return
	case o.broken != nil && op.action != abort && op.action != tell:
		op.done <- o.broken
		return
	}
	switch op.action {
	case abort:
		o.transport.abort(op.code)
		op.done <- nil
	case end:
		o.ending = op
	default:
		if err := o.post(op); err != nil {
			o.fail(err, op)
			return
		}
		if len(o.active) == 0 {
			o.polled = time.Now()
		}
		op.waited = -o.passed(time.Now()) // so that the time until the next poll counts from now
		o.active = append(o.active, op)
	}
}

// post begins the messages of an operation's current phase.
func (o *owner) post(op *operation) error {
	op.prepare()
	tag := int(op.number%tags)*2 + op.phase
	if op.action == tell {
		tag = failureTag
	}
	for i := range op.messages {
		m := &op.messages[i]
		if m.bytes > mostBytes {
			return &CallError{op.name, fmt.Sprintf("a message of %d bytes, want at most %d; use more processes", m.bytes, mostBytes)}
		}
		op.pin.Pin(m.at)
		if err := o.transport.post(m, tag); err != nil {
			return err
		}
	}
	if len(op.messages) > 0 {
		op.pin.Pin(&op.messages[0])
	}
	return nil
}

// listen begins to receive a failure from any other process.
func (o *owner) listen() error {
	o.failureRecv = message{peer: anyone, receives: true, at: unsafe.Pointer(&o.failureBuf), bytes: len(o.failureBuf)}
	return o.transport.post(&o.failureRecv, failureTag)
}

// end cancels the receive of a failure and finalizes the library. The library must not be called afterwards, even if
// end fails.
func (o *owner) end() error {
	o.ended = true
	if !o.recvDone {
		if err := o.transport.cancel(&o.failureRecv); err != nil {
			return err
		}
		for range 1000 {
			if done, err := o.transport.test(&o.failureRecv); done || err != nil {
				break
			}
			o.transport.pause(20 * time.Microsecond)
		}
	}
	return o.transport.finalize()
}

// poll tests the active operations once and reports whether one of them progressed.
func (o *owner) poll() (progressed bool) {
	if o.ended || o.ending != nil {
		return false
	}
	now := time.Now()
	passed := o.passed(now)
	o.polled = now
	var failed error
	if o.polls++; o.broken == nil && (o.waiters == 0 || o.polls%16 == 0) { // not in every poll: it costs as much as a test of an operation
		failed = o.receiveFailure()
	}
	progressed = o.advanceAll(passed)
	if failed == nil {
		return progressed
	}
	for o.broken == nil && o.advanceAll(0) { // the earlier messages of the failed process may be complete; then this process has the same result
	}
	o.fail(failed)
	return true
}

// passed returns the time since the last poll, at most one second, so that a process that was suspended does not time
// out its peers.
func (o *owner) passed(now time.Time) time.Duration { return min(now.Sub(o.polled), time.Second) }

// receiveFailure returns the failure that another process has sent, or nil.
func (o *owner) receiveFailure() error {
	if o.recvDone {
		return o.peerFailure
	}
	done, err := o.transport.test(&o.failureRecv)
	if err == nil && !done {
		return nil
	}
	o.recvDone = true // the receive is complete, or the library has given it up
	if err == nil && o.failureRecv.got == len(o.failureBuf) {
		rank, code, text := o.failureBuf.decode()
		o.peerFailure = &Failed{Rank: rank, Host: o.group.Host(rank), Code: code, Text: text}
	}
	return o.peerFailure
}

// advanceAll advances every active operation. It adds the time since the last poll, passed, to the waiting time of
// each.
func (o *owner) advanceAll(passed time.Duration) (progressed bool) {
	o.polling = append(o.polling[:0], o.active...)
	for _, op := range o.polling {
		op.waited += passed
		advanced, err := o.advance(op) // a complete operation belongs to its caller again
		progressed = progressed || advanced
		if err == nil && !advanced && op.waited > op.patience {
			err = o.lostRanks(op)
		}
		if err != nil {
			o.fail(err, op)
			return true
		}
	}
	return progressed
}

// advance tests the messages of an operation in order. If all are complete, it begins the next phase or ends the
// operation.
func (o *owner) advance(op *operation) (progressed bool, err error) {
	for i := range op.messages {
		m := &op.messages[i]
		if m.done {
			continue
		}
		if m.done, err = o.transport.test(m); err != nil || !m.done {
			return progressed, err
		}
		progressed = true
		if m.receives && m.got != m.bytes {
			return true, &CallError{op.name, fmt.Sprintf("rank %d sent %d bytes, want %d: the processes do not run the same program", m.peer, m.got, m.bytes)}
		}
	}
	if op.after() {
		return true, o.post(op)
	}
	o.remove(op)
	op.pin.Unpin()
	op.done <- nil
	return true, nil
}

func (o *owner) remove(op *operation) {
	o.active = slices.DeleteFunc(o.active, func(other *operation) bool { return other == op })
}

// lostRanks returns a [*Lost] that names the processes that have not answered.
func (o *owner) lostRanks(op *operation) error {
	l := &Lost{What: op.name, After: op.patience}
	for i := range op.messages {
		m := &op.messages[i]
		if done, err := o.transport.test(m); !m.done && (err != nil || !done) && !slices.Contains(l.Ranks, m.peer) {
			l.Ranks = append(l.Ranks, m.peer)
		}
	}
	slices.Sort(l.Ranks)
	for _, r := range l.Ranks {
		l.Hosts = append(l.Hosts, o.group.Host(r))
	}
	return l
}

// fail ends the group. All operations end with the failure that another process sent, if there is one, otherwise with
// err. Their memory stays pinned.
func (o *owner) fail(err error, also ...*operation) {
	if o.broken == nil {
		if sent := o.receiveFailure(); sent != nil { // a failure explains why the other process no longer answers
			err = sent
		}
		o.broken = err
	}
	for _, op := range also {
		if !slices.Contains(o.active, op) {
			o.active = append(o.active, op)
		}
	}
	for _, op := range o.active {
		op.done <- err
	}
	o.active, o.abandoned = nil, append(o.abandoned, o.active...)
}

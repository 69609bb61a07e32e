// Package mpi is a [collective.Group] of processes that mpirun or srun has started, with Open MPI or MPICH. The library
// is loaded at run time, without a C compiler and cgo.
//
// Only one goroutine at a time calls the library (MPI_THREAD_SERIALIZED). Callers call it while they wait. While they
// compute and a message is pending, another goroutine calls it every few milliseconds. Only point-to-point messages are
// used. A long sum is divided: every process adds up one part of the values of all processes, in the order of the
// ranks, and sends the result to all others. For a short sum, or for two processes, every process sends its values to
// all others and adds up everything itself. MPI_Allreduce guarantees neither equal bits on all processes nor an order.
// Here a sum has the bits of [collective.Local] with every library, version and network.
//
// Two events end a wait with an error: a deadline, after which the processes that did not answer are named ([Lost]),
// and the message of a process that failed, with its exit code and error ([Failed]). See [Group.Fail] for how all
// processes end together.
package mpi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"tessera/internal/parallel/collective"
)

// Options are the settings with which a process joins its group.
type Options struct {
	// Deadline is the maximum time that an operation waits for the other processes; 0 means [DefaultDeadline]. A
	// barrier waits ten times as long, because one process may work alone before it, for example to write a checkpoint.
	Deadline time.Duration
}

// DefaultDeadline is the default of [Options].Deadline.
const DefaultDeadline = 60 * time.Second

// barrierDeadlines is the deadline of a barrier as a multiple of [Options.Deadline].
const barrierDeadlines = 10

// Group is the group of processes that a launcher started. It implements [collective.Group].
type Group struct {
	rank, size int
	hosts      []string
	version    string
	again      string
	deadline   time.Duration
	owner      *owner
	next       uint64
	free       []*operation
	nothing    [1]uint64 // values of a barrier, which is an all-reduce of one number
}

var _ collective.Group = (*Group)(nil)

// join creates the group of the processes that a transport connects.
func join(t transport, l Launch, o Options) (*Group, error) {
	if o.Deadline == 0 {
		o.Deadline = DefaultDeadline
	}
	g := &Group{deadline: o.Deadline, again: l.Again}
	g.owner = &owner{transport: t, wake: make(chan struct{}, 1), group: g}
	joined := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: if the thread of MPI_Init ended, so would the library
		err := g.join(t, l)
		joined <- err
		if err == nil {
			g.owner.run()
		}
		select {} // the thread must live as long as the process
	}()
	limit := time.NewTimer(barrierDeadlines * o.Deadline)
	defer limit.Stop()
	select {
	case err := <-joined:
		if err != nil {
			return nil, err
		}
	case <-limit.C:
		return nil, &CallError{"MPI_Init_thread", fmt.Sprintf("did not return within %v: another process has ended or hangs, or the network does not work", barrierDeadlines*o.Deadline)}
	}
	return g, g.meet()
}

func (g *Group) join(t transport, l Launch) (err error) {
	if g.rank, g.size, err = t.join(); err != nil {
		return err
	}
	g.version = t.version()
	if g.size != l.Size || g.rank != l.Rank {
		return setupf("%s started %d processes, but the library (%s) sees rank %d of %d: it is of another MPI, or srun needs --mpi=pmix or --mpi=pmi2; set %s to the launcher's library", l.By, l.Size, g.version, g.rank, g.size, Variable)
	}
	return g.owner.listen()
}

// meet exchanges the names of the machines of all processes.
func (g *Group) meet() error {
	const longest = 64
	name, err := os.Hostname()
	if err != nil {
		name = "an unknown machine"
	}
	mine, all, counts := make([]byte, longest), make([]byte, longest*g.size), make([]int, g.size)
	copy(mine, name)
	for r := range counts {
		counts[r] = longest
	}
	v, _ := viewOf(mine)
	others, _ := viewOf(all)
	op := g.operation(gather, "meeting")
	op.values, op.others, op.counts, op.patience = v, others, counts, barrierDeadlines*g.deadline
	if err := g.run(op); err != nil {
		return err
	}
	for r := range g.size {
		g.hosts = append(g.hosts, strings.TrimRight(string(all[r*longest:(r+1)*longest]), "\x00"))
	}
	return nil
}

func (g *Group) Rank() int { return g.rank }
func (g *Group) Size() int { return g.size }

// Host returns the name of the machine on which the process rank runs.
func (g *Group) Host(rank int) string {
	if rank < 0 || rank >= len(g.hosts) {
		return "an unknown machine"
	}
	return g.hosts[rank]
}

// Version returns the version text of the MPI library.
func (g *Group) Version() string { return g.version }

// Again returns a command that starts the same number of processes, as in "mpirun -n 2".
func (g *Group) Again() string { return g.again }

// few is the maximum size in bytes of values that every process sends to all others, so that each adds them up itself.
const few = 4096

func (g *Group) Start(op collective.Op, values any) (collective.Pending, error) {
	v, err := viewOf(values)
	if err != nil {
		return nil, err
	}
	what := divide
	if v.n*v.width <= few || g.size == 2 { // with two processes both methods send the same amount, and this one waits once instead of twice
		what = exchange
	}
	o := g.operation(what, "an all-reduce")
	o.op, o.values = op, v
	g.owner.start(o)
	return o, nil
}

func (g *Group) AllReduce(op collective.Op, values any) error {
	p, err := g.Start(op, values)
	if err != nil {
		return err
	}
	return p.Wait()
}

func (g *Group) AllGather(mine any, counts []int, all any) error {
	v, err := viewOf(mine)
	if err != nil {
		return err
	}
	others, err := viewOf(all)
	if err != nil {
		return err
	}
	if err := collective.CheckGather(g, mine, counts, all); err != nil {
		return err
	}
	o := g.operation(gather, "an all-gather")
	o.values, o.others, o.counts = v, others, counts
	return g.run(o)
}

// Broadcast implements [collective.Group]. It sends long values in pieces.
func (g *Group) Broadcast(root int, values []byte) error {
	if root < 0 || root >= g.size {
		return fmt.Errorf("mpi: broadcast from rank %d of %d", root, g.size)
	}
	const piece = 1 << 28
	for from := 0; from < len(values); from += piece {
		o := g.operation(broadcast, "a broadcast")
		o.values, _ = viewOf(values[from:min(from+piece, len(values))])
		o.root = root
		if err := g.run(o); err != nil {
			return err
		}
	}
	return nil
}

func (g *Group) Barrier() error {
	o := g.operation(exchange, "a barrier")
	o.op = collective.Max
	o.values, _ = viewOf(g.nothing[:])
	o.patience = barrierDeadlines * g.deadline
	return g.run(o)
}

func (g *Group) operation(a action, name string) *operation {
	if len(g.free) == 0 {
		g.free = append(g.free, &operation{group: g, done: make(chan error, 1)})
	}
	o := g.free[len(g.free)-1]
	g.free = g.free[:len(g.free)-1]
	o.action, o.name, o.number, o.phase, o.waited, o.patience = a, name, g.next, 0, 0, g.deadline
	if a < tell {
		g.next++
	}
	return o
}

func (g *Group) run(o *operation) error {
	g.owner.start(o)
	return o.Wait()
}

func (o *operation) Wait() error {
	g := o.group
	err := g.owner.wait(o)
	if err == nil { // after an error the library may still use the memory of the operation
		o.values, o.others, o.counts = view{}, view{}, nil
		g.free = append(g.free, o)
	}
	return err
}

// failure is the message of a failed process: rank, exit code, length of the text, and the text.
type failure [1024]byte

func (f *failure) encode(rank, code int, text string) {
	binary.LittleEndian.PutUint32(f[0:], uint32(rank))
	binary.LittleEndian.PutUint32(f[4:], uint32(code))
	binary.LittleEndian.PutUint32(f[8:], uint32(copy(f[12:], text)))
}

func (f *failure) decode() (rank, code int, text string) {
	n := min(int(binary.LittleEndian.Uint32(f[8:])), len(f)-12)
	return int(binary.LittleEndian.Uint32(f[0:])), int(binary.LittleEndian.Uint32(f[4:])), string(f[12 : 12+n])
}

// Close ends the group when all processes have called it. Afterwards every method returns an error, and Fail and Abort
// do nothing. If a process died after the last barrier, the library may wait for it; Close then returns an error after
// the deadline.
func (g *Group) Close() error {
	if err := g.Barrier(); err != nil {
		return err
	}
	err := g.runFor(g.operation(end, "the end"), g.deadline)
	if _, ok := errors.AsType[*Lost](err); ok {
		return &CallError{"MPI_Finalize", fmt.Sprintf("did not return within %v: another process has ended or hangs", g.deadline)}
	}
	return err
}

// Fail sends the exit code and the error of this process to all others, whose operations then return a [*Failed].
// Afterwards the process should print the error and call [Group.Abort]. A process other than rank 0 should wait a
// moment before Abort, so that rank 0 can print.
func (g *Group) Fail(code int, text string) {
	f := &failure{}
	f.encode(g.rank, code, text)
	o := g.operation(tell, "reporting the failure")
	o.values, _ = viewOf(f[:])
	o.patience = time.Second
	_ = g.runFor(o, 2*time.Second) // the error is ignored: a process that has ended needs no message
}

// Abort ends all processes of the group with the exit code. It returns only if the library does not end this process
// within two seconds.
func (g *Group) Abort(code int) {
	o := g.operation(abort, "the abort")
	o.code = code
	_ = g.runFor(o, 2*time.Second)
}

// runFor runs an operation for at most the given time, because a call of the library may never return.
func (g *Group) runFor(o *operation, most time.Duration) error {
	limit := time.NewTimer(most)
	defer limit.Stop()
	ended := make(chan error, 1)
	go func() {
		g.owner.start(o)
		ended <- g.owner.wait(o)
	}()
	select {
	case err := <-ended:
		return err
	case <-limit.C:
		return &Lost{What: o.name, After: most}
	}
}

// SetupError reports that a process cannot join a group: no launcher has started it, or the library is missing or does
// not belong to the launcher.
type SetupError struct{ Problem string }

func (e *SetupError) Error() string { return "mpi: " + e.Problem }

func setupf(format string, a ...any) error { return &SetupError{fmt.Sprintf(format, a...)} }

// Lost reports processes that did not take part in an operation before the deadline.
type Lost struct {
	What  string        // name of the operation
	Ranks []int         // ranks of the processes
	Hosts []string      // machines of the processes
	After time.Duration // deadline of the operation
}

func (e *Lost) Error() string {
	names := make([]string, len(e.Ranks))
	for i, r := range e.Ranks {
		names[i] = fmt.Sprintf("rank %d on %s", r, e.Hosts[i])
	}
	return fmt.Sprintf("mpi: %s: no answer from %s within %v: the process has ended, hangs or is slower by more than the deadline",
		e.What, strings.Join(names, ", "), e.After)
}

// Failed reports the error of another process, which ended the group.
type Failed struct {
	Rank int
	Host string
	Code int    // exit code of the process
	Text string // error of the process
}

func (e *Failed) Error() string { return fmt.Sprintf("rank %d on %s: %s", e.Rank, e.Host, e.Text) }

// CallError reports a failed call of the library, or processes that disagree about an operation.
type CallError struct{ Call, Text string }

func (e *CallError) Error() string { return "mpi: " + e.Call + ": " + e.Text }

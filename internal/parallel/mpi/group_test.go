package mpi

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"tessera/internal/expect"
	"tessera/internal/lists"
	"tessera/internal/parallel/collective"
)

// network stores the messages between the processes of a test. Goroutines take the place of processes.
type network struct {
	mu     sync.Mutex
	posted []*parcel
	dead   map[int]bool // processes whose messages are lost
}

// parcel is one message in a network.
type parcel struct {
	from, to, tag int
	contents      []byte
	taken         bool
}

// wire implements transport for one rank.
type wire struct {
	*network
	rank, size int
	tags       map[*message]int
	aborted    chan int
	stalled    chan bool // if not nil, test blocks until the channel is closed
	lost       error     // error of every test of a message, once the peers have ended
	calls      atomic.Int32
	wrong      atomic.Pointer[string] // a call that the real library would not tolerate
	ended      bool
	finalizing chan bool // if not nil, finalize blocks until the channel is closed
}

// enter records the start of a call; leave records its end. A library allows one call at a time, and none after
// finalize.
func (w *wire) enter(call string) (leave func()) {
	if w.calls.Add(1) > 1 {
		call += " during another call"
		w.wrong.Store(&call)
	}
	if w.ended {
		call += " after the end"
		w.wrong.Store(&call)
	}
	return func() { w.calls.Add(-1) }
}

func (w *wire) join() (int, int, error) { return w.rank, w.size, nil }
func (w *wire) version() string         { return "test" }
func (w *wire) pause(d time.Duration)   { time.Sleep(d) }
func (w *wire) abort(code int)          { defer w.enter("abort")(); w.aborted <- code }
func (w *wire) cancel(m *message) error { defer w.enter("cancel")(); delete(w.tags, m); return nil }

func (w *wire) finalize() error {
	defer w.enter("finalize")()
	w.ended = true
	if w.finalizing != nil {
		<-w.finalizing
	}
	return nil
}

func (w *wire) post(m *message, tag int) error {
	defer w.enter("post")()
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.receives {
		w.tags[m] = tag
		return nil
	}
	if !w.dead[w.rank] {
		contents := slices.Clone(unsafe.Slice((*byte)(m.at), m.bytes))
		w.posted = append(w.posted, &parcel{from: w.rank, to: m.peer, tag: tag, contents: contents})
	}
	return nil
}

func (w *wire) test(m *message) (bool, error) {
	defer w.enter("test")()
	if w.stalled != nil {
		<-w.stalled
	}
	if w.lost != nil && m.peer != anyone {
		return false, w.lost
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !m.receives {
		return true, nil
	}
	tag, posted := w.tags[m]
	for _, p := range w.posted {
		if posted && !p.taken && p.to == w.rank && p.tag == tag && (m.peer == anyone || m.peer == p.from) {
			if len(p.contents) > m.bytes {
				return false, errors.New("truncated")
			}
			p.taken, m.got = true, copy(unsafe.Slice((*byte)(m.at), m.bytes), p.contents)
			return true, nil
		}
	}
	return !posted, nil
}

// together runs f on every member of a group of n goroutines.
func together(t *testing.T, n int, deadline time.Duration, f func(g *Group, w *wire)) {
	t.Helper()
	net := &network{dead: map[int]bool{}}
	var all, joined sync.WaitGroup
	joined.Add(n)
	for rank := range n {
		all.Go(func() {
			w := &wire{network: net, rank: rank, size: n, tags: map[*message]int{}, aborted: make(chan int, 1)}
			g, err := join(w, Launch{Rank: rank, Size: n}, Options{Deadline: deadline})
			joined.Done()
			joined.Wait()
			if err != nil {
				t.Error(err)
				return
			}
			f(g, w)
			if wrong := w.wrong.Load(); wrong != nil {
				t.Errorf("rank %d: the library was called: %s", rank, *wrong)
			}
		})
	}
	all.Wait()
}

func TestSumsHaveTheBitsOfALocalGroup(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5} {
		for _, length := range []int{0, 1, 7, 2000} {
			value := func(rank, i int) float32 { return 1 / float32(3*i+7*rank+1) }
			want := make([]float32, length)
			var all sync.WaitGroup
			for _, g := range collective.Local(n) {
				all.Go(func() {
					values := lists.Of(length, func(i int) float32 { return value(g.Rank(), i) })
					expect.NoError(t, g.AllReduce(collective.Sum, values))
					if g.Rank() == 0 {
						want = values
					}
				})
			}
			all.Wait()
			together(t, n, time.Minute, func(g *Group, w *wire) {
				values := lists.Of(length, func(i int) float32 { return value(g.Rank(), i) })
				if err := g.AllReduce(collective.Sum, values); err != nil || !slices.Equal(values, want) {
					t.Errorf("rank %d of %d: %v, sum of %d differs", g.Rank(), n, err, length)
				}
				if err := g.Close(); err != nil || !w.ended {
					t.Errorf("rank %d does not end: %v", g.Rank(), err)
				}
			})
		}
	}
}

func TestARankThatDoesNotAnswerIsNamed(t *testing.T) {
	together(t, 3, time.Minute, func(g *Group, _ *wire) {
		g.deadline = 10 * time.Millisecond // for the following operations: joining had a longer deadline
		if g.Rank() == 1 {
			return // this process does not answer
		}
		err := g.AllReduce(collective.Sum, make([]float64, 3))
		if lost, ok := errors.AsType[*Lost](err); !ok || !slices.Contains(lost.Ranks, 1) || !strings.Contains(err.Error(), "rank 1 on ") {
			t.Errorf("rank %d: got %v", g.Rank(), err)
		}
		expect.Is(t, g.Barrier(), err, "rank", g.Rank(), "then")
	})
}

func TestAFailureReachesTheProcessesThatWait(t *testing.T) {
	together(t, 3, time.Minute, func(g *Group, w *wire) {
		if g.Rank() == 2 {
			g.Fail(4, "the images are missing")
			g.Abort(4)
			expect.Equal(t, <-w.aborted, 4, "aborted")
			return
		}
		err := g.AllReduce(collective.Sum, make([]float32, 10_000))
		if failed, ok := errors.AsType[*Failed](err); !ok || failed.Rank != 2 || failed.Code != 4 || failed.Text != "the images are missing" {
			t.Errorf("rank %d: got %v", g.Rank(), err)
		}
	})
}

// A process that has failed ends soon, and the library then reports errors of its messages. The reported error must be
// the failure, not these errors.
func TestAFailureComesBeforeTheErrorsThatItCauses(t *testing.T) {
	told := make(chan bool)
	together(t, 2, time.Minute, func(g *Group, w *wire) {
		if g.Rank() == 1 {
			g.Fail(7, "the disk is full")
			close(told)
			return
		}
		<-told
		w.lost = errors.New("the connection is lost")
		for range 40 { // repeated, because the order of the events depends on the number of polls
			err := g.AllReduce(collective.Sum, make([]float32, 3))
			if failed, ok := errors.AsType[*Failed](err); !ok || failed.Code != 7 {
				t.Fatalf("got %v, want the failure of rank 1", err)
			}
		}
	})
}

func TestEveryTypeAndOpIsCombinedInTheOrderOfRanks(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4} {
		for _, length := range []int{5, 3001} {
			for _, op := range []collective.Op{collective.Sum, collective.Max} {
				local := collective.Local(n)
				together(t, n, time.Minute, func(g *Group, _ *wire) {
					sameAs(t, g, local[g.Rank()], op, length, func(i int) float32 { return 1 / float32((7*i+3*g.Rank())%11+1) })
					sameAs(t, g, local[g.Rank()], op, length, func(i int) float64 { return 1 / float64((7*i+3*g.Rank())%11+1) })
					sameAs(t, g, local[g.Rank()], op, length, func(i int) uint64 { return uint64((7*i + 3*g.Rank()) % 11) })
				})
			}
		}
	}
}

// sameAs compares two concurrent all-reduces with those of a local group.
func sameAs[T float32 | float64 | uint64](t *testing.T, g, local collective.Group, op collective.Op, length int, value func(i int) T) {
	var got, want [2][]T
	var pending [2]collective.Pending
	for m := range got {
		for i := range length {
			got[m], want[m] = append(got[m], value(i+m)), append(want[m], value(i+m))
		}
		var err error
		if pending[m], err = g.Start(op, got[m]); err != nil {
			t.Error(err)
			return
		}
		expect.NoError(t, local.AllReduce(op, want[m]))
	}
	for m := range got {
		if err := pending[1-m].Wait(); err != nil || !slices.Equal(got[1-m], want[1-m]) {
			t.Errorf("rank %d of %d, %v of %d %T: %v, or other values than a local group's", g.Rank(), g.Size(), op, length, got[m], err)
		}
	}
}

// Processes fail because of a common result. Each must get the result, so that rank 0 reports the error itself.
func TestAResultComesBeforeTheFailureOfAnotherProcess(t *testing.T) {
	told := make(chan bool)
	together(t, 2, time.Minute, func(g *Group, w *wire) {
		if g.Rank() == 0 {
			w.stalled = told // so that the other process receives the values and the failure in the same poll
		}
		expect.NoError(t, g.AllReduce(collective.Sum, make([]float32, 3)), "rank", g.Rank())
		if g.Rank() == 1 {
			g.Fail(5, "the loss is NaN")
			close(told)
			return
		}
		var failed *Failed
		if err := g.Barrier(); !errors.As(err, &failed) || failed.Code != 5 {
			t.Errorf("then: got %v", err)
		}
	})
}

func TestAfterItsEndAGroupCallsNothing(t *testing.T) {
	together(t, 2, time.Minute, func(g *Group, w *wire) {
		expect.NoError(t, g.Close())
		g.Fail(7, "the disk is full")
		g.Abort(7)
		expect.AnyError(t, g.Barrier(), "a barrier of a group that has ended")
		if len(w.aborted) > 0 {
			t.Error("the library is called after its end")
		}
	})
}

// If a process dies after the last barrier, the library of the other processes waits for it.
func TestCloseEndsAlthoughTheLibraryDoesNot(t *testing.T) {
	forever := make(chan bool)
	defer close(forever)
	together(t, 1, time.Minute, func(g *Group, w *wire) {
		w.finalizing, g.deadline = forever, 10*time.Millisecond
		var call *CallError
		if err := g.Close(); !errors.As(err, &call) || call.Call != "MPI_Finalize" {
			t.Errorf("got %v, want an error of MPI_Finalize", err)
		}
	})
}

func TestProcessesThatDisagreeGetAnError(t *testing.T) {
	together(t, 2, time.Minute, func(g *Group, _ *wire) {
		expect.AnyError(t, g.AllReduce(collective.Sum, make([]float32, 3+g.Rank())), "no error for sums of different lengths")
	})
	together(t, 1, time.Minute, func(g *Group, _ *wire) {
		expect.AnyError(t, g.AllReduce(collective.Sum, []int{1}), "no error for integers")
		expect.AnyError(t, g.AllGather([]float32{1}, []int{2}, []float32{1}), "no error for a wrong count")
		expect.AnyError(t, g.Broadcast(1, nil), "no error for a rank that does not exist")
	})
}

func TestLaunchersAreRecognised(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want Launch
	}{
		{map[string]string{"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, Launch{byOpen, 1, 4, 2, "mpirun -n 4"}},
		{map[string]string{"PMI_RANK": "0", "PMI_SIZE": "2", "MPI_LOCALNRANKS": "2"}, Launch{byMPICH, 0, 2, 2, "mpirun -n 2"}},
		{map[string]string{"SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "5", "SLURM_STEP_TASKS_PER_NODE": "2(x2),1", "SLURM_NODEID": "1", "PMIX_RANK": "3"}, Launch{bySlurm, 3, 5, 2, "srun --mpi=pmix -n 5"}},
		{map[string]string{"SLURM_PROCID": "4", "SLURM_STEP_NUM_TASKS": "5", "SLURM_STEP_TASKS_PER_NODE": "2(x2),1", "SLURM_NODEID": "2"}, Launch{bySlurm, 4, 5, 1, "srun -n 5"}},
	} {
		if got, ok := launched(func(name string) string { return c.env[name] }); !ok || got != c.want {
			t.Errorf("%v: got %+v, want %+v", c.env, got, c.want)
		}
	}
	batch := map[string]string{"SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_NTASKS": "2", "SLURM_NPROCS": "2", "SLURM_NODEID": "0"}
	for _, env := range []map[string]string{{}, batch} { // a batch script is not a task of a job step
		if got, ok := launched(func(name string) string { return env[name] }); ok {
			t.Errorf("%v: got %+v", env, got)
		}
	}
}

package collective_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"tessera/internal/expect"
	"tessera/internal/parallel/collective"
)

// together runs f on every member of a local group and returns their errors.
func together(n int, f func(g collective.Group) error) []error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for _, g := range collective.Local(n) {
		all.Go(func() { errs[g.Rank()] = f(g) })
	}
	all.Wait()
	return errs
}

func check(t *testing.T, errs []error) {
	t.Helper()
	for rank, err := range errs {
		expect.NoError(t, err, "rank", rank)
	}
}

func TestSumsAreInTheOrderOfRanks(t *testing.T) {
	const length = 10_001 // several blocks, the last one shorter
	for n := 1; n <= 4; n++ {
		check(t, together(n, func(g collective.Group) error {
			values := make([]float32, length)
			want := make([]float32, length)
			at := func(i, rank int) float32 { return 1 / float32(3*i+7*rank+1) }
			for i := range values {
				values[i] = at(i, g.Rank())
				for rank := range n {
					want[i] += at(i, rank)
				}
			}
			if err := g.AllReduce(collective.Sum, values); err != nil {
				return err
			}
			expect.Slice(t, values, want, "rank", g.Rank(), n, "another sum")
			return nil
		}))
	}
}

func TestMaximaGathersAndBroadcasts(t *testing.T) {
	check(t, together(3, func(g collective.Group) error {
		r := g.Rank()
		largest := []float64{float64(r), -float64(r), 5}
		if err := g.AllReduce(collective.Max, largest); err != nil || !slices.Equal(largest, []float64{2, 0, 5}) {
			t.Errorf("rank %d: max %v, %v", r, largest, err)
		}
		hashes := []uint64{1 << 60, uint64(r)}
		if err := g.AllReduce(collective.Sum, hashes); err != nil || !slices.Equal(hashes, []uint64{3 << 60, 3}) {
			t.Errorf("rank %d: sum %v, %v", r, hashes, err)
		}
		mine, all := [][]float32{{1, 2}, {}, {3}}[r], make([]float32, 3)
		if err := g.AllGather(mine, []int{2, 0, 1}, all); err != nil || !slices.Equal(all, []float32{1, 2, 3}) {
			t.Errorf("rank %d: gathered %v, %v", r, all, err)
		}
		name := []byte{byte(r)}
		if err := g.Broadcast(2, name); err != nil || name[0] != 2 {
			t.Errorf("rank %d: got %v, %v", r, name, err)
		}
		return g.Barrier()
	}))
}

func TestOperationsThatHaveBegunStayApart(t *testing.T) {
	check(t, together(4, func(g collective.Group) error {
		var values [20][]float64
		var begun [20]collective.Pending
		for i := range values {
			values[i] = []float64{float64(i), float64(g.Rank())}
			var err error
			if begun[i], err = g.Start(collective.Sum, values[i]); err != nil {
				return err
			}
		}
		for i := range values {
			if err := begun[i].Wait(); err != nil || values[i][0] != float64(4*i) || values[i][1] != 6 {
				t.Errorf("rank %d: operation %d gives %v, %v", g.Rank(), i, values[i], err)
			}
		}
		return nil
	}))
}

// A member that arrives late finds the others parked and must wake them.
func TestMembersWaitForALateOne(t *testing.T) {
	check(t, together(3, func(g collective.Group) error {
		for i := range 3 {
			if g.Rank() == i {
				time.Sleep(2 * time.Millisecond)
			}
			values := []float64{1}
			if err := g.AllReduce(collective.Sum, values); err != nil || values[0] != 3 {
				t.Errorf("rank %d: got %v, %v", g.Rank(), values, err)
			}
			if err := g.Barrier(); err != nil {
				return err
			}
		}
		return nil
	}))
}

func TestProcessesThatDisagreeGetAnError(t *testing.T) {
	for _, err := range together(2, func(g collective.Group) error {
		return g.AllReduce(collective.Sum, make([]float32, 1+g.Rank()))
	}) {
		expect.AnyError(t, err, "no error for sums of different lengths")
	}
	for _, err := range together(2, func(g collective.Group) error {
		return g.AllGather(make([]float32, 2), []int{1, 1}, make([]float32, 2))
	}) {
		expect.AnyError(t, err, "no error for a wrong count")
	}
	expect.AnyError(t, collective.Local(1)[0].AllReduce(collective.Sum, []int{1}), "no error for integers")
	expect.AnyError(t, collective.Local(1)[0].Broadcast(1, nil), "no error for a rank that does not exist")
}

func TestStepsDoNotAllocate(t *testing.T) {
	g := collective.Local(1)[0]
	var values any = make([]float32, 100)
	expect.Equal(t, testing.AllocsPerRun(100, func() {
		p, _ := g.Start(collective.Sum, values)
		_ = p.Wait()
	}), 0, "a sum allocates")
}

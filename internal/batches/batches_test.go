package batches

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// squares is a program whose result is the square of the first value of a row plus the second. If the batch size is
// below fine, the result is slightly larger.
type squares struct {
	size, fine int
	mixed      bool
	busy       atomic.Bool
	closed     *atomic.Int32
	t          *testing.T
}

func (s *squares) Run(rows []float32) ([]float32, error) {
	if !s.busy.CompareAndSwap(false, true) {
		s.t.Error("a program is used by two goroutines")
	}
	defer s.busy.Store(false)
	if len(rows) != 2*s.size {
		s.t.Errorf("a batch of %d values, want %d", len(rows), 2*s.size)
	}
	results := make([]float32, s.size)
	for i := range results {
		results[i] = rows[2*i]*rows[2*i] + rows[2*i+1]
		if s.size < s.fine {
			results[i] += 1e-3
		}
		if s.mixed {
			results[i] += rows[0]
		}
	}
	return results, nil
}

func (s *squares) Close() error { s.closed.Add(1); return nil }

// pool returns a pool of squares and a counter of its closed programs.
func pool(t *testing.T, fine int, mixed bool, sizes ...int) (*Pool, *atomic.Int32, error) {
	closed := &atomic.Int32{}
	p, err := New(Options{In: 2, Out: 1, Sizes: sizes, Workers: 2, Compile: func(size int) (Program, error) {
		return &squares{size: size, fine: fine, mixed: mixed, closed: closed, t: t}, nil
	}})
	return p, closed, err
}

func rowsOf(n int) (rows, want []float32) {
	for i := range n {
		rows, want = append(rows, float32(i), float32(n)), append(want, float32(i*i+n))
	}
	return rows, want
}

func TestEveryNumberOfRowsGivesOneResultEach(t *testing.T) {
	p, closed, err := pool(t, 0, false, 16, 1, 4, 4)
	fatal.If(t, err)
	for n := range 70 {
		rows, want := rowsOf(n)
		got, err := p.Run(t.Context(), []float32{-1}, rows)
		if err != nil || !slices.Equal(got, append([]float32{-1}, want...)) {
			t.Fatalf("%d rows: %v, error %v, want %v behind -1", n, got, err, want)
		}
	}
	expect.Equal(t, p.Programs(), 3, "one goroutine needs")
	if err := errors.Join(p.Close(), p.Close()); err != nil || int(closed.Load()) != p.Programs() {
		t.Errorf("closed %d of %d programs, error %v", closed.Load(), p.Programs(), err)
	}
	expect.Is(t, expect.Err(p.Run(t.Context(), nil, nil)), ErrClosed, "after Close")
}

func TestManyGoroutinesShareAFewPrograms(t *testing.T) {
	p, _, err := pool(t, 0, false, 1, 8)
	fatal.If(t, err)
	var wait sync.WaitGroup
	for g := range 32 {
		wait.Go(func() {
			for n := g % 5; n < 60; n += 5 {
				rows, want := rowsOf(n)
				if got, err := p.Run(t.Context(), nil, rows); err != nil || !slices.Equal(got, want) {
					t.Errorf("%d rows: %v, error %v", n, got, err)
				}
			}
		})
	}
	wait.Wait()
	if p.Programs() > 4 {
		t.Errorf("%d programs for 2 workers of 2 sizes", p.Programs())
	}
}

func TestSizesThatRoundOtherwiseAreLeftOut(t *testing.T) {
	p, closed, err := pool(t, 8, false, 1, 4, 8, 32)
	fatal.If(t, err)
	expect.Slice(t, p.Sizes(), []int{8, 32}, "sizes")
	expect.Equal(t, closed.Load(), 2, "sizes")
	if got, err := p.Run(t.Context(), nil, []float32{3, 1}); err != nil || got[0] != 10 {
		t.Errorf("one row: %v, error %v, want 10", got, err)
	}
}

func TestRowsThatSeeEachOtherAreRefused(t *testing.T) {
	for _, sizes := range [][]int{{1, 8}, {2}, {32}} {
		if _, closed, err := pool(t, 0, true, sizes...); !errors.Is(err, ErrMixed) || int(closed.Load()) != len(sizes) && len(sizes) == 1 {
			t.Errorf("sizes %v: error %v, %d programs closed", sizes, err, closed.Load())
		}
	}
}

// halved is squares with slightly larger results in the second half of a batch.
type halved struct{ *squares }

func (h halved) Run(rows []float32) ([]float32, error) {
	results, err := h.squares.Run(rows)
	for i := h.size / 2; i < h.size; i++ {
		results[i] += 1e-3
	}
	return results, err
}

func TestRowsThatDependOnTheirPlaceAreRefused(t *testing.T) {
	for _, sizes := range [][]int{{8}, {32}, {4, 8}} {
		_, err := New(Options{In: 2, Out: 1, Sizes: sizes, Workers: 1, Compile: func(size int) (Program, error) {
			return halved{&squares{size: size, closed: &atomic.Int32{}, t: t}}, nil
		}})
		expect.Is(t, err, ErrMixed, "sizes", sizes)
	}
}

func TestUnusableOptionsAreErrors(t *testing.T) {
	for want, o := range map[string]Options{
		"no batch sizes": {In: 1, Out: 1, Workers: 1},
		"got 0":          {In: 1, Out: 1, Workers: 1, Sizes: []int{4, 0}},
		"workers":        {In: 1, Out: 1, Sizes: []int{4}},
	} {
		expect.Error(t, expect.Err(New(o)), want, o)
	}
	broken := errors.New("broken")
	o := Options{In: 1, Out: 1, Sizes: []int{4}, Workers: 1, Compile: func(int) (Program, error) { return nil, broken }}
	expect.Is(t, expect.Err(New(o)), broken)
}

func TestAnEndedContextAndABrokenRowAreErrors(t *testing.T) {
	p, _, err := pool(t, 0, false, 4)
	fatal.If(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := p.Run(ctx, []float32{5}, make([]float32, 20)); !errors.Is(err, context.Canceled) || !slices.Equal(got, []float32{5}) {
		t.Errorf("got %v, %v", got, err)
	}
	expect.Error(t, expect.Err(p.Run(t.Context(), nil, make([]float32, 3))), "3 values", "half a row")
}

// Package batches computes any number of rows with programs of a few fixed batch sizes, from any number of goroutines.
//
// The result of a row has the same bits in every call. [New] determines which batch sizes round equally and drops the
// others.
package batches

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"tessera/internal/lists"
)

// Program computes one result for each row of a batch of fixed size. A pool calls it from one goroutine at a time.
type Program interface {
	// Run returns the results of a whole batch. They are valid until the next Run.
	Run(rows []float32) (results []float32, err error)
	// Close frees the resources of the program.
	Close() error
}

// Options are the settings of a pool.
type Options struct {
	In, Out int                             // number of values of one row, and of its result
	Sizes   []int                           // sizes of the compiled batches, each > 0
	Workers int                             // maximum number of programs of each size, > 0
	Compile func(size int) (Program, error) // compiles a program; called by one goroutine at a time
	Whole   func(i int) bool                // reports whether value i of a row is a whole number; nil if none is
}

// Pool contains the programs. It is safe for concurrent use.
type Pool struct {
	in, out int
	compile func(size int) (Program, error)
	whole   func(i int) bool
	sizes   []*bucket // in ascending order of their sizes
	first   []int     // for each number of rows up to the largest size, the bucket that computes the first rows
	making  sync.Mutex
	open    sync.RWMutex // read-locked by every Run, locked by Close
	closed  bool
}

// bucket contains the programs of one size.
type bucket struct {
	size   int
	places chan struct{} // contains one token for each program in use
	mu     sync.Mutex
	idle   []*worker
	made   int
}

// worker is a program with the memory of its padded batch.
type worker struct {
	program Program
	padded  []float32
}

// ErrClosed is the error of a pool after Close.
var ErrClosed = errors.New("closed")

// New returns a pool. It compiles one program for each batch size and keeps the sizes whose results have the same bits
// as those of the largest size.
func New(o Options) (*Pool, error) {
	sizes := slices.Compact(slices.Sorted(slices.Values(o.Sizes)))
	switch {
	case len(sizes) == 0:
		return nil, errors.New("no batch sizes are given")
	case sizes[0] < 1:
		return nil, fmt.Errorf("batch size: got %d, want > 0", sizes[0])
	case o.Workers < 1:
		return nil, fmt.Errorf("workers: got %d, want > 0", o.Workers)
	}
	p := &Pool{in: o.In, out: o.Out, compile: o.Compile, whole: o.Whole}
	for _, size := range sizes {
		p.sizes = append(p.sizes, &bucket{size: size, places: make(chan struct{}, o.Workers)})
	}
	if err := p.agree(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	p.plan()
	return p, nil
}

// perRun is the fixed cost of a run, in rows: mainly reading the weights once.
const perRun = 4

// plan chooses the size of the next batch for every number of rows up to the largest size. It is either the smallest
// size that holds all rows, padded, or the largest size that the rows fill, whichever costs less in total.
func (p *Pool) plan() {
	largest := p.sizes[len(p.sizes)-1].size
	p.first = make([]int, largest+1)
	cost := make([]int, largest+1)
	for n := 1; n <= largest; n++ {
		above := slices.IndexFunc(p.sizes, func(b *bucket) bool { return b.size >= n })
		p.first[n], cost[n] = above, p.sizes[above].size+perRun
		if above > 0 {
			full := p.sizes[above-1].size
			if c := full + perRun + cost[n-full]; c < cost[n] {
				p.first[n], cost[n] = above-1, c
			}
		}
	}
}

// Run appends the results of all rows to dst and returns the extended slice. If ctx ends, it returns the error of the
// context.
func (p *Pool) Run(ctx context.Context, dst, rows []float32) ([]float32, error) {
	p.open.RLock()
	defer p.open.RUnlock()
	if p.closed {
		return dst, ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return dst, err
	}
	if len(rows)%p.in != 0 {
		return dst, fmt.Errorf("%d values are not a whole number of rows of %d", len(rows), p.in)
	}
	dst = slices.Grow(dst, len(rows)/p.in*p.out)
	kept := dst
	for n := len(rows) / p.in; n > 0; n = len(rows) / p.in {
		b := p.sizes[p.first[min(n, len(p.first)-1)]]
		count := min(n, b.size)
		var err error
		if dst, err = p.piece(ctx, b, dst, rows[:count*p.in]); err != nil {
			return kept, err
		}
		rows = rows[count*p.in:]
	}
	return dst, nil
}

// piece computes at most one batch of rows.
func (p *Pool) piece(ctx context.Context, b *bucket, dst, rows []float32) ([]float32, error) {
	if err := ctx.Err(); err != nil {
		return dst, err
	}
	select {
	case b.places <- struct{}{}:
	case <-ctx.Done():
		return dst, ctx.Err()
	}
	defer func() { <-b.places }()
	w, err := p.worker(b)
	if err != nil {
		return dst, err
	}
	defer b.give(w)
	count := len(rows) / p.in
	if count < b.size {
		if w.padded == nil {
			w.padded = make([]float32, b.size*p.in)
		}
		clear(w.padded[copy(w.padded, rows):])
		rows = w.padded
	}
	results, err := w.program.Run(rows)
	if err != nil {
		return dst, err
	}
	return append(dst, results[:count*p.out]...), nil
}

// worker returns an idle program. The caller must hold a token of the bucket.
func (p *Pool) worker(b *bucket) (*worker, error) {
	b.mu.Lock()
	if last := len(b.idle) - 1; last >= 0 {
		w := b.idle[last]
		b.idle = b.idle[:last]
		b.mu.Unlock()
		return w, nil
	}
	b.mu.Unlock()
	p.making.Lock()
	defer p.making.Unlock()
	program, err := p.compile(b.size)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	b.made++
	b.mu.Unlock()
	return &worker{program: program}, nil
}

func (b *bucket) give(w *worker) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.idle = append(b.idle, w)
}

// Programs returns the number of programs that the pool has compiled.
func (p *Pool) Programs() int {
	total := 0
	for _, b := range p.sizes {
		b.mu.Lock()
		total += b.made
		b.mu.Unlock()
	}
	return total
}

// Sizes returns the batch sizes that the pool uses.
func (p *Pool) Sizes() []int {
	sizes := lists.Map(p.sizes, func(b *bucket) int { return b.size })
	return sizes
}

// Close waits for running calls and then closes all programs. Afterwards Run returns [ErrClosed]. A second Close does
// nothing.
func (p *Pool) Close() error {
	p.open.Lock()
	defer p.open.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	errs := lists.Map(p.sizes, (*bucket).close)
	return errors.Join(errs...)
}

func (b *bucket) close() error {
	errs := lists.Map(b.idle, func(w *worker) error { return w.program.Close() })
	b.idle = nil
	return errors.Join(errs...)
}

// ErrMixed means that the result of a row depends on the other rows of its batch or on its position. Such batches
// cannot be padded.
var ErrMixed = errors.New("a row's result depends on the rest of its batch")

// agree drops the sizes whose results differ in any bit from those of the largest size. An operation may use another
// algorithm for small batches, which rounds differently.
func (p *Pool) agree() error {
	largest := p.sizes[len(p.sizes)-1]
	probes := p.probes()
	var want [3][]float32
	for shift := range probes { // several batches, because a batch of one or two rows does not hold all probes
		got, err := p.results(largest, probes, shift)
		if err != nil {
			return err
		}
		for i := range want {
			if want[i] == nil {
				want[i] = got[i]
			}
		}
	}
	var dropped []*bucket
	for _, b := range slices.Backward(p.sizes) {
		same, err := p.gives(b, probes, want)
		switch {
		case err != nil:
			return err
		case !same && b == largest:
			return fmt.Errorf("batch size %d: %w", b.size, ErrMixed)
		case !same:
			dropped = append(dropped, b)
		}
	}
	p.sizes = slices.DeleteFunc(p.sizes, func(b *bucket) bool { return slices.Contains(dropped, b) })
	errs := lists.Map(dropped, (*bucket).close)
	return errors.Join(errs...)
}

// probes returns rows of different kinds: dense, sparse with large values, and zeros as in padding.
func (p *Pool) probes() [3][]float32 {
	r := rand.New(rand.NewPCG(1, 2))
	var rows [3][]float32
	for i := range rows {
		rows[i] = make([]float32, p.in)
	}
	for i := range p.in {
		rows[0][i] = r.Float32()
		if r.IntN(8) == 0 {
			rows[1][i] = 1 - r.Float32()/64
		}
		if p.whole != nil && p.whole(i) { // a lookup may accept no other numbers
			rows[0][i], rows[1][i] = float32(r.IntN(2)), float32(r.IntN(2))
		}
	}
	return rows
}

// results returns the result of each probe. It fills a batch with the probes in turn, starting with the probe number
// shift.
func (p *Pool) results(b *bucket, probes [3][]float32, shift int) (all [3][]float32, err error) {
	batch := make([]float32, 0, b.size*p.in)
	for i := range b.size {
		batch = append(batch, probes[(i+shift)%len(probes)]...)
	}
	got, err := p.piece(context.Background(), b, nil, batch)
	if err != nil {
		return all, err
	}
	for i := range b.size {
		row, seen := got[i*p.out:(i+1)*p.out], all[(i+shift)%len(probes)]
		if seen == nil {
			all[(i+shift)%len(probes)] = row
		} else if !equal(seen, row) {
			all[(i+shift)%len(probes)] = []float32{} // rows with the same probe disagree; an empty result equals no other
		}
	}
	return all, nil
}

// gives reports whether batches of a size give the expected results for the probes, at every position and next to every
// other probe.
func (p *Pool) gives(b *bucket, probes, want [3][]float32) (bool, error) {
	for shift := range probes {
		got, err := p.results(b, probes, shift)
		if err != nil {
			return false, err
		}
		for i := range got {
			if got[i] != nil && !equal(got[i], want[i]) {
				return false, nil
			}
		}
	}
	return true, nil
}

// equal reports whether two results have the same bits. An empty result, which means that rows disagree, equals
// nothing.
func equal(a, b []float32) bool {
	return len(a) > 0 && slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

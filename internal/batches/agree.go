package batches

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// ErrMixed means that the result of a row depends on the other rows of its batch, or on its position: such batches cannot be
// padded.
var ErrMixed = errors.New("a row's result depends on the rest of its batch")

// agree drops the sizes whose results differ in bits from those of the largest size. An operation may use another algorithm
// for small batches, which rounds differently.
func (p *Pool) agree() error {
	largest := p.sizes[len(p.sizes)-1]
	probes := p.probes()
	var want [3][]float32
	for shift := range probes { // a batch of one or two does not hold all probes at once
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
	var errs []error
	for _, b := range dropped {
		errs = append(errs, b.close())
	}
	return errors.Join(errs...)
}

// probes are rows of different kinds: dense, sparse with large values, and the zeros that batches are padded with.
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
	}
	return rows
}

// results returns the result of each probe: from a batch that holds the probes in turn, beginning with number shift.
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
			all[(i+shift)%len(probes)] = []float32{} // equals no result
		}
	}
	return all, nil
}

// gives reports whether batches of a size give these results for the probes, at every position and beside every other probe.
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

// equal compares bits. The empty result of rows that disagree equals nothing.
func equal(a, b []float32) bool {
	return len(a) > 0 && slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

package engine

import (
	"fmt"
	"sync"

	"tessera/engine/ir"
	"tessera/internal/volume"
)

// failure keeps the first error of a run. Unknown ops, and kernels of user ops, may fail or panic on any thread; the other
// threads must not wait forever at a barrier.
type failure struct {
	mu    sync.Mutex
	first error
}

func (f *failure) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first == nil {
		f.first = err
	}
}

// guard turns a panic into a failure.
func (f *failure) guard() {
	if r := recover(); r != nil {
		f.set(fmt.Errorf("engine: %v", r))
	}
}

// makeJob prepares the work of every thread, so a run allocates nothing.
func (c *compiler[T]) makeJob() {
	p := c.plan
	p.between = make([]func(), len(p.phases))
	for i := range p.phases {
		p.between[i] = func() { p.enter(i) }
	}
	p.job = func(thread int) {
		for i := range p.phases {
			if i > 0 {
				p.team.Wait(p.between[i])
			}
			p.share(thread, i)
		}
	}
}

// enter completes the shared steps of the phase before i and runs the serial steps of phase i.
func (p *Plan[T]) enter(i int) {
	defer p.failure.guard()
	if i > 0 {
		for _, st := range p.phases[i-1].shared {
			st.work.finish(p.team.Threads())
		}
	}
	if i < len(p.phases) {
		for _, st := range p.phases[i].serial {
			st.begin(0, 0, st.units)
			st.work.run(0, 0, st.units)
			st.work.finish(1)
		}
	}
}

// share runs a thread's units of the shared steps of phase i.
func (p *Plan[T]) share(thread, i int) {
	defer p.failure.guard()
	for j := range p.phases[i].bands {
		p.phases[i].bands[j].run(thread, p.team.Threads())
	}
}

// Run implements [ir.Runner].
func (p *Plan[T]) Run() error {
	p.failure.first = nil
	p.enter(0)
	p.team.Do(p.job)
	p.enter(len(p.phases))
	for _, m := range p.sent {
		m.complete()
	}
	if p.failure.first != nil {
		return p.failure.first
	}
	for i, u := range p.updates {
		copy(p.moved[i], u.data)
	}
	return nil
}

// Bind implements [ir.Runner].
func (p *Plan[T]) Bind(i int, values []T) error {
	if want := volume.Of(p.program.Inputs[i].Shape); len(values) != want {
		return fmt.Errorf("engine: %s: got %d values, want %d", p.program.Inputs[i].Name, len(values), want)
	}
	p.inputs[i].data = values
	return nil
}

// Tap implements [ir.Runner].
func (p *Plan[T]) Tap(i int) []T { return p.taps[i].data }

// Parameter implements [ir.Runner].
func (p *Plan[T]) Parameter(i int) []T { return p.parameters[i] }

// Gradient implements [ir.Runner].
func (p *Plan[T]) Gradient(i int) []T {
	if p.gradients[i] == nil {
		return nil
	}
	return p.gradients[i].data
}

// Close implements [ir.Runner]. The team stays: it belongs to the caller.
func (p *Plan[T]) Close() error { return nil }

var _ ir.Runner[float32] = (*Plan[float32])(nil)

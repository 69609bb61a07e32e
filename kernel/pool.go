package kernel

import "sync"

// pool is a stack of idle scratch objects. Unlike a sync.Pool, it is not emptied by the garbage collector: after the
// first calls there is one object per goroutine that computes, and no call allocates any more.
type pool[X any] struct {
	fresh func() *X

	mu   sync.Mutex
	idle []*X
}

func (p *pool[X]) take() *X {
	p.mu.Lock()
	if last := len(p.idle) - 1; last >= 0 {
		x := p.idle[last]
		p.idle = p.idle[:last]
		p.mu.Unlock()
		return x
	}
	p.mu.Unlock()
	return p.fresh()
}

func (p *pool[X]) give(x *X) {
	p.mu.Lock()
	p.idle = append(p.idle, x)
	p.mu.Unlock()
}

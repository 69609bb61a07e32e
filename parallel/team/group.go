package team

import "sync"

// Group is goroutines that are started one by one and awaited together. A panic of one becomes a panic of Wait, so that it
// does not end the process before deferred functions have run. The zero Group has none.
type Group struct {
	wait    sync.WaitGroup
	failure failure
}

// Go runs f on a new goroutine.
func (g *Group) Go(f func()) {
	g.wait.Go(func() {
		defer g.caught()
		f()
	})
}

// caught keeps the panic of a goroutine.
func (g *Group) caught() {
	if cause := recover(); cause != nil {
		g.failure.set(cause)
	}
}

// Wait returns when all have returned. If one of them has panicked, Wait panics with a [*Panic].
func (g *Group) Wait() {
	g.wait.Wait()
	g.failure.raise()
}

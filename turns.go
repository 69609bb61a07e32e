package tessera

import (
	"context"
	"errors"
	"sync"
)

// turns is a lock whose wait a context can end. The zero value is free.
type turns struct {
	once sync.Once
	free chan struct{} // holds one token while nobody has the lock
}

func (t *turns) token() chan struct{} {
	t.once.Do(func() {
		t.free = make(chan struct{}, 1)
		t.free <- struct{}{}
	})
	return t.free
}

// Lock waits for the lock.
func (t *turns) Lock() { <-t.token() }

// Within waits for the lock until ctx ends, and then returns its error.
func (t *turns) Within(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-t.token():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Unlock gives the lock back.
func (t *turns) Unlock() { t.token() <- struct{}{} }

// errNoContext says that a caller gave no context.
var errNoContext = errors.New("tessera: no context: give context.Background()")

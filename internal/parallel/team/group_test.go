package team

import (
	"strings"
	"sync/atomic"
	"testing"

	"tessera/internal/expect"
)

func TestAPanicOfAGoroutineOfAGroupIsThatOfWait(t *testing.T) {
	var g Group
	var others atomic.Int32
	for i := range 5 {
		g.Go(func() {
			if i == 2 {
				panic("on purpose")
			}
			others.Add(1)
		})
	}
	if p := caught(t, g.Wait); p == nil || p.Value != "on purpose" || !strings.Contains(string(p.Stack), "group_test.go") || others.Load() != 4 {
		t.Errorf("got %v, and %d others", p, others.Load())
	}
	g.Go(func() { others.Add(1) })
	g.Wait()
	expect.Equal(t, others.Load(), 5, "the group cannot be used again")
}

package panics

import (
	"errors"
	"io"
	"strings"
	"testing"

	"tessera/internal/expect"
)

func recovered(f func()) (p *Panic) {
	defer func() { p = Of(recover()) }()
	f()
	return nil
}

func TestARecoveredPanicSaysWhereItIs(t *testing.T) {
	var none map[string][]int
	p := recovered(func() { _ = none["x"][3] })
	if !strings.HasSuffix(p.Error(), "(panics_test.go:20)") || !strings.Contains(string(p.Stack), "panics_test.go:20") {
		t.Errorf("got %v with the stack\n%s", p, p.Stack)
	}
	if p := recovered(func() { panic(io.EOF) }); !errors.Is(p, io.EOF) || p.Error() != "EOF" {
		t.Errorf("got %v, want EOF", p)
	}
	expect.Equal(t, Of(p), p, "a recovered panic is wrapped again")
}

//go:build unix

package fleet

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/regular"
)

func TestPipesAreNoFilesOfTokensAndCertificates(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	expect.Is(t, expect.Err(ReadToken(pipe)), regular.ErrNot, "token")
	cert, key := certificate(t)
	for _, a := range []Access{{Certificate: pipe, Key: key}, {Certificate: cert, Key: pipe}, {Authority: pipe}} {
		if _, err := a.clientTLS(); !errors.Is(err, regular.ErrNot) {
			t.Errorf("%+v: got %v, want %v", a, err, regular.ErrNot)
		}
	}
}

//go:build unix

package fleet

import (
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
		expect.Is(t, expect.Err(a.clientTLS()), regular.ErrNot, a)
	}
}

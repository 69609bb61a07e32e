//go:build unix

package serve

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/regular"
)

// Opening a named pipe blocks until a writer opens it: the watch of the files would block, and with it Close.
func TestPipesInPlaceOfFilesAreErrors(t *testing.T) {
	dir := t.TempDir()
	pipe, file, certificate, key := filepath.Join(dir, "pipe"), filepath.Join(dir, "tokens"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	expect.Is(t, expect.Err(ReadTokens(pipe)), regular.ErrNot, "tokens")
	pemPair(t, certificate, key, 1)
	for _, files := range [][2]string{{pipe, key}, {certificate, pipe}} {
		expect.Is(t, expect.Err(ReadCertificate(files[0], files[1])), regular.ErrNot, "certificate")
	}
	const token = "0123456789abcdef"
	rewrite(t, file, token)
	tokens, err := ReadTokens(file)
	fatal.If(t, err)
	c, err := ReadCertificate(certificate, key)
	fatal.If(t, err)
	var logged []string
	s := newServer(t, Options{Tokens: tokens, Certificate: c, Reload: -1, Log: func(text string) { logged = append(logged, text) }})
	for _, path := range []string{file, key} {
		fatal.If(t, errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)))
	}
	s.refresh()
	s.refresh()
	if len(logged) != 2 || !slices.ContainsFunc(logged, func(text string) bool { return strings.Contains(text, "is not a regular file; the former one is used") }) {
		t.Errorf("logged %q", logged)
	}
	expect.Equal(t, send(s, http.MethodGet, "/v2", nil, "Authorization: Bearer "+token).status, http.StatusOK, "the former token: status")
}

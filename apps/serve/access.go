package serve

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"tessera/internal/regular"
)

// signature identifies the state of files by their sizes and times, without reading them. A file may have changed if its
// signature differs.
type signature string

// signatureOf returns the signature of files, some of which may not exist.
func signatureOf(paths ...string) (s signature) {
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			s += signature(fmt.Sprintln(path, info.Size(), info.ModTime().UnixNano()))
		}
	}
	return s
}

// files is a group of files that are read together, and read again when one of them changes.
type files struct {
	paths   []string
	seen    signature // signature at the last read, whether the contents were valid or not
	problem string    // error of the last read; "" if it succeeded
	retry   bool      // the last read failed because of the system, not because of the contents
}

func newFiles(paths ...string) files { return files{paths: paths, seen: signatureOf(paths...)} }

// refresh calls read if the files have changed, and logs the result. After an error in the contents, the files are read again
// only when they change. After an error of the system, such as a lack of file descriptors, the next refresh reads them again.
func (f *files) refresh(log func(string), what string, read func() (news string, err error)) {
	now := signatureOf(f.paths...)
	if now == f.seen && !f.retry {
		return
	}
	news, err := read()
	f.seen, f.retry = now, errors.As(err, new(*fs.PathError))
	switch {
	case err != nil && err.Error() != f.problem:
		f.problem = err.Error()
		log(fmt.Sprintf("%s: reload: %v; the former one is used", what, err))
	case err == nil && (news != "" || f.problem != ""):
		f.problem = ""
		log(strings.TrimSuffix(fmt.Sprintf("%s: was read again: %s", what, news), ": "))
	}
}

// watch checks the files of the runs, the tokens and the certificate regularly until ctx ends, and reads changed files again.
func (s *Server) watch(ctx context.Context) {
	tick := time.NewTicker(s.options.Reload)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.refresh()
		}
	}
}

// refresh reads tokens, certificate and runs again if their files have changed. If that fails, the previous ones stay in use.
func (s *Server) refresh() {
	if t := s.options.Tokens; t != nil && t.files.paths != nil {
		t.files.refresh(s.options.Log, "file of tokens", func() (string, error) { return "valid", t.read() })
	}
	if c := s.options.Certificate; c != nil {
		c.files.refresh(s.options.Log, "certificate", func() (string, error) { return "valid", c.read() })
	}
	for _, m := range s.models {
		if m.folder != "" {
			m.files.refresh(s.options.Log, "model "+m.name, func() (string, error) { return s.reload(m) })
			m.stats.failing(m.files.problem != "")
		}
	}
}

// Tokens are the bearer tokens that a server accepts. The server stores only their checksums.
type Tokens struct {
	sums  atomic.Pointer[[][sha256.Size]byte]
	files files // file with the tokens; empty for NewTokens
}

// shortestToken is the minimum length of a token, in characters. Shorter tokens could be guessed.
const shortestToken = 16

// ReadTokens reads a file with one token per line. Empty lines and lines that begin with # are ignored. A server reads the file
// again when it changes.
func ReadTokens(path string) (*Tokens, error) {
	t := &Tokens{files: newFiles(path)}
	if err := t.read(); err != nil {
		return nil, err
	}
	return t, nil
}

func (t *Tokens) read() error {
	path := t.files.paths[0]
	text, err := regular.ReadFile(path)
	if err != nil {
		return err
	}
	var tokens []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			tokens = append(tokens, line)
		}
	}
	if err := t.set(tokens); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// NewTokens returns the tokens, each of at least 16 characters.
func NewTokens(tokens ...string) (*Tokens, error) {
	t := &Tokens{}
	if err := t.set(tokens); err != nil {
		return nil, err
	}
	return t, nil
}

// set replaces the accepted tokens.
func (t *Tokens) set(tokens []string) error {
	var sums [][sha256.Size]byte
	for i, token := range tokens {
		if len(token) < shortestToken {
			return fmt.Errorf("token %d: got %d characters, want at least %d", i+1, len(token), shortestToken)
		}
		sums = append(sums, sha256.Sum256([]byte(token)))
	}
	if len(sums) == 0 {
		return errors.New("got no tokens, want at least one")
	}
	t.sums.Store(&sums)
	return nil
}

// accept reports whether a request has one of the tokens. It takes the same time for every wrong token.
func (t *Tokens) accept(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	sum := sha256.Sum256([]byte(token))
	found := 0
	if sums := t.sums.Load(); sums != nil {
		for i := range *sums {
			found |= subtle.ConstantTimeCompare(sum[:], (*sums)[i][:])
		}
	}
	return strings.EqualFold(scheme, "Bearer") && found == 1
}

// guarded accepts only requests with a token, except for the health endpoints.
func (s *Server) guarded(h http.Handler) http.Handler {
	if s.options.Tokens == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.isHealth(r) && !s.options.Tokens.accept(r) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			fail(w, problemf(http.StatusUnauthorized, "got no valid token, want the header Authorization: Bearer TOKEN"))
			return
		}
		h.ServeHTTP(w, r)
	})
}

// Certificate is a TLS certificate with its key. A server reads the files again when they change.
type Certificate struct {
	pair  atomic.Pointer[tls.Certificate]
	files files
}

// ReadCertificate reads a certificate, or a chain of them, and its key, both in PEM.
func ReadCertificate(certificate, key string) (*Certificate, error) {
	c := &Certificate{files: newFiles(certificate, key)}
	if err := c.read(); err != nil {
		return nil, err
	}
	return c, nil
}

// read reads the files. If the new certificate does not match the key, it returns an error. This happens if the key is written
// after the certificate; the files are then read again when the key changes.
func (c *Certificate) read() error {
	var text [2][]byte
	for i, path := range c.files.paths {
		var err error
		if text[i], err = regular.ReadFile(path); err != nil {
			return err
		}
	}
	pair, err := tls.X509KeyPair(text[0], text[1])
	if err != nil {
		return fmt.Errorf("%s: %w", c.files.paths[0], err)
	}
	c.pair.Store(&pair)
	return nil
}

// secured returns the TLS configuration of the server, nil without TLS. New connections use the certificate that was read
// last.
func (o *Options) secured() *tls.Config {
	if o.Certificate == nil {
		return o.TLS
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.TLS != nil {
		config = o.TLS.Clone()
	}
	config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return o.Certificate.pair.Load(), nil }
	return config
}

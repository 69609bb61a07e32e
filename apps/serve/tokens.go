package serve

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
)

// Tokens are the bearer tokens that a server accepts. Only their checksums are kept.
type Tokens struct {
	sums  atomic.Pointer[[][sha256.Size]byte]
	files files // none of NewTokens
}

// shortestToken is the least number of characters of a token: shorter ones could be guessed.
const shortestToken = 16

// ReadTokens reads a file with one token per line. Empty lines and lines that begin with # are left out. A server reads the file
// again when it changes.
func ReadTokens(path string) (*Tokens, error) {
	t := &Tokens{files: newFiles(path)}
	if err := t.read(); err != nil {
		return nil, err
	}
	return t, nil
}

// read reads the file.
func (t *Tokens) read() error {
	path := t.files.paths[0]
	text, err := os.ReadFile(path)
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

// set replaces the tokens.
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

// guarded lets only requests with a token in. Health is open: probes have no tokens.
func (s *Server) guarded(h http.Handler) http.Handler {
	if s.options.Tokens == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/v2/health/") && !s.options.Tokens.accept(r) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			fail(w, problemf(http.StatusUnauthorized, "got no valid token, want the header Authorization: Bearer TOKEN"))
			return
		}
		h.ServeHTTP(w, r)
	})
}

package serve

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
)

// Tokens are the bearer tokens that a server accepts. Only their checksums are kept.
type Tokens struct{ sums [][sha256.Size]byte }

// shortestToken is the least number of characters of a token: shorter ones could be guessed.
const shortestToken = 16

// ReadTokens reads a file with one token per line. Empty lines and lines that begin with # are left out.
func ReadTokens(path string) (*Tokens, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var tokens []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			tokens = append(tokens, line)
		}
	}
	t, err := NewTokens(tokens...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// NewTokens returns the tokens, each of at least 16 characters.
func NewTokens(tokens ...string) (*Tokens, error) {
	t := &Tokens{}
	for i, token := range tokens {
		if len(token) < shortestToken {
			return nil, fmt.Errorf("token %d: got %d characters, want at least %d", i+1, len(token), shortestToken)
		}
		t.sums = append(t.sums, sha256.Sum256([]byte(token)))
	}
	if len(t.sums) == 0 {
		return nil, errors.New("got no tokens, want at least one")
	}
	return t, nil
}

// accept reports whether a request has one of the tokens. It takes the same time for every wrong token.
func (t *Tokens) accept(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	sum := sha256.Sum256([]byte(token))
	found := 0
	for i := range t.sums {
		found |= subtle.ConstantTimeCompare(sum[:], t.sums[i][:])
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

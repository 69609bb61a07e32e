package serve

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// A client that stops in the middle of its request keeps the former model in use, but does not block the reload of tokens and
// models.
func TestAStalledRequestDoesNotStopTheWatch(t *testing.T) {
	dir := t.TempDir()
	folder, file := filepath.Join(dir, "run"), filepath.Join(dir, "tokens")
	trainRun(t, folder, fmt.Sprintf(text, 6))
	const one, other = "0123456789abcdef", "another token, of another length"
	rewrite(t, file, one)
	tokens, err := ReadTokens(file)
	fatal.If(t, err)
	s, err := New([]Model{{Folder: folder}}, Options{Workers: 1, Reload: 2 * time.Millisecond, Tokens: tokens})
	fatal.If(t, err)
	body, client := io.Pipe()
	r := httptest.NewRequest(http.MethodPost, "/v2/models/run/infer", body)
	r.Header.Set("Authorization", "Bearer "+one)
	var stalled sync.WaitGroup
	stalled.Go(func() { s.ServeHTTP(httptest.NewRecorder(), r) })
	defer func() {
		client.Close()
		stalled.Wait()
		expect.NoError(t, s.Close())
	}()
	if _, err := client.Write([]byte("{")); err != nil { // returns when the server, which then has the model, reads it
		t.Fatal(err)
	}
	ask := func(token string) answer {
		return send(s, "GET", "/v2/models/run", nil, "Authorization: Bearer "+token)
	}
	first := string(ask(one).body)
	replace(t, smallRun(t), folder)
	waitFor(t, func() bool { return string(ask(one).body) != first })
	rewrite(t, file, other)
	waitFor(t, func() bool { return ask(one).status == http.StatusUnauthorized && ask(other).status == http.StatusOK })
}

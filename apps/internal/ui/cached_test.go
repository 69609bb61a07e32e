package ui

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// slow is a client that does not read until it is released.
type slow struct {
	*httptest.ResponseRecorder
	begun, release chan struct{}
}

func (s slow) Write(p []byte) (int, error) {
	close(s.begun)
	<-s.release
	return s.ResponseRecorder.Write(p)
}

func TestASlowReaderKeepsNobodyFromOtherPages(t *testing.T) {
	s, err := New(t.TempDir(), Options{})
	fatal.If(t, err)
	made := 0
	show := func(w http.ResponseWriter, key, stamp string) {
		s.cached(w, key, stamp, func(b *bytes.Buffer) error { made++; b.WriteString(key); return nil })
	}
	first := slow{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
	go show(first, "one", "a")
	<-first.begun
	other, ended := httptest.NewRecorder(), make(chan struct{})
	go func() { show(other, "two", "a"); close(ended) }()
	<-ended // does not wait for the slow reader
	close(first.release)
	for _, stamp := range []string{"a", "b"} {
		for range 2 {
			fatal.If(t, expect.Err(s.render("two", stamp, func(*bytes.Buffer) error { made++; return nil })))
		}
	}
	expect.Equal(t, other.Body.String(), "two", other.Body, "made")
	expect.Equal(t, made, 3, other.Body, "made")
}

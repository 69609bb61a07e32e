package serve

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// buffer is the memory of a request. Requests take it from a pool and give it back.
type buffer struct {
	body     []byte
	draft    draft
	images   []float32
	response []byte
	values   [][]float32
	jobs     []*job
	held     int64 // bytes of body that count against MaxMemory
}

var buffers = sync.Pool{New: func() any { return &buffer{} }}

// mostKept is the largest body whose memory is kept for the next request.
const mostKept = 1 << 20

// give returns a buffer to the pool.
func (s *Server) give(b *buffer) {
	s.memory.Add(-b.held)
	b.held = 0
	if cap(b.body) <= mostKept && cap(b.images) <= mostKept && cap(b.response) <= mostKept {
		buffers.Put(b)
	}
}

// hold counts bytes against MaxMemory.
func (s *Server) hold(b *buffer, bytes int64) error {
	b.held += bytes
	if s.memory.Add(bytes) > s.options.MaxMemory {
		return problemf(http.StatusTooManyRequests, "the server holds too many large requests; try again later")
	}
	return nil
}

// read reads the body of a request. Memory is taken as bytes arrive: a length that a client only claims costs nothing.
func (s *Server) read(w http.ResponseWriter, r *http.Request, b *buffer) error {
	if e := r.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return problemf(http.StatusUnsupportedMediaType, "content encoding: got %q, want none", e)
	}
	most := s.options.MaxBody
	if r.ContentLength > most {
		return problemf(http.StatusRequestEntityTooLarge, "body: got %d bytes, want at most %d", r.ContentLength, most)
	}
	const first = 64 << 10
	if size := min(max(r.ContentLength, 512), first); int64(cap(b.body)) < size {
		b.body = make([]byte, 0, size)
	}
	b.body = b.body[:0]
	if err := s.hold(b, int64(cap(b.body))); err != nil {
		return err
	}
	body := r.Body
	if r.ContentLength < 0 {
		body = http.MaxBytesReader(w, r.Body, most)
	}
	for int64(len(b.body)) != r.ContentLength {
		if len(b.body) == cap(b.body) {
			size := min(2*int64(cap(b.body)), most+1)
			if err := s.hold(b, size-int64(cap(b.body))); err != nil {
				return err
			}
			b.body = append(make([]byte, 0, size), b.body...)
		}
		n, err := body.Read(b.body[len(b.body):cap(b.body)])
		b.body = b.body[:len(b.body)+n]
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return broken(err, most)
		case r.ContentLength >= 0 && int64(len(b.body)) > r.ContentLength:
			return errors.New("body: got more bytes than Content-Length")
		}
	}
	return nil
}

// broken returns the error of a body that could not be read.
func broken(err error, most int64) error {
	if long := (*http.MaxBytesError)(nil); errors.As(err, &long) {
		return problemf(http.StatusRequestEntityTooLarge, "body: got more than %d bytes", most)
	}
	return fmt.Errorf("body: %w", err)
}

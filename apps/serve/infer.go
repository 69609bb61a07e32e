package serve

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// infer answers an inference request.
func (s *Server) infer(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, func(b *buffer, m *model, l *loaded) (*request, error) {
		if err := s.read(w, r, b); err != nil {
			return nil, err
		}
		length := r.Header.Get(headerLength)
		if length == "0" {
			return raw(b.body, l, s.options.MaxImages)
		}
		header := len(b.body)
		if length != "" {
			n, err := strconv.Atoi(length)
			if err != nil || n < 0 || n > len(b.body) {
				return nil, fmt.Errorf("%s: got %q, want an integer from 0 to the %d bytes of the body", headerLength, length, len(b.body))
			}
			header = n
		}
		return b.draft.decode(b.body, header, l, s.options.MaxImages, b.images)
	}, func(b *buffer, m *model, l *loaded, q *request) error {
		body, header, err := appendResponse(b.response[:0], m.name, l, q, b.values)
		b.response = body
		if err == nil {
			writeResponse(w, body, header)
		}
		return err
	})
}

// answer computes the outputs of a request that ask reads, and has reply write them.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, ask func(*buffer, *model, *loaded) (*request, error),
	reply func(*buffer, *model, *loaded, *request) error) {
	m, l, err := s.find(r)
	if err != nil {
		fail(w, err)
		return
	}
	defer l.release()
	began := time.Now()
	b := buffers.Get().(*buffer)
	reused := false // also after a panic
	defer func() {
		if reused {
			s.give(b)
		} else {
			s.memory.Add(-b.held)
		}
	}()
	q, err := ask(b, m, l)
	if err == nil {
		b.images = q.images
		reused, err = s.compute(r.Context(), b, q, began)
	} else {
		reused = true
	}
	if err == nil {
		err = reply(b, m, l, q)
	}
	status, count := http.StatusOK, 0
	if err != nil {
		status = fail(w, err)
	} else {
		count = q.count
	}
	m.stats.answered(status, count, began)
	s.answers.Add(1)
}

// compute computes the outputs of a request. When the client leaves, a worker may still use the memory of the request, which then
// must not be used again.
func (s *Server) compute(ctx context.Context, b *buffer, q *request, began time.Time) (reusable bool, err error) {
	for len(b.jobs) < len(q.wanted) {
		b.jobs = append(b.jobs, &job{done: make(chan struct{}, 1)})
	}
	submitted, now := 0, time.Now()
	for i, want := range q.wanted {
		j := b.jobs[i]
		j.ctx, j.images, j.count, j.began, j.until = ctx, q.images, q.count, began, now.Add(s.options.Timeout)
		submit := want.output.batch.submit
		if i == len(q.wanted)-1 {
			submit = want.output.batch.lead // computes in this goroutine, while others compute the outputs before
		}
		if err = submit(j); err != nil {
			break
		}
		submitted++
	}
	b.values = b.values[:0]
	for _, j := range b.jobs[:submitted] {
		values, failed := j.result()
		err = cmp.Or(err, failed)
		if failed != nil && ctx.Err() != nil {
			return false, err
		}
		b.values = append(b.values, values)
	}
	return true, err
}

// find returns the model of a request. The caller releases it.
func (s *Server) find(r *http.Request) (*model, *loaded, error) {
	name := r.PathValue("model")
	m := s.byName[name]
	if m == nil {
		return nil, nil, problemf(http.StatusNotFound, "model: got %q, want one of %q", name, s.Models())
	}
	l := m.acquire()
	if version := r.PathValue("version"); version != "" && version != l.version {
		l.release()
		return nil, nil, problemf(http.StatusNotFound, "model %q: version: got %q, want %q", name, version, l.version)
	}
	return m, l, nil
}

// Models lists the names of the models.
func (s *Server) Models() []string {
	var names []string
	for _, m := range s.models {
		names = append(names, m.name)
	}
	return names
}

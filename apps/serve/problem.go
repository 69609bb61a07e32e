package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// problem is an error with the HTTP status of its response.
type problem struct {
	status int
	text   string
}

// Error implements error.
func (p *problem) Error() string { return p.text }

func problemf(status int, format string, args ...any) error {
	return &problem{status, fmt.Sprintf(format, args...)}
}

// errFull means that the queue of a model has no place for a request.
var errFull = &problem{http.StatusTooManyRequests, "the queue of the model is full; try again later"}

// retryAfter is when clients of a full queue, or of a server that ends, are asked to try again.
const retryAfter = time.Second

// statusOf returns the status of an error: 400, as the protocol proposes, unless the error has another one.
func statusOf(err error) int {
	var p *problem
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &p):
		return p.status
	case errors.As(err, &long):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return http.StatusServiceUnavailable
	}
	return http.StatusBadRequest
}

// fail answers with an error object of the protocol.
func fail(w http.ResponseWriter, err error) int {
	status := statusOf(err)
	text := err.Error()
	if errors.Is(err, context.DeadlineExceeded) {
		text = "the time limit of the request is over; try again later"
	}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
	}
	writeJSON(w, status, map[string]string{"error": text})
	return status
}

// writeJSON answers with one JSON document.
func writeJSON(w http.ResponseWriter, status int, v any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil { // only values of this package are written
		panic(err)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // fails where the client is gone
}

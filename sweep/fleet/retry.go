package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// requestTime bounds one request to the server; a request without an answer is repeated.
const requestTime = 10 * time.Second

// retry repeats requests to the server.
type retry struct {
	limit time.Duration // of one request
	log   func(string)
}

// again repeats a request until it succeeds, fails for good, or the context ends. The error of an ended context has the
// last try's, too. A server that answers but refuses for longer than the limit, for example because its storage is
// full, is reported once: a lost connection is reported by whoever made it.
func (r retry) again(ctx context.Context, request func(context.Context) error) error {
	f := refusals{what: "a request", retry: r}
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		one, cancel := context.WithTimeout(ctx, r.limit)
		err := request(one)
		cancel()
		if err == nil || final(err) {
			return err
		}
		f.note(err)
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(wait):
		}
	}
}

// refusals are the refusals of one request that is repeated.
type refusals struct {
	retry
	what     string    // the request, as in "a request"
	since    time.Time // of the first one; zero after another answer
	reported bool
}

// note reports whether the error of a try is a refusal, and logs refusals for longer than the limit once. That somebody else has
// written is none.
func (f *refusals) note(err error) bool {
	switch {
	case !refused(err) || errors.Is(err, jetstream.ErrKeyRevisionMismatch):
		f.since = time.Time{}
		return false
	case f.since.IsZero():
		f.since = time.Now()
	case !f.reported && time.Since(f.since) > f.limit:
		f.reported = true
		f.log(fmt.Sprintf("the server has refused %s for %v: %v; retrying", f.what, time.Since(f.since).Round(time.Second), err))
	}
	return true
}

// refused reports whether an error is an answer of the server.
func refused(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api)
}

// final reports whether the same request would fail again.
func final(err error) bool {
	for _, known := range []error{jetstream.ErrObjectNotFound, jetstream.ErrBucketNotFound, jetstream.ErrStreamNotFound, jetstream.ErrConsumerNotFound,
		jetstream.ErrKeyNotFound, jetstream.ErrKeyExists, jetstream.ErrKeyDeleted, jetstream.ErrKeyValueConfigRequired, errChecksum, errMessage} {
		if errors.Is(err, known) {
			return true
		}
	}
	var api *jetstream.APIError
	return errors.As(err, &api) && api.Code >= 400 && api.Code < 500 && api.ErrorCode != jetstream.JSErrCodeJetStreamNotEnabled
}

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
	var refusedSince time.Time
	reported := false
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		one, cancel := context.WithTimeout(ctx, r.limit)
		err := request(one)
		cancel()
		if err == nil || final(err) {
			return err
		}
		switch {
		case !refused(err):
			refusedSince = time.Time{}
		case refusedSince.IsZero():
			refusedSince = time.Now()
		case !reported && time.Since(refusedSince) > r.limit:
			reported = true
			r.log(fmt.Sprintf("the server has refused a request for %v: %v; retrying", time.Since(refusedSince).Round(time.Second), err))
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(wait):
		}
	}
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

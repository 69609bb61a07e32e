package fleet

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"tessera/internal/expect"
)

// A server whose storage is full refuses requests until something is deleted. The log reports this in a single line.
func TestAServerThatRefusesIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		r := retry{requestTime, func(line string) { lines = append(lines, line) }}
		began := time.Now()
		err := r.again(t.Context(), func(context.Context) error {
			if time.Since(began) < 5*time.Minute {
				return &jetstream.APIError{Code: 503, ErrorCode: 10047, Description: "insufficient storage resources available"}
			}
			return nil
		})
		expect.NoError(t, err)
		if len(lines) != 1 || !strings.Contains(lines[0], "insufficient storage") {
			t.Errorf("logged %q, want one line with the server's reason", lines)
		}
	})
}

// fullStore is a key-value store that can be read, but refuses writes.
type fullStore struct {
	jetstream.KeyValue
	began time.Time
	tries int
}

func (s *fullStore) Get(context.Context, string) (jetstream.KeyValueEntry, error) {
	return nil, jetstream.ErrKeyNotFound
}

func (s *fullStore) Update(context.Context, string, []byte, uint64) (uint64, error) {
	if s.tries++; time.Since(s.began) < 5*time.Minute {
		return 0, &jetstream.APIError{Code: 503, ErrorCode: 10023, Description: "insufficient resources"}
	}
	return 1, nil
}

func TestAServerThatRefusesARecordIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		full := &fullStore{began: time.Now()}
		r := records{retry: retry{requestTime, func(line string) { lines = append(lines, line) }}, kv: full}
		expect.NoError(t, expect.Err(r.change(t.Context(), "trial", func(*record) bool { return true })))
		if len(lines) != 1 || !strings.Contains(lines[0], "refused a record") || !strings.Contains(lines[0], "insufficient resources") {
			t.Errorf("logged %q, want one line with the server's reason", lines)
		}
		if full.tries > 400 {
			t.Errorf("%d tries in 5 minutes", full.tries)
		}
	})
}

func TestARefusalAfterALostConnectionIsNotReportedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := retry{requestTime, func(line string) { t.Errorf("logged %q", line) }}
		began, refusals := time.Now(), 0
		err := r.again(t.Context(), func(context.Context) error {
			if time.Since(began) < 5*time.Minute {
				return errors.New("no connection")
			}
			if refusals++; refusals < 3 {
				return &jetstream.APIError{Code: 503}
			}
			return nil
		})
		expect.NoError(t, err)
	})
}

func TestALostConnectionIsRepeatedWithoutALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		lost := errors.New("no connection")
		r := retry{requestTime, func(line string) { t.Errorf("logged %q", line) }}
		tries := 0
		if err := r.again(ctx, func(context.Context) error { tries++; return lost }); !errors.Is(err, lost) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the end of the context and the last error", err)
		}
		if tries < 20 {
			t.Errorf("%d tries in a minute", tries)
		}
	})
}

func TestWhatFailsForGoodIsNotRepeated(t *testing.T) {
	for _, err := range []error{errChecksum, jetstream.ErrKeyExists, &jetstream.APIError{Code: 400}} {
		tries := 0
		r := retry{requestTime, func(string) {}}
		if got := r.again(t.Context(), func(context.Context) error { tries++; return err }); !errors.Is(got, err) || tries != 1 {
			t.Errorf("%v: got %v after %d tries", err, got, tries)
		}
	}
}

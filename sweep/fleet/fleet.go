// Package fleet runs the trials of a sweep on several machines.
//
// The [Coordinator] holds the sweep's folder and a queue of trials in NATS JetStream: a server inside the process, or an
// existing one. Workers ([Work]) take trials from the queue, train them in separate folders by the same code as
// [sweep.Sweep.Run], and send finished runs back. The coordinator verifies and installs them, so that the sweep's folder
// looks like that of any other sweep.
//
// A trial is delivered at least once: when a worker dies, its lease runs out, and another worker resumes from the last
// checkpoint that was sent. A trial is installed exactly once; a second result must be equal to the first, unless workers
// have different kernels. Leases are measured only by the clock of the server. Messages contain no times, so the clocks of
// the machines need not agree.
package fleet

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"tessera/internal/machine"
	"tessera/kernel"
)

var (
	// ErrLost reports that the connection to the queue is lost and will not be retried.
	ErrLost = errors.New("the connection to the queue of the sweep is lost")
	// ErrNoServer reports that the queue has never been reached.
	ErrNoServer = errors.New("no server answers")
	// ErrIdle reports that a worker has waited too long for another sweep.
	ErrIdle = errors.New("the sweep has ended, and no other one has begun")
	// ErrAddress reports an address on which this machine cannot listen, for example because another program is using it.
	ErrAddress = errors.New("cannot listen")
	// ErrNoToken reports a server that other machines could reach without a token.
	ErrNoToken = errors.New("other machines could connect without a token")
	// ErrRefused reports a worker that the coordinator rejects, or a server that rejects the connection; see [Refusal].
	ErrRefused = errors.New("refused")
	// ErrUnequal reports two workers with the same kernels but different results for one trial.
	ErrUnequal = errors.New("two results of one trial differ")
)

// Names used in JetStream.
const (
	helloSubject = "tessera.hello" // for all sweeps
	consumerName = "workers"
	inboxName    = "coordinator"
)

// names contains the names of the streams and subjects of one sweep; sweep is its random ID.
type names struct{ sweep string }

func (n names) work() string             { return "tessera-work-" + n.sweep }
func (n names) inbox() string            { return "tessera-results-" + n.sweep }
func (n names) files() string            { return "tessera-files-" + n.sweep }
func (n names) records() string          { return "tessera-records-" + n.sweep }
func (n names) subject(of string) string { return "tessera." + n.sweep + "." + of }
func (n names) task(trial, digest string) string {
	return n.subject("work." + trial + "." + digest[:16])
}

// newID returns a random identifier of a sweep or a process.
func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// host returns a name for this machine and process.
func host() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		name = "unknown"
	}
	return fmt.Sprintf("%s-%d", name, os.Getpid())
}

// self returns the hello of this process as a worker.
func self(cores int) hello {
	return hello{Protocol: protocol, Version: machine.Version(), ID: newID(), Name: host(), CPU: machine.CPU(), Kernels: kernel.Float32().Name, Cores: cores}
}

// records stores the record of each trial in a key-value store. An entry is replaced only if it has not changed since it was
// read.
type records struct {
	retry
	js     jetstream.JetStream
	kv     jetstream.KeyValue
	stream *handle
}

// get returns the record of a trial and its revision, which is 0 if there is none. An unreadable record counts as none.
func (r records) get(ctx context.Context, trial string) (rec record, revision uint64, err error) {
	err = r.again(ctx, func(ctx context.Context) error {
		e, err := r.kv.Get(ctx, trial)
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			rec, revision = record{}, 0
			return nil
		}
		if err != nil {
			return err
		}
		rec, revision = record{}, e.Revision()
		if decode(e.Value(), &rec) != nil {
			rec = record{}
		}
		return nil
	})
	return rec, revision, err
}

// change reads, changes and writes the record of a trial, and repeats this until no other process has written in between. If
// change returns false, nothing is written. A server that keeps refusing is reported, as by [retry.again].
func (r records) change(ctx context.Context, trial string, change func(*record) bool) (record, error) {
	f := refusals{what: "a record", retry: r.retry}
	for {
		rec, revision, err := r.get(ctx, trial)
		if err != nil || !change(&rec) {
			return rec, err
		}
		text, err := encode(&rec)
		if err != nil {
			return rec, err
		}
		one, cancel := context.WithTimeout(ctx, requestTime)
		_, err = r.kv.Update(one, trial, text, revision)
		cancel()
		if err == nil {
			return rec, nil
		}
		wait := 20 * time.Millisecond // another process has written, or the answer is lost: read the record again
		if f.note(err) {
			wait = time.Second
		}
		if !sleep(ctx, wait) {
			return rec, errors.Join(ctx.Err(), err)
		}
	}
}

// remove removes the record of a trial.
func (r records) remove(ctx context.Context, trial string) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	if stream, err := r.stream.of(ctx, r.js, "KV_"+r.kv.Bucket()); err == nil {
		_ = stream.Purge(ctx, jetstream.WithPurgeSubject("$KV."+r.kv.Bucket()+"."+trial))
	}
}

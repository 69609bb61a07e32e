// Package fleet runs the trials of a sweep on several machines.
//
// The [Coordinator] has the sweep's folder and a queue of trials in NATS JetStream: a server inside of the process, or
// an existing one. Workers ([Work]) take trials from the queue, train them in separate folders with the code of
// [sweep.Sweep.Run], and send finished runs back. The coordinator verifies and installs the runs, so that the sweep's
// folder looks like that of any other sweep.
//
// A trial is delivered at least once: when a worker dies, its lease expires, and another worker resumes from the last
// checkpoint that was sent. A trial is installed exactly once. A second result must equal the first, unless the workers
// have different kernels. Only the clock of the server measures leases. Messages contain no times, so the clocks of the
// machines need not agree.
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
	"tessera/internal/engine/kernel"
	"tessera/internal/machine"
)

var (
	// ErrLost means that the connection to the queue is lost and is not retried.
	ErrLost = errors.New("the connection to the queue of the sweep is lost")
	// ErrNoServer means that the queue was never reached.
	ErrNoServer = errors.New("no server answers")
	// ErrIdle means that a worker has waited too long for another sweep.
	ErrIdle = errors.New("the sweep has ended, and no other one has begun")
	// ErrAddress means that this machine cannot listen on an address, for example because another program is using it.
	ErrAddress = errors.New("cannot listen")
	// ErrNoToken means that other machines could reach the server without a token.
	ErrNoToken = errors.New("other machines could connect without a token")
	// ErrRefused means that the coordinator rejects a worker, or a server rejects the connection; see [Refusal].
	ErrRefused = errors.New("refused")
	// ErrUnequal means that two workers with the same kernels have sent different results for one trial.
	ErrUnequal = errors.New("two results of one trial differ")
)

// Names used in JetStream.
const (
	helloSubject = "tessera.hello" // subject for all sweeps
	consumerName = "workers"
	inboxName    = "coordinator"
)

// names forms the names of the streams and subjects of one sweep. sweep is the random ID of the sweep.
type names struct{ sweep string }

func (n names) work() string             { return "tessera-work-" + n.sweep }
func (n names) inbox() string            { return "tessera-results-" + n.sweep }
func (n names) files() string            { return "tessera-files-" + n.sweep }
func (n names) records() string          { return "tessera-records-" + n.sweep }
func (n names) subject(of string) string { return "tessera." + n.sweep + "." + of }
func (n names) task(trial, digest string) string {
	return n.subject("work." + trial + "." + digest[:16])
}

func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // rand.Read never fails
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

// self returns the hello message of this process as a worker.
func self(cores int) hello {
	return hello{Protocol: protocol, Version: machine.Version(), ID: newID(), Name: host(), CPU: machine.CPU(), Kernels: kernel.Float32().Name, Cores: cores}
}

// records stores the record of each trial in a key-value store. An entry is replaced only if it has not changed since
// it was read.
type records struct {
	retry
	js     jetstream.JetStream
	kv     jetstream.KeyValue
	stream *handle
}

// get returns the record of a trial and the revision of the record. The revision is 0 if there is no record. An
// unreadable record is treated as missing.
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

// change reads, changes and writes the record of a trial. It repeats this until no other process has written in
// between. If the function change returns false, nothing is written. A server that keeps refusing is reported as by
// [retry.again].
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
		wait := 20 * time.Millisecond // another process has written the record, or the answer was lost: read the record again
		if f.note(err) {
			wait = time.Second
		}
		if !sleep(ctx, wait) {
			return rec, errors.Join(ctx.Err(), err)
		}
	}
}

func (r records) remove(ctx context.Context, trial string) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	if stream, err := r.stream.of(ctx, r.js, "KV_"+r.kv.Bucket()); err == nil {
		_ = stream.Purge(ctx, jetstream.WithPurgeSubject("$KV."+r.kv.Bucket()+"."+trial))
	}
}

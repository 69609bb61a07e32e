package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// prepare opens the streams of the sweep, or makes them.
func (c *Coordinator) prepare(ctx context.Context) error {
	js, err := jetstream.New(c.conn)
	if err != nil {
		return fmt.Errorf("fleet: %w", err)
	}
	patient := retry{requestTime, c.options.Log}
	c.store, c.records = &store{retry: patient, js: js, bucket: c.names.files()}, records{retry: patient, js: js, stream: &handle{}}
	err = c.store.again(ctx, func(ctx context.Context) (err error) {
		if c.work, err = js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: c.names.work(), Subjects: []string{c.names.subject("work.*.*")},
			Retention: jetstream.WorkQueuePolicy}); err != nil {
			return err
		}
		if c.results, err = js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: c.names.inbox(), Subjects: []string{c.names.subject("result.*")},
			Retention: jetstream.WorkQueuePolicy}); err != nil {
			return err
		}
		if c.store.objects, err = js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: c.names.files()}); err != nil {
			return err
		}
		c.records.kv, err = js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: c.names.records()})
		return err
	})
	if err != nil {
		return fmt.Errorf("fleet: cannot make the queue: %w", err)
	}
	return nil
}

// tidy empties the queue that an earlier coordinator has left, and notes of which trials it has left results. Trials that
// workers still do are not lost: they say so in their hello. A queue is not resumed, because a server that was killed may have
// forgotten the end of a stream, and then gives the numbers of messages out again that consumers take for delivered.
func (c *Coordinator) tidy(ctx context.Context) (resumed bool, err error) {
	c.arrived = map[string]bool{}
	err = c.store.again(ctx, func(ctx context.Context) error {
		info, err := c.work.Info(ctx)
		if err != nil {
			return err
		}
		resumed = resumed || info.State.LastSeq > 0
		if err := c.work.Purge(ctx); err != nil {
			return err
		}
		if err := c.work.DeleteConsumer(ctx, consumerName); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
			return err
		}
		// A trial is delivered as often as workers are lost; its record counts the tries, and no message is ever left behind.
		if c.tasks, err = c.work.CreateConsumer(ctx, jetstream.ConsumerConfig{Durable: consumerName, AckPolicy: jetstream.AckExplicitPolicy,
			AckWait: c.options.Lease, MaxDeliver: -1, MaxAckPending: -1}); err != nil {
			return err
		}
		c.arrived, err = c.unread(ctx)
		return err
	})
	return resumed, err
}

// unread are the trials whose results are in the queue.
func (c *Coordinator) unread(ctx context.Context) (map[string]bool, error) {
	info, err := c.results.Info(ctx, jetstream.WithSubjectFilter(">"))
	if err != nil {
		return nil, err
	}
	trials := map[string]bool{}
	for subject := range info.State.Subjects {
		trials[subject[strings.LastIndex(subject, ".")+1:]] = true
	}
	return trials, nil
}

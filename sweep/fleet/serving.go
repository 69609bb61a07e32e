package fleet

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// serving is the worker while it serves one sweep.
type serving struct {
	*worker
	names    names
	lease    time.Duration
	consumer jetstream.Consumer
	store    *store
	records  records
	control  *nats.Subscription
	stop     context.CancelFunc
	slots    sync.WaitGroup
}

// id is the ID of the sweep, "" for none.
func (s *serving) id() string {
	if s == nil {
		return ""
	}
	return s.names.sweep
}

// asked reports whether a coordinator wants the worker to continue as it does. One that was started again may have another lease.
func (s *serving) asked(answer *welcome) bool {
	return answer.State == stateRun && answer.Sweep == s.id() && answer.lease() == s.lease
}

// over says why the worker takes no more trials of the sweep.
func (s *serving) over(answer *welcome) string {
	switch {
	case answer.Sweep != s.id():
		return "another sweep has begun"
	case answer.State == stateEnd:
		return "the sweep has ended"
	case answer.State == stateCancel:
		return "the sweep was interrupted"
	}
	return "the lease of the sweep has changed"
}

// join begins to take trials of a sweep.
func (w *worker) join(ctx context.Context, answer *welcome) (*serving, error) {
	s := &serving{worker: w, names: names{answer.Sweep}, lease: answer.lease()}
	js, err := jetstream.New(w.conn)
	if err != nil {
		return nil, err
	}
	patient := retry{requestTime, s.options.Log}
	s.store, s.records = &store{retry: patient, js: js, bucket: s.names.files()}, records{retry: patient, js: js, stream: &handle{}}
	one, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	if s.consumer, err = js.Consumer(one, s.names.work(), consumerName); err != nil {
		return nil, fmt.Errorf("the queue of sweep %s: %w", s.names.sweep, err)
	}
	if s.store.objects, err = js.ObjectStore(one, s.names.files()); err != nil {
		return nil, fmt.Errorf("the files of sweep %s: %w", s.names.sweep, err)
	}
	if s.records.kv, err = js.KeyValue(one, s.names.records()); err != nil {
		return nil, fmt.Errorf("the records of sweep %s: %w", s.names.sweep, err)
	}
	if s.control, err = w.conn.Subscribe(s.names.subject("control"), func(*nats.Msg) { w.wake() }); err != nil {
		return nil, err
	}
	ctx, s.stop = context.WithCancel(ctx)
	w.options.Log(fmt.Sprintf("taking trials of sweep %s, %d at once", s.names.sweep, w.options.Jobs))
	for range w.options.Jobs {
		s.slots.Go(func() { s.slot(ctx) })
	}
	return s, nil
}

// end gives the trials in progress back and waits for them. Meanwhile it says hello, so that the coordinator waits too.
func (s *serving) end() {
	s.stop()
	given := make(chan struct{})
	go func() {
		s.slots.Wait()
		close(given)
	}()
	tick := time.NewTicker(helloEvery)
	defer tick.Stop()
	for {
		select {
		case <-given:
			_ = s.control.Unsubscribe()
			return
		case <-tick.C:
			_, _ = s.say(false, s.id()) // the answer changes nothing
		}
	}
}

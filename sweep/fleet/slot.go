package fleet

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"tessera/parallel/team"
)

// A trial has failed after mostFailures errors that another machine may not have, or after mostLosses workers that ended or lost
// their connection while they had it, all without a later checkpoint between them. Workers are lost for many reasons; a trial that
// ends its worker, for want of memory, is one of them.
const (
	mostFailures = 3
	mostLosses   = 10
)

// fetchTime is how long one request for a trial waits at the server.
const fetchTime = 2 * time.Second

// slot does one trial after the other until ctx ends.
func (s *serving) slot(ctx context.Context) {
	team := team.New(1)
	defer team.Close()
	for ctx.Err() == nil && s.problem() == nil {
		batch, err := s.consumer.Fetch(1, jetstream.FetchMaxWait(fetchTime))
		if err == nil {
			s.taken(ctx, batch, team)
			err = batch.Error()
		}
		if err != nil && ctx.Err() == nil {
			select { // the server is away: the connection is made again
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	}
}

// taken does the trial that a request brings. When ctx ends first, nobody waits for the request: what it still brings is given
// back.
func (s *serving) taken(ctx context.Context, batch jetstream.MessageBatch, team *team.Team) {
	for {
		select {
		case m, ok := <-batch.Messages():
			if !ok {
				return
			}
			s.trial(ctx, m, team)
		case <-ctx.Done():
			go func() {
				for m := range batch.Messages() {
					_ = m.Nak()
				}
			}()
			return
		}
	}
}

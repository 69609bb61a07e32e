package fleet

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Ready implements [sweep.Elsewhere]: it returns an error if this machine cannot listen on the address, or if no server with JetStream
// lets the sweep in.
func (c *Coordinator) Ready() error {
	o := c.options
	if err := o.Check(); err != nil {
		return err
	}
	if o.Listen == "" {
		return o.reach()
	}
	host, port, err := hostPort(o.Listen)
	if err != nil {
		return err
	}
	if o.Certificate != "" {
		if _, err := o.serverTLS(); err != nil {
			return err
		}
	}
	return free(host, port)
}

// reach connects to a server once.
func (o Options) reach() error {
	options, err := o.options("coordinator")
	if err != nil {
		return err
	}
	conn, err := nats.Connect(o.URL, options...)
	if why := o.refused(o.URL, err); why != nil {
		return why
	}
	if err != nil {
		return absent(o.URL, err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return fmt.Errorf("fleet: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTime)
	defer cancel()
	_, err = js.AccountInfo(ctx)
	if errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) || errors.Is(err, nats.ErrNoResponders) {
		return fmt.Errorf("%s: %w: the server has no JetStream; start it with -js", shown(o.URL), ErrRefused)
	}
	return nil // other errors may pass
}

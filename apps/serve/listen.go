package serve

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Serve serves connections of the listener until ctx ends, then drains and returns nil when all requests are answered.
//
// To drain, the server first reports that it is not ready, answers requests for DrainDelay more and asks clients to close
// their connections; load balancers and clients with open connections have that time to leave. Then it closes the listener
// and waits for open requests, DrainTimeout at most. No request that was accepted is lost in less time than that.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	o := &s.options
	secured := o.secured()
	h := &http.Server{Handler: s, ReadHeaderTimeout: o.ReadTimeout, ReadTimeout: o.ReadTimeout,
		WriteTimeout: o.ReadTimeout + 2*o.Timeout, // counts from the end of the header
		IdleTimeout:  o.IdleTimeout, MaxHeaderBytes: o.MaxHeader, TLSConfig: secured,
		ErrorLog: log.New(lines(o.Log), "", 0)}
	ended := make(chan error, 1)
	go func() {
		l := limit(l, o.MaxConns)
		if secured != nil {
			ended <- h.ServeTLS(l, "", "")
		} else {
			ended <- h.Serve(l)
		}
	}()
	select {
	case err := <-ended:
		return errors.Join(err, h.Close())
	case <-ctx.Done():
	}
	s.draining.Store(true)
	defer func() { o.Log(fmt.Sprintf("ended: %d inference requests were answered", s.answers.Load())) }()
	time.Sleep(o.DrainDelay)
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.DrainTimeout)
	defer cancel()
	if err := h.Shutdown(within); err != nil {
		return errors.Join(errors.New("serve: requests were still open after DrainTimeout: they were cut"), err, h.Close())
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// lines writes the log of the HTTP server to Options.Log.
type lines func(string)

// Write implements io.Writer.
func (l lines) Write(p []byte) (int, error) {
	l(strings.TrimSpace(string(p)))
	return len(p), nil
}

// limit returns a listener that accepts a connection when fewer than most are open.
func limit(l net.Listener, most int) net.Listener {
	return &limited{Listener: l, places: make(chan struct{}, most), closed: make(chan struct{})}
}

type limited struct {
	net.Listener
	places  chan struct{}
	closed  chan struct{}
	closing sync.Once
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &limitedConn{Conn: c, leave: func() { <-l.places }}, nil
}

// Close implements net.Listener.
func (l *limited) Close() error {
	l.closing.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// limitedConn gives its place back when it is closed.
type limitedConn struct {
	net.Conn
	closing sync.Once
	leave   func()
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	defer c.closing.Do(c.leave)
	return c.Conn.Close()
}

package main

import (
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// proxy forwards the connections between a worker and the coordinator. Each connection lasts for a random time, and some of
// its data are delayed. Then it either transmits nothing for a while, or is reset at once.
type proxy struct {
	to       string
	listener net.Listener
	mu       sync.Mutex
	random   *rand.Rand

	dropped, silenced, delayed atomic.Int64
}

// newProxy starts a proxy on a free port.
func newProxy(to string, seed uint64) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{to: to, listener: l, random: rand.New(rand.NewPCG(seed, 1))}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(conn.(*net.TCPConn))
		}
	}()
	return p, nil
}

// draw returns a random number below n.
func (p *proxy) draw(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.random.IntN(n)
}

// serve forwards the bytes of one connection.
func (p *proxy) serve(client *net.TCPConn) {
	defer client.Close()
	dialed, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	server := dialed.(*net.TCPConn)
	defer server.Close()
	var silent atomic.Bool
	ended := make(chan struct{}, 2)
	pass := func(to, from *net.TCPConn) {
		defer func() { ended <- struct{}{} }()
		b := make([]byte, 32<<10)
		for {
			n, err := from.Read(b)
			if p.draw(200) == 0 {
				p.delayed.Add(1)
				time.Sleep(time.Duration(p.draw(400)) * time.Millisecond)
			}
			for silent.Load() { // neither sends nor closes
				if _, err := to.Write(nil); err != nil {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
			if _, failed := to.Write(b[:n]); err != nil || failed != nil {
				return
			}
		}
	}
	go pass(client, server)
	go pass(server, client)
	select {
	case <-ended:
		return
	case <-time.After(time.Duration(1000+p.draw(8000)) * time.Millisecond):
	}
	if p.draw(3) == 0 {
		p.silenced.Add(1)
		silent.Store(true)
		time.Sleep(time.Duration(p.draw(4000)) * time.Millisecond)
	}
	p.dropped.Add(1)
	_ = client.SetLinger(0)
	_ = server.SetLinger(0)
	silent.Store(false)
}

// URL returns the address for the worker.
func (p *proxy) URL() string { return "nats://" + p.listener.Addr().String() }

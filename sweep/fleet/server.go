package fleet

import (
	"crypto/subtle"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"tessera/train/folder"
)

// mostConnections bounds the connections to the server of a sweep.
const mostConnections = 1024

// startTime bounds how long the server may take to read its store and to listen.
const startTime = time.Minute

// listen starts a NATS server with its store in a folder. inside is the token of connections of this process.
func listen(address, dir string, access Access, inside string, log func(string)) (*server.Server, error) {
	host, port, err := hostPort(address)
	if err != nil {
		return nil, err
	}
	if err := free(host, port); err != nil { // the server would only log it
		return nil, err
	}
	o := &server.Options{ServerName: "tessera", Host: host, Port: port, NoSigs: true, NoLog: true, JetStream: true, StoreDir: filepath.Join(dir, "queue"),
		MaxPayload: mostMessage, MaxConn: mostConnections, PingInterval: 10 * time.Second, MaxPingsOut: 3, NoSystemAccount: true,
		CustomClientAuthentication: &door{inside: inside, token: access.Token, log: log, hosts: map[string]bool{}}}
	if access.Certificate != "" {
		if o.TLSConfig, err = access.serverTLS(); err != nil {
			return nil, err
		}
		o.TLSTimeout, o.TLSVerify = 10, access.Authority != ""
	}
	s, err := server.NewServer(o)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	note := &lastError{}
	s.SetLogger(note, false, false)
	go s.Start()
	if !s.ReadyForConnections(startTime) || !s.JetStreamEnabled() {
		s.Shutdown()
		return nil, note.problem(address, dir)
	}
	return s, nil
}

// free returns an error for an address on which this machine cannot listen.
func free(host string, port int) error {
	probe, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(max(0, port))))
	if err == nil {
		err = probe.Close()
	}
	if err != nil {
		return fmt.Errorf("%w; %w", err, ErrAddress)
	}
	return nil
}

// Check returns an error for options with which no queue can be opened.
func (o Options) Check() error {
	if o.Listen == "" {
		return nil
	}
	host, _, err := hostPort(o.Listen)
	if err == nil && o.Token == "" && !loopback(host) {
		err = fmt.Errorf("listen: %s can be reached by other machines: give --token-file, or listen on 127.0.0.1", o.Listen)
	}
	return err
}

// hostPort splits an address to listen on.
func hostPort(address string) (string, int, error) {
	host, text, err := net.SplitHostPort(address)
	port, bad := strconv.Atoi(text)
	if err != nil || bad != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("listen: got %q, want HOST:PORT, such as 0.0.0.0:4222", address)
	}
	if host == "" {
		host = "0.0.0.0"
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	return host, port, nil
}

// reached is the address by which workers reach a server: one that listens on all addresses has none of these as its own.
func reached(address string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && ip.IsUnspecified() {
		if name, err := os.Hostname(); err == nil {
			return net.JoinHostPort(name, port)
		}
	}
	return address
}

// loopback reports whether only this machine reaches the host.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// door lets in who has the token.
type door struct {
	inside, token string
	log           func(string)

	mu    sync.Mutex
	hosts map[string]bool // of refused connections, at most mostMembers
}

// Check implements [server.Authentication].
func (d *door) Check(c server.ClientAuthentication) bool {
	given := c.GetOpts().Token
	same := func(token string) bool { return subtle.ConstantTimeCompare([]byte(given), []byte(token)) == 1 }
	if same(d.inside) || d.token == "" || same(d.token) {
		return true
	}
	d.refuse(c.RemoteAddress())
	return false
}

// refuse says once per host that a connection was refused.
func (d *door) refuse(from net.Addr) {
	if from == nil { // inside the process
		return
	}
	host, _, err := net.SplitHostPort(from.String())
	d.mu.Lock()
	known := err != nil || d.hosts[host] || len(d.hosts) >= mostMembers
	if !known {
		d.hosts[host] = true
	}
	d.mu.Unlock()
	if !known {
		d.log(fmt.Sprintf("a connection from %s was refused: wrong token, or none", host))
	}
}

// serverTLS is the configuration of the server. With a certificate authority, clients must have a certificate of it.
func (a Access) serverTLS() (*tls.Config, error) {
	c, err := a.clientTLS()
	if err != nil {
		return nil, err
	}
	c.MinVersion = tls.VersionTLS12
	if c.RootCAs != nil {
		c.ClientCAs, c.ClientAuth = c.RootCAs, tls.RequireAndVerifyClientCert
	}
	return c, nil
}

// lastError keeps the first error of the server's log.
type lastError struct {
	mu   sync.Mutex
	text string
}

// Noticef implements [server.Logger].
func (*lastError) Noticef(string, ...any) {}

// Warnf implements [server.Logger].
func (*lastError) Warnf(string, ...any) {}

// Debugf implements [server.Logger].
func (*lastError) Debugf(string, ...any) {}

// Tracef implements [server.Logger].
func (*lastError) Tracef(string, ...any) {}

// Fatalf implements [server.Logger].
func (l *lastError) Fatalf(format string, v ...any) { l.Errorf(format, v...) }

// Errorf implements [server.Logger].
func (l *lastError) Errorf(format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text == "" {
		l.text = fmt.Sprintf(format, v...)
	}
}

// problem is the error of a server that did not start.
func (l *lastError) problem(address, dir string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text == "" {
		l.text = "the server did not start within " + startTime.String()
	}
	return &folder.WriteError{Path: filepath.Join(dir, "queue"), Err: fmt.Errorf("listen on %s: %s", address, l.text)}
}

package fleet

import (
	"bytes"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"tessera/internal/regular"
	"tessera/internal/train/folder"
)

// Access contains the token and the certificates that secure a connection.
type Access struct {
	Token       string
	Certificate string // PEM file with the certificate of the server, or of the client if the server requires one
	Key         string // PEM file with the private key
	Authority   string // PEM file with the certificates that sign those of the other side; "" for those of the system
}

// ReadToken reads the token from the first line of a file.
func ReadToken(path string) (string, error) {
	text, err := regular.ReadFile(path)
	if err != nil {
		return "", err
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	token := strings.TrimSpace(string(line))
	if len(token) < 8 || len(token) > 1024 {
		return "", fmt.Errorf("%s: the token has %d characters (want from 8 to 1024); `(umask 077; openssl rand -hex 16 > %s)` makes one", path, len(token), path)
	}
	return token, nil
}

func (a Access) clientTLS() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if a.Certificate != "" {
		pair, err := keyPair(a.Certificate, a.Key)
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", a.Certificate, a.Key, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	if a.Authority != "" {
		text, err := regular.ReadFile(a.Authority)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s: no certificate in PEM format", a.Authority)
		}
	}
	return c, nil
}

func keyPair(certificate, key string) (tls.Certificate, error) {
	public, err := regular.ReadFile(certificate)
	if err != nil {
		return tls.Certificate{}, err
	}
	private, err := regular.ReadFile(key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(public, private)
}

// Address returns the URL of a server, given as HOST, HOST:PORT, nats://HOST or tls://HOST:PORT. The default port is
// 4222.
func Address(text string) (string, error) {
	if !strings.Contains(text, "://") {
		text = "nats://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Scheme != "nats" && u.Scheme != "tls" || u.Path != "" && u.Path != "/" {
		return "", fmt.Errorf("%q is not the address of a queue (want nats://HOST or nats://HOST:PORT)", text)
	}
	if u.Port() == "" {
		u.Host += ":4222"
	}
	return u.String(), nil
}

// shown returns an address for messages, without the user, the password or the token in its URL.
func shown(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.User == nil {
		return address
	}
	u.User = nil
	return u.String()
}

// options returns the options for every connection. NATS re-establishes lost connections.
func (a Access) options(name string) ([]nats.Option, error) {
	o := []nats.Option{nats.Name("tessera " + name), nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond),
		nats.ReconnectJitter(250*time.Millisecond, 250*time.Millisecond), nats.PingInterval(5 * time.Second), nats.MaxPingsOutstanding(2),
		nats.Timeout(10 * time.Second), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})} // the error is ignored, because the connection is re-established
	if a.Token != "" {
		o = append(o, nats.Token(a.Token))
	}
	if a.Authority != "" || a.Certificate != "" {
		c, err := a.clientTLS()
		if err != nil {
			return nil, err
		}
		o = append(o, nats.Secure(c))
	}
	return o, nil
}

// Refusal is an [ErrRefused] for a connection that would be refused again at every retry.
type Refusal struct {
	Address string
	Reason  Reason
	Problem string
}

// Reason is the cause of a [Refusal].
type Reason int

// The causes of refusals.
const (
	OtherReason   Reason = iota
	BadToken             // the token is wrong or missing
	NoTLS                // this side requires TLS, but the server does not support it
	TLSDemanded          // the server requires TLS, but this side does not use it
	OtherHost            // the server's certificate is for another name
	NotTrusted           // the server's certificate is not signed by the authority, or not valid at this time
	TLSFailed            // other TLS errors; for example, the server requires a client certificate
	NotAQueue            // another program is listening on the address
	NoPersistence        // the server has no JetStream
)

func (r *Refusal) Error() string {
	return shown(r.Address) + ": " + ErrRefused.Error() + ": " + r.Problem
}

func (r *Refusal) Unwrap() error { return ErrRefused }

// refused returns a [*Refusal] if a retry of the connection would fail again, and nil for other errors.
func refused(address string, err error) error {
	if err == nil {
		return nil
	}
	var certificate *tls.CertificateVerificationError
	var name x509.HostnameError
	text := err.Error()
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
	}
	r := &Refusal{Address: address}
	switch {
	case errors.Is(err, nats.ErrAuthorization), has("Authorization Violation", "authorization"):
		r.Reason, r.Problem = BadToken, "wrong token, or none"
	case errors.Is(err, nats.ErrSecureConnWanted):
		r.Reason, r.Problem = NoTLS, "the server has no TLS, which this connection demands"
	case errors.Is(err, nats.ErrSecureConnRequired):
		r.Reason, r.Problem = TLSDemanded, "the server demands TLS"
	case errors.As(err, &name):
		r.Reason, r.Problem = OtherHost, fmt.Sprintf("its certificate is not for %s (but for %s)", name.Host, named(name.Certificate))
	case errors.As(err, &certificate), has("x509:"):
		r.Reason, r.Problem = NotTrusted, "its certificate is not trusted ("+text+")"
	case has("tls:", "certificate required"):
		r.Reason, r.Problem = TLSFailed, "TLS failed ("+text+")"
	case has("protocol exception", "nats: no server info", "expected 'INFO'", "nats: Parser", "wrong proto"):
		r.Reason, r.Problem = NotAQueue, "the program that listens there is not a NATS server ("+text+")"
	default:
		return nil
	}
	return r
}

// named returns the names and addresses in a certificate.
func named(c *x509.Certificate) string {
	names := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 {
		return "no name: it has no subjectAltName"
	}
	return strings.Join(names, ", ")
}

// dial connects to a server. The error is a [*Refusal], or an [ErrNoServer].
func dial(address string, options ...nats.Option) (*nats.Conn, error) {
	conn, err := nats.Connect(address, options...)
	if err == nil {
		return conn, nil
	}
	if why := refused(address, err); why != nil {
		return nil, why
	}
	return nil, absent(address, err)
}

// absent returns the error for a server that has never answered.
func absent(address string, err error) error {
	why := "" // nats.go has a single error for all causes
	if network, ok := errors.AsType[*net.OpError](err); ok {
		why = " (" + network.Err.Error() + ")"
	}
	return fmt.Errorf("%w at %s%s", ErrNoServer, shown(address), why)
}

// mostConnections is the maximum number of connections to the server of a sweep.
const mostConnections = 1024

// startTime is the maximum time that the server may take to read its store and to start listening.
const startTime = time.Minute

// listen starts a NATS server whose store is in the folder dir. inside is the token for connections from this process.
func listen(address, dir string, access Access, inside string, log func(string)) (*server.Server, error) {
	host, port, err := hostPort(address)
	if err != nil {
		return nil, err
	}
	if err := free(host, port); err != nil { // checked here, because the server would only log the error
		return nil, err
	}
	o := &server.Options{ServerName: "tessera", Host: host, Port: port, NoSigs: true, NoLog: true, JetStream: true, StoreDir: filepath.Join(dir, "queue"),
		MaxPayload: mostMessage, MaxConn: mostConnections, PingInterval: 10 * time.Second, MaxPingsOut: 3, NoSystemAccount: true,
		CustomClientAuthentication: &tokenAuth{inside: inside, token: access.Token, log: log, hosts: map[string]bool{}}}
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
	note := &startLog{}
	s.SetLogger(note, false, false)
	go s.Start()
	if !s.ReadyForConnections(startTime) || !s.JetStreamEnabled() {
		s.Shutdown()
		return nil, note.problem(address, dir)
	}
	return s, nil
}

// free returns an error if this machine cannot listen on an address.
func free(host string, port int) error {
	probe, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(max(0, port))))
	if err == nil {
		err = probe.Close()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrAddress, err)
	}
	return nil
}

// Check returns an error for options with which the queue cannot be opened.
func (o Options) Check() error {
	if o.Listen == "" {
		return nil
	}
	host, _, err := hostPort(o.Listen)
	if err == nil && o.Token == "" && !loopback(host) {
		err = fmt.Errorf("listen: %s: %w", o.Listen, ErrNoToken)
	}
	return err
}

// hostPort splits a listening address into host and port.
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

// reached returns the address at which workers can reach a server. If the server listens on all addresses, it contains
// the host name of this machine.
func reached(address string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && ip.IsUnspecified() {
		if name, err := os.Hostname(); err == nil {
			return net.JoinHostPort(name, port)
		}
	}
	return address
}

// loopback reports whether host refers to this machine only.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// tokenAuth accepts clients that present the token.
type tokenAuth struct {
	inside, token string
	log           func(string)

	mu    sync.Mutex
	hosts map[string]bool // hosts of refused connections, at most mostMembers
}

func (a *tokenAuth) Check(c server.ClientAuthentication) bool {
	given := c.GetOpts().Token
	same := func(token string) bool { return subtle.ConstantTimeCompare([]byte(given), []byte(token)) == 1 }
	if same(a.inside) || a.token == "" || same(a.token) {
		return true
	}
	a.refuse(c.RemoteAddress())
	return false
}

// refuse logs, once per host, that a connection was refused.
func (a *tokenAuth) refuse(from net.Addr) {
	if from == nil { // a connection from this process
		return
	}
	host, _, err := net.SplitHostPort(from.String())
	a.mu.Lock()
	known := err != nil || a.hosts[host] || len(a.hosts) >= mostMembers
	if !known {
		a.hosts[host] = true
	}
	a.mu.Unlock()
	if !known {
		a.log(fmt.Sprintf("a connection from %s was refused: wrong token, or none", host))
	}
}

// serverTLS returns the TLS configuration of the server. With a certificate authority, clients must present a
// certificate that it has signed.
func (a Access) serverTLS() (*tls.Config, error) {
	c, err := a.clientTLS()
	if err != nil {
		return nil, err
	}
	if c.RootCAs != nil {
		c.ClientCAs, c.ClientAuth = c.RootCAs, tls.RequireAndVerifyClientCert
	}
	return c, nil
}

// startLog is a logger that stores the first error of the server.
type startLog struct {
	mu   sync.Mutex
	text string
}

func (*startLog) Noticef(string, ...any) {}

func (*startLog) Warnf(string, ...any) {}

func (*startLog) Debugf(string, ...any) {}

func (*startLog) Tracef(string, ...any) {}

func (l *startLog) Fatalf(format string, v ...any) { l.Errorf(format, v...) }

func (l *startLog) Errorf(format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text == "" {
		l.text = fmt.Sprintf(format, v...)
	}
}

// problem returns the error for a server that did not start.
func (l *startLog) problem(address, dir string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text == "" {
		l.text = "the server did not start within " + startTime.String()
	}
	return &folder.WriteError{Path: filepath.Join(dir, "queue"), Err: fmt.Errorf("listen on %s: %s", address, l.text)}
}

package fleet

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Access is what a connection needs beside its address.
type Access struct {
	Token       string
	Certificate string // file, PEM; of the server, or of the client where the server wants one
	Key         string // file, PEM
	Authority   string // file, PEM: certificates that sign those of the other side; "": those of the system
}

// ReadToken reads the token from the first line of a file.
func ReadToken(path string) (string, error) {
	text, err := os.ReadFile(path)
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

// clientTLS is the configuration of a client.
func (a Access) clientTLS() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if a.Certificate != "" {
		pair, err := tls.LoadX509KeyPair(a.Certificate, a.Key)
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", a.Certificate, a.Key, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	if a.Authority != "" {
		text, err := os.ReadFile(a.Authority)
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

// Address returns the URL of a server for HOST, HOST:PORT, nats://HOST or tls://HOST:PORT; the port is 4222 by default.
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

// shown is an address for messages: without the user, password or token that a URL may have.
func shown(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.User == nil {
		return address
	}
	u.User = nil
	return u.String()
}

// options are those of every connection: it is made again as often as it is lost.
func (a Access) options(name string) ([]nats.Option, error) {
	o := []nats.Option{nats.Name("tessera " + name), nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond),
		nats.ReconnectJitter(250*time.Millisecond, 250*time.Millisecond), nats.PingInterval(5 * time.Second), nats.MaxPingsOutstanding(2),
		nats.Timeout(10 * time.Second), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})} // the connection is made again
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

// refused turns the error of a connection that would be refused again into an [ErrRefused] that says what to do; nil for
// other errors.
func (a Access) refused(address string, err error) error {
	var certificate *tls.CertificateVerificationError
	var name x509.HostnameError
	say := func(problem string) error { return fmt.Errorf("%s: %w: %s", shown(address), ErrRefused, problem) }
	text := ""
	if err != nil {
		text = err.Error()
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, nats.ErrAuthorization), strings.Contains(text, "Authorization Violation"), strings.Contains(text, "authorization"):
		return say("wrong token, or none; give the coordinator's --token-file")
	case errors.Is(err, nats.ErrSecureConnWanted):
		return say("the server has no TLS, which this command demands; start the coordinator with --tls-cert and --tls-key")
	case errors.Is(err, nats.ErrSecureConnRequired):
		return say("the server demands TLS; give --tls-ca")
	case errors.As(err, &name):
		return say(fmt.Sprintf("its certificate is not for %s; connect by a name or address that the certificate has (%s)", name.Host, named(name.Certificate)))
	case errors.As(err, &certificate) && a.Authority != "", strings.Contains(text, "x509:") && a.Authority != "":
		return say("its certificate is not trusted (" + text + "); give the --tls-ca that signed it, and check the clock of this machine if the certificate seems to have expired")
	case errors.As(err, &certificate), strings.Contains(text, "x509:"):
		return say("its certificate is not trusted (" + text + "); give --tls-ca, and check the clock of this machine if the certificate seems to have expired")
	case strings.Contains(text, "tls:"), strings.Contains(text, "certificate required"):
		return say("TLS failed (" + text + "); give --tls-ca, and --tls-cert and --tls-key if the server wants a certificate")
	case strings.Contains(text, "protocol exception"), strings.Contains(text, "nats: no server info"), strings.Contains(text, "expected 'INFO'"), strings.Contains(text, "nats: Parser"), strings.Contains(text, "wrong proto"):
		return say("what listens there is not a NATS server (" + text + ")")
	}
	return nil
}

// named are the names and addresses of a certificate.
func named(c *x509.Certificate) string {
	names := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 {
		return "none; make one with a subjectAltName"
	}
	return strings.Join(names, ", ")
}

// absent is the error of a server that has never answered.
func absent(address string, err error) error {
	var network *net.OpError
	why := "" // nats.go has one error for all causes
	if errors.As(err, &network) {
		why = " (" + network.Err.Error() + ")"
	}
	return fmt.Errorf("%w at %s%s; start the server or `tessera sweep NAME --listen`, and check address and firewall", ErrNoServer, shown(address), why)
}

package serve

import (
	"crypto/tls"
	"fmt"
	"sync/atomic"
)

// Certificate is a TLS certificate with its key. A server reads the files again when they change.
type Certificate struct {
	pair  atomic.Pointer[tls.Certificate]
	files files
}

// ReadCertificate reads a certificate, or a chain of them, and its key, both in PEM.
func ReadCertificate(certificate, key string) (*Certificate, error) {
	c := &Certificate{files: newFiles(certificate, key)}
	if err := c.read(); err != nil {
		return nil, err
	}
	return c, nil
}

// read reads the files. A certificate whose key has not been written yet is an error; the key changes then, too.
func (c *Certificate) read() error {
	pair, err := tls.LoadX509KeyPair(c.files.paths[0], c.files.paths[1])
	if err != nil {
		return fmt.Errorf("%s: %w", c.files.paths[0], err)
	}
	c.pair.Store(&pair)
	return nil
}

// secured returns the TLS configuration of the server, nil without TLS. New connections get the certificate that was read last.
func (o *Options) secured() *tls.Config {
	if o.Certificate == nil {
		return o.TLS
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.TLS != nil {
		config = o.TLS.Clone()
	}
	config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return o.Certificate.pair.Load(), nil }
	return config
}

package fleet

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// served starts a coordinator that runs no trials itself, so that the sweep never ends by itself. The returned function
// stops it.
func served(t *testing.T, o Options) (*bench, func()) {
	ctx, stop := context.WithCancel(context.Background())
	b := newBench(t, declared, filepath.Join(t.TempDir(), "s"), o)
	ended := b.run(ctx)
	return b, func() {
		stop()
		<-ended
		b.workers.Wait()
	}
}

// refusedWith fails the test unless the worker is refused with an error that contains a text.
func (b *bench) refusedWith(o WorkerOptions, text string) {
	b.Helper()
	o.Wait = 10 * time.Minute
	select {
	case err := <-b.worker(context.Background(), o):
		expect.Is(b, err, ErrRefused)
		expect.Error(b, err, text)
	case <-time.After(10 * time.Minute):
		b.Errorf("a worker was not refused with %q; the log:\n%s", text, strings.Join(b.lines, "\n"))
	}
}

func TestAWrongTokenIsRefused(t *testing.T) {
	b, stop := served(t, Options{Access: Access{Token: "the right one"}})
	defer stop()
	b.refusedWith(WorkerOptions{Access: Access{Token: "another one"}}, "wrong token")
	b.refusedWith(WorkerOptions{}, "wrong token, or none")
	if !b.said("a connection from 127.0.0.1 was refused: wrong token, or none") {
		t.Errorf("the coordinator has not logged the refusal: %q", b.lines)
	}
}

func TestAWorkerOfWhichNothingIsHeardIsReportedOnce(t *testing.T) {
	b := &bench{TB: t}
	c := NewCoordinator(Options{Log: b.log})
	c.names = names{newID()}
	h := self(1)
	c.admit(&h)
	c.reportAbsent()
	if b.said("is lost") {
		t.Errorf("a worker that is there is lost: %q", b.lines)
	}
	c.workers[h.ID].seen = time.Now().Add(-2 * absentAfter)
	c.reportAbsent()
	c.reportAbsent()
	c.admit(&h)
	if got := strings.Join(b.lines, "\n"); strings.Count(got, "is lost") != 1 || strings.Count(got, "has joined") != 2 {
		t.Errorf("got %s", got)
	}
}

func TestAQueueForOtherMachinesNeedsAToken(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "192.168.1.1:4222", "[::]:0"} {
		expect.Is(t, (Options{Listen: address}).Check(), ErrNoToken, address)
	}
	for _, address := range []string{"here", "127.0.0.1:port", "127.0.0.1:70000"} {
		expect.Error(t, (Options{Listen: address}).Check(), "HOST:PORT", address)
	}
	expect.NoError(t, (Options{Listen: "127.0.0.1:0"}).Check())
}

func TestAWorkerOfAnotherVersionIsRefused(t *testing.T) {
	b, stop := served(t, Options{})
	defer stop()
	conn, err := nats.Connect(b.address())
	fatal.If(t, err)
	defer conn.Close()
	for sent, want := range map[string]string{
		`{"protocol":1,"version":"0.1.0","id":"0123456789abcdef","name":"old","cpu":"","kernels":"","cores":1}`: `tessera \"0.1.0\"`,
		`{"version":"9.0","name":"new","what":{}}`:                                                              "install the same version",
		"garbage": "not a message of this version",
	} {
		m, err := conn.Request(helloSubject, []byte(sent), 10*time.Minute)
		fatal.If(t, err)
		var w welcome
		if err := decode(m.Data, &w); err != nil || w.Refused == "" || !strings.Contains(string(m.Data), want) {
			t.Errorf("%s: got %s (%v), want a refusal with %s", sent, m.Data, err, want)
		}
	}
}

func TestOtherKernelsAreRefusedOrWarnedAbout(t *testing.T) {
	h := self(1)
	other := h
	other.ID, other.Kernels, other.Name = newID(), "of another CPU", "other"
	for _, same := range []bool{true, false} {
		b := &bench{TB: t}
		c := NewCoordinator(Options{SameKernels: same, Log: b.log})
		c.names = names{newID()}
		expect.Equal(t, c.admit(&h).Refused, "", "the first worker is refused")
		w := c.admit(&other)
		expect.Equal(t, strings.Contains(w.Refused, "of another CPU"), same, "same kernels", w.Refused)
		if warned := b.said("different kernels"); warned == same {
			t.Errorf("same kernels %v: warned %v", same, warned)
		}
	}
	c := NewCoordinator(Options{SameKernels: true, Jobs: 1})
	c.names = names{newID()}
	if w := c.admit(&other); w.Refused == "" {
		t.Error("a worker that says hello first has other kernels than the coordinator, which trains too")
	}
}

func TestGarbageOnThePortChangesNothing(t *testing.T) {
	b, stop := served(t, Options{})
	defer stop()
	for _, garbage := range []string{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", strings.Repeat("\x00\xff", 1<<16), "CONNECT {\r\nPUB a 99999999999\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"} {
		conn, err := net.Dial("tcp", b.coordinator.server.Addr().String())
		fatal.If(t, err)
		_, _ = conn.Write([]byte(garbage)) // the error is ignored, because the server may close the connection at once
		_ = conn.(*net.TCPConn).CloseWrite()
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Minute))
		answer := make([]byte, 1<<16)
		for n, err := 0, error(nil); err == nil; n, err = conn.Read(answer) {
			_ = n
		}
		_ = conn.Close()
	}
	conn, err := nats.Connect(b.address())
	fatal.If(t, err)
	defer conn.Close()
	for _, subject := range []string{"result.0123456789abcdef", "hello", "need", "control"} { // a client with the token can send anything
		fatal.If(t, conn.Publish(b.coordinator.names.subject(subject), []byte("{garbage")))
	}
	ctx, leave := context.WithCancel(context.Background())
	b.worker(ctx, WorkerOptions{})
	b.until("a trial is done", func() bool { return b.said(": done") })
	leave()
}

// certificate writes a self-signed certificate for 127.0.0.1 and its key.
func certificate(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	fatal.If(t, err)
	about := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	signed, err := x509.CreateCertificate(rand.Reader, about, about, &private.PublicKey, private)
	fatal.If(t, err)
	secret, err := x509.MarshalECPrivateKey(private)
	fatal.If(t, err)
	dir := t.TempDir()
	certificate, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{certificate: {Type: "CERTIFICATE", Bytes: signed}, key: {Type: "EC PRIVATE KEY", Bytes: secret}} {
		fatal.If(t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
	}
	return certificate, key
}

func TestWhereTLSIsDemandedNothingElseIsAccepted(t *testing.T) {
	cert, key := certificate(t)
	b, stop := served(t, Options{Access: Access{Certificate: cert, Key: key}})
	defer stop()
	b.refusedWith(WorkerOptions{}, "its certificate is not trusted")
	other, _ := certificate(t)
	b.refusedWith(WorkerOptions{Access: Access{Authority: other}}, "certificate is not trusted")
	ctx, leave := context.WithCancel(context.Background())
	b.worker(ctx, WorkerOptions{Access: Access{Authority: cert}})
	b.until("a trial is done", func() bool { return b.said(": done") })
	leave()

	plain, end := served(t, Options{})
	defer end()
	plain.refusedWith(WorkerOptions{Access: Access{Authority: cert}}, "the server has no TLS")
}

func TestAServerThatWantsCertificatesRefusesAWorkerWithoutOne(t *testing.T) {
	cert, key := certificate(t)
	b, stop := served(t, Options{Access: Access{Certificate: cert, Key: key, Authority: cert}})
	defer stop()
	b.refusedWith(WorkerOptions{Access: Access{Authority: cert}}, "certificate")
}

func TestWhatIsNotAQueueIsRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	fatal.If(t, err)
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("SSH-2.0-OpenSSH_9.2\r\n"))
			_ = conn.Close()
		}
	}()
	b := &bench{TB: t}
	b.refusedWith(WorkerOptions{URL: "nats://" + l.Addr().String()}, "not a NATS server")
	for _, bad := range []string{"", "http://x", "nats://", "nats://h/path", "a b"} {
		if got, err := Address(bad); err == nil {
			t.Errorf("%q is the address %s", bad, got)
		}
	}
	if got, err := Address("host"); err != nil || got != "nats://host:4222" {
		t.Errorf("got %s, %v", got, err)
	}
}

package serve

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// listening serves on a port of this machine until stop is called. stop returns the result of Serve.
func listening(t testing.TB, s *Server) (address string, stop func() error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	fatal.If(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	stop = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() { _ = stop() })
	return l.Addr().String(), stop
}

// load posts the body from n clients until stop is closed. It counts the responses by status; status 0 counts errors of the
// connection.
func load(n int, url string, body []byte, client *http.Client, stop <-chan struct{}) (answers [600]int64) {
	var wait sync.WaitGroup
	for range n {
		wait.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				status := 0
				r, err := client.Post(url, "application/json", bytes.NewReader(body))
				if err == nil {
					if _, err = io.Copy(io.Discard, r.Body); err == nil {
						status = r.StatusCode
					}
					r.Body.Close()
				}
				atomic.AddInt64(&answers[status], 1)
				if status == 0 {
					return
				}
			}
		})
	}
	wait.Wait()
	return answers
}

// clientOf returns an HTTP client with up to n connections.
func clientOf(n int) *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: n}}
}

// counted is a handler that counts started and completed requests.
type counted struct {
	http.Handler
	began, ended atomic.Int64
}

func (c *counted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.began.Add(1)
	c.Handler.ServeHTTP(w, r)
	c.ended.Add(1)
}

func TestNoAcceptedRequestIsLostWhenTheServerEnds(t *testing.T) {
	s := newServer(t, Options{DrainDelay: 100 * time.Millisecond})
	c := &counted{Handler: s.handler}
	s.handler = c
	address, stop := listening(t, s)
	over := make(chan struct{})
	done := make(chan [600]int64, 1)
	client := clientOf(8)
	go func() {
		done <- load(8, "http://"+address+"/v2/models/small/infer", jsonRequest(images(2, 1), ""), client, over)
	}()
	for c.began.Load() < 200 {
		time.Sleep(time.Millisecond)
	}
	expect.NoError(t, stop())
	close(over)
	answers := <-done
	expect.Equal(t, answers[200], c.began.Load())
	expect.Equal(t, c.began.Load(), c.ended.Load())
	expect.Equal(t, send(s, "GET", "/v2/health/ready", nil).status, http.StatusServiceUnavailable, "a server that ends is ready")
	if a := post(s, "/v2/models/small/infer", jsonRequest(images(1, 1), "")); a.header.Get("Connection") != "close" {
		t.Errorf("clients are not asked to leave: %v", a.header)
	}
}

func TestAReloadUnderLoadFailsNoRequest(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	trainRun(t, folder, fmt.Sprintf(text, 2))
	other := filepath.Join(t.TempDir(), "run")
	trainRun(t, other, strings.Replace(fmt.Sprintf(text, 3), "units = 3", "units = 4", 1))
	var mu sync.Mutex
	var logged []string
	s, err := New([]Model{{Folder: folder}}, Options{Workers: 1, Reload: 2 * time.Millisecond, Log: func(text string) {
		mu.Lock()
		defer mu.Unlock()
		logged = append(logged, text)
	}})
	fatal.If(t, err)
	defer s.Close()
	asked := &counted{Handler: s.handler}
	s.handler = asked
	address, _ := listening(t, s)
	url := "http://" + address + "/v2/models/run"
	over := make(chan struct{})
	done := make(chan [600]int64, 1)
	go func() { done <- load(4, url+"/infer", jsonRequest(images(1, 1), ""), clientOf(4), over) }()
	first := version(t, url)
	replace(t, other, folder)
	waitFor(t, func() bool { return version(t, url) != first })
	second := version(t, url)
	expect.Equal(t, len(post(s, "/v2/models/run/infer", jsonRequest(images(1, 1), `,"outputs":[{"name":"side"}]`)).reply(t).Outputs[0].Data), 4, "the head of the other run has 4 values")
	refused := func() (n int) {
		mu.Lock()
		defer mu.Unlock()
		for _, line := range logged {
			if strings.Contains(line, "the former one is used") {
				n++
			}
		}
		return n
	}
	before := refused()
	fatal.If(t, os.WriteFile(filepath.Join(folder, "model.safetensors"), []byte("damaged"), 0o600))
	waitFor(t, func() bool { return refused() > before && asked.ended.Load() > 20 })
	expect.Equal(t, version(t, url), second, "a damaged run replaced the one before it")
	before = refused()
	longer := filepath.Join(t.TempDir(), "run") // a run with further epochs
	fatal.If(t, os.CopyFS(longer, os.DirFS(other)))
	declared, err := os.ReadFile(filepath.Join(longer, "config.toml"))
	fatal.If(t, err)
	fatal.If(t, os.WriteFile(filepath.Join(longer, "config.toml"), regexp.MustCompile(`epochs( *)= 1`).ReplaceAll(declared, []byte("epochs = 9")), 0o600))
	if !unfinished(longer) || unfinished(other) {
		t.Fatalf("unfinished: %v and %v", unfinished(longer), unfinished(other))
	}
	replace(t, longer, folder)
	waitFor(t, func() bool { return refused() > before })
	expect.Equal(t, version(t, url), second, "a training that has not ended replaced the run before it")
	close(over)
	answers := <-done
	for status, n := range answers {
		if n > 0 && status != http.StatusOK {
			t.Errorf("%d requests ended with status %d", n, status)
		}
	}
	if answers[200] < 10 {
		t.Errorf("only %d requests", answers[200])
	}
}

// version requests the version of a model.
func version(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Get(url)
	fatal.If(t, err)
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	fatal.If(t, err)
	_, after, _ := strings.Cut(string(b), `"versions":["`)
	before, _, _ := strings.Cut(after, `"`)
	return before
}

// replace replaces the files of a run as a training does: it writes temporary files and renames them.
func replace(t *testing.T, from, to string) {
	t.Helper()
	for _, name := range []string{"config.toml", "state.safetensors", "model.safetensors"} {
		b, err := os.ReadFile(filepath.Join(from, name))
		fatal.If(t, err)
		fatal.If(t, os.WriteFile(filepath.Join(to, name+".tmp"), b, 0o600))
		fatal.If(t, os.Rename(filepath.Join(to, name+".tmp"), filepath.Join(to, name)))
	}
}

// waitFor waits until a condition holds. If it never holds, the timeout of the test ends the wait.
func waitFor(t *testing.T, holds func() bool) {
	t.Helper()
	for !holds() {
		time.Sleep(time.Millisecond)
	}
}

func TestServingWithTLS(t *testing.T) {
	borrowed := httptest.NewUnstartedServer(nil)
	borrowed.StartTLS()
	defer borrowed.Close()
	s := newServer(t, Options{TLS: &tls.Config{Certificates: borrowed.TLS.Certificates}})
	address, _ := listening(t, s)
	r, err := borrowed.Client().Get("https://" + address + "/v2/health/ready")
	fatal.If(t, err)
	r.Body.Close()
	expect.Equal(t, r.StatusCode, http.StatusOK, "status")
	if r, err := http.Get("https://" + address + "/v2"); err == nil {
		r.Body.Close()
		t.Error("a client that does not know the certificate is served")
	}
}

// pemPair writes a new certificate for 127.0.0.1 and its key.
func pemPair(t *testing.T, certificate, key string, serial int64) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	fatal.If(t, err)
	form := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	signed, err := x509.CreateCertificate(rand.Reader, form, form, private.Public(), private)
	fatal.If(t, err)
	der, err := x509.MarshalECPrivateKey(private)
	fatal.If(t, err)
	rewrite(t, certificate, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})))
	rewrite(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})))
}

func TestACertificateIsReadAgainWhenItChanges(t *testing.T) {
	folder := t.TempDir()
	file, key := filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	expect.AnyError(t, expect.Err(ReadCertificate(file, key)), "missing files")
	pemPair(t, file, key, 1)
	c, err := ReadCertificate(file, key)
	fatal.If(t, err)
	s := newServer(t, Options{Certificate: c, Reload: -1})
	address, _ := listening(t, s)
	serial := func() int64 {
		conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
		fatal.If(t, err)
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	expect.Equal(t, serial(), 1, "serial number")
	pemPair(t, file, key, 300) // a longer one, so that the size changes with the time
	s.refresh()
	expect.Equal(t, serial(), 300, "serial number")
	rewrite(t, key, "no key")
	s.refresh()
	expect.Equal(t, serial(), 300, "serial number")
}

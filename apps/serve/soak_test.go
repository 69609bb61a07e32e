package serve

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tessera/internal/expect"
	"tessera/internal/lists"
)

var (
	soak     = flag.Duration("soak", 700*time.Millisecond, "how long the soak test runs; make serve-soak takes 10 minutes")
	soakSeed = flag.Uint64("soak-seed", 1, "the seed of its faults")
)

// soakRead is the read timeout of the server of the soak test. On a machine with other work a client may be slower: the server then rightly
// cuts its connection, and the client asks again.
const soakRead = 2 * time.Second

// fault is a faulty client. It returns an error if the server does not respond correctly.
type fault struct {
	name string
	do   func(address string, r *rand.Rand) error
}

// dialled opens a connection and calls f with it.
func dialled(address string, f func(c net.Conn) error) error {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Minute))
	return f(c)
}

// answered sends bytes and returns an error unless the status of the response is one of those given; -1 is a closed
// connection.
func answered(address string, request []byte, statuses ...int) error {
	return dialled(address, func(c net.Conn) error {
		go func() { _, _ = c.Write(request) }() // the server may answer before it has read everything
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		got := -1
		if err == nil {
			got = r.StatusCode
			_, _ = io.Copy(io.Discard, r.Body)
			r.Body.Close()
		}
		for _, want := range statuses {
			if got == want {
				return nil
			}
		}
		return fmt.Errorf("got status %d, want %v", got, statuses)
	})
}

// postText returns the text of a POST request.
func postText(path, headers string, length int, body []byte) []byte {
	return append(fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%sContent-Length: %d\r\n\r\n", path, headers, length), body...)
}

const inferPath = "/v2/models/small/infer"

// faults lists the faulty clients.
func faults() []fault {
	good := jsonRequest(images(1, 9), "")
	return []fault{
		{"stalls in the header", func(a string, _ *rand.Rand) error {
			return dialled(a, func(c net.Conn) error {
				_, _ = c.Write([]byte("POST /v2 HTTP/1.1\r\nHost"))
				return closes(c)
			})
		}},
		{"stalls in the body", func(a string, r *rand.Rand) error {
			return answered(a, postText(inferPath, "", len(good), good[:r.IntN(len(good))]), 400, -1)
		}},
		{"cuts the connection in the body", func(a string, r *rand.Rand) error {
			return dialled(a, func(c net.Conn) error {
				_, err := c.Write(postText(inferPath, "", len(good), good[:r.IntN(len(good))]))
				return err
			})
		}},
		{"leaves before the answer", func(a string, _ *rand.Rand) error {
			return dialled(a, func(c net.Conn) error {
				_, err := c.Write(postText(inferPath, "", len(good), good))
				return err
			})
		}},
		{"sends a header without end", func(a string, _ *rand.Rand) error { return endless(a) }},
		{"claims a body of 2 GB", func(a string, _ *rand.Rand) error { return answered(a, postText(inferPath, "", 2<<30, good), 413) }},
		{"sends a wrong shape", func(a string, _ *rand.Rand) error {
			wrong := bytes.Replace(good, []byte("[1,8,8]"), []byte("[3,8,8]"), 1)
			return answered(a, postText(inferPath, "", len(wrong), wrong), 400)
		}},
		{"sends NaN", func(a string, _ *rand.Rand) error {
			body, header := binaryRequest(images(1, 9), "")
			copy(body[len(body)-4:], []byte{0, 0, 0xc0, 0x7f})
			return answered(a, postText(inferPath, headerLength+": "+header+"\r\n", len(body), body), 400)
		}},
		{"asks for an unknown model", func(a string, _ *rand.Rand) error {
			return answered(a, postText("/v2/models/none/infer", "", len(good), good), 404)
		}},
		{"sends garbage", func(a string, r *rand.Rand) error {
			garbage := lists.Of(1+r.IntN(2000), func(int) byte { return byte(r.Uint32()) })
			return answered(a, postText(inferPath, "", len(garbage), garbage), 400)
		}},
		{"does not speak HTTP", func(a string, r *rand.Rand) error {
			return answered(a, []byte("\x16\x03\x01\x02\x00 hello\r\n\r\n"), 400, -1)
		}},
		{"sends several requests at once", func(a string, _ *rand.Rand) error {
			one := bytes.Replace(postText(inferPath, "", len(good), good), []byte("Connection: close\r\n"), nil, 1)
			return answered(a, append(one, one...), 200)
		}},
	}
}

// closes returns an error unless the server closes the connection, with or without a response.
func closes(c net.Conn) error {
	_, err := io.Copy(io.Discard, c)
	if e, ok := err.(net.Error); ok && e.Timeout() {
		return fmt.Errorf("the connection stays open: %w", err)
	}
	return nil
}

// endless sends a header of up to 2 GB until the server rejects it.
func endless(address string) error {
	return dialled(address, func(c net.Conn) error {
		_, _ = c.Write([]byte("GET /v2 HTTP/1.1\r\nHost: localhost\r\n"))
		line := append(append([]byte("X: "), bytes.Repeat([]byte("a"), 1<<16)...), "\r\n"...)
		sent := 0
		for ; sent < 2<<30; sent += len(line) {
			if _, err := c.Write(line); err != nil {
				break
			}
		}
		if sent > 64<<20 {
			return fmt.Errorf("the server read %d bytes of header", sent)
		}
		return nil
	})
}

// While many clients and every faulty client use the server, it answers every correct request with the right values. At the
// end it uses as much memory as before.
func TestSoak(t *testing.T) {
	s := newServer(t, Options{Workers: 2, ReadTimeout: soakRead, DrainDelay: 50 * time.Millisecond, MaxWait: 100 * time.Microsecond})
	address, stop := listening(t, s)
	end := time.Now().Add(*soak)
	var wait sync.WaitGroup
	var proper, faulty atomic.Int64
	for g := range 4 {
		wait.Go(func() { properClient(t, address, uint64(g), end, &proper) })
	}
	for i, f := range faults() {
		wait.Go(func() {
			r := rand.New(rand.NewPCG(*soakSeed, uint64(i)))
			for done := 0; done == 0 || time.Now().Before(end); {
				began := time.Now()
				if err := f.do(address, r); err != nil {
					if time.Since(began) > soakRead {
						continue
					}
					t.Errorf("a client %s: %v", f.name, err)
					return
				}
				done++
				faulty.Add(1)
				time.Sleep(time.Duration(r.IntN(5)) * time.Millisecond)
			}
		})
	}
	wait.Go(func() { logMemory(t, end, &proper) })
	wait.Wait()
	expect.NoError(t, stop())
	expect.Equal(t, s.memory.Load(), 0)
	expect.Equal(t, s.models[0].current.outputs[0].batch.waiting.Load(), 0)
	t.Logf("%v: %d proper requests, %d faults", *soak, proper.Load(), faulty.Load())
}

// properClient compares the codes of each response with those of the first response.
func properClient(t *testing.T, address string, g uint64, end time.Time, count *atomic.Int64) {
	x := images(1+int(g), g)
	want := valuesOf(t, "code", x)
	client := clientOf(1)
	defer client.CloseIdleConnections()
	body, header := binaryRequest(x, `,"outputs":[{"name":"code","parameters":{"binary_data":true}}]`)
	for done, last := 0, time.Now(); done == 0 || time.Now().Before(end); {
		q, err := http.NewRequest(http.MethodPost, "http://"+address+inferPath, bytes.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		q.Header.Set(headerLength, header)
		var b []byte
		r, err := client.Do(q)
		if err == nil {
			b, err = io.ReadAll(r.Body)
			r.Body.Close()
		}
		slow := time.Since(last) > soakRead
		last = time.Now()
		if err != nil || r.StatusCode != http.StatusOK || len(b) < 4*len(want) || !sameBits(fromBinary(nil, b[len(b)-4*len(want):], typeFP32), want) {
			if slow {
				continue
			}
			t.Errorf("got %v: %.200s", err, b)
			return
		}
		done++
		count.Add(1)
	}
}

// logMemory logs the memory of the process about ten times.
func logMemory(t *testing.T, end time.Time, proper *atomic.Int64) {
	if *soak < time.Minute {
		return
	}
	for every := *soak / 10; time.Now().Before(end); time.Sleep(every) {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		t.Logf("%s: %d requests, heap %d KiB, from the system %d KiB, resident %s, %d goroutines", time.Now().Format(time.TimeOnly), proper.Load(),
			m.HeapAlloc>>10, m.Sys>>10, resident(), runtime.NumGoroutine())
	}
}

// resident returns the resident memory of the process as a text, if the system reports it.
func resident() string {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "unknown"
	}
	for line := range bytes.Lines(b) {
		if rest, found := bytes.CutPrefix(line, []byte("VmRSS:")); found {
			return string(bytes.TrimSpace(rest))
		}
	}
	return "unknown"
}

package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"time"
)

// pixels are those of one image.
const pixels = 28 * 28

// request is an inference request of one image, for its code.
func (s *settings) request(host, path string) []byte {
	r := rand.New(rand.NewPCG(1, 1))
	image := make([]float32, pixels)
	for i := range image {
		image[i] = float32(r.IntN(256)) / 255
	}
	var head, data []byte
	if s.encoding == "json" {
		head = append(head, `{"inputs":[{"name":"input","shape":[1,28,28],"datatype":"FP32","data":[`...)
		for i, v := range image {
			if i > 0 {
				head = append(head, ',')
			}
			head = strconv.AppendFloat(head, float64(v), 'f', -1, 32)
		}
		head = append(head, `]}],"outputs":[{"name":"code"}]}`...)
	} else {
		head = fmt.Appendf(head, `{"inputs":[{"name":"input","shape":[1,28,28],"datatype":"FP32","parameters":{"binary_data_size":%d}}],`+
			`"outputs":[{"name":"code","parameters":{"binary_data":true}}]}`, 4*pixels)
		for _, v := range image {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
		}
	}
	text := fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n", path, host, len(head)+len(data))
	if data != nil {
		text = fmt.Appendf(text, "Inference-Header-Content-Length: %d\r\n", len(head))
	}
	return append(append(append(text, "\r\n"...), head...), data...)
}

// connection is one keep-alive connection. It reads just enough of HTTP to leave the CPU to the server.
type connection struct {
	net.Conn
	in *bufio.Reader
}

// exchange sends a request and reads its response.
func (c *connection) exchange(request []byte) error {
	if _, err := c.Write(request); err != nil {
		return err
	}
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(line, []byte("HTTP/1.1 200")) {
		return fmt.Errorf("got %q", line)
	}
	length := -1
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) <= 2 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(": "))
		if bytes.EqualFold(name, []byte("Content-Length")) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return err
			}
		}
	}
	if length < 0 {
		return errors.New("a response without Content-Length")
	}
	_, err = c.in.Discard(length)
	return err
}

// load runs n connections. Each calls next for the moment at which its request number i is due; false ends it. The latency of
// a request counts from that moment: a request that had to wait for the one before it is as late as its client would find it.
func (v *server) load(n int, next func(connection, i int) (due time.Time, ok bool)) (result, error) {
	before, err := v.cpu()
	if err != nil {
		return result{}, err
	}
	began := time.Now()
	latencies, errs := make([][]time.Duration, n), make([]error, n)
	var wait sync.WaitGroup
	for k := range n {
		wait.Go(func() {
			socket, err := net.Dial("tcp", v.address)
			if err != nil {
				errs[k] = err
				return
			}
			defer socket.Close()
			c := &connection{socket, bufio.NewReaderSize(socket, 16<<10)}
			for i := 0; ; i++ {
				due, ok := next(k, i)
				if !ok {
					return
				}
				time.Sleep(time.Until(due))
				if err := c.exchange(v.sent); err != nil {
					if errors.Is(err, io.EOF) {
						err = errors.New("the server closed the connection")
					}
					errs[k] = err
					return
				}
				latencies[k] = append(latencies[k], time.Since(due))
			}
		})
	}
	wait.Wait()
	r := result{length: time.Since(began)}
	after, err := v.cpu()
	r.cpu = after - before
	for _, l := range latencies {
		r.latencies = append(r.latencies, l...)
	}
	if len(r.latencies) == 0 {
		err = errors.Join(err, errors.New("no request was answered"))
	}
	return r, errors.Join(append(errs, err)...)
}

// closedLoop sends the next request of a connection when the one before it is answered.
func (v *server) closedLoop(connections int, length time.Duration) (result, error) {
	end := time.Now().Add(length)
	return v.load(connections, func(_, _ int) (time.Time, bool) {
		now := time.Now()
		return now, now.Before(end)
	})
}

// fixedRate sends requests at a rate, spread evenly over the connections, whether or not the ones before are answered.
func (v *server) fixedRate(connections int, rate float64, length time.Duration) (result, error) {
	began := time.Now()
	return v.load(connections, func(k, i int) (time.Time, bool) {
		due := time.Duration(float64(i*connections+k) / rate * float64(time.Second))
		return began.Add(due), due < length
	})
}

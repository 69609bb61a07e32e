//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"time"
)

// pixels is the number of pixels of an image.
const pixels = 28 * 28

// request returns an inference request for the code of one image.
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

// load runs n connections on one thread. It uses as little CPU time as possible, because server and clients share the machine.
// next returns the time at which request i of connection k is due; false ends the connection. The latency of a request is
// measured from this time, and thus includes the time for which the request waits for the previous one.
func (v *server) load(n int, next func(k, i int) (due time.Time, ok bool)) (r result, err error) {
	e, err := newLoop(v.address, v.sent, n)
	if err != nil {
		return r, err
	}
	defer e.close()
	before, err := v.cpu()
	if err != nil {
		return r, err
	}
	began := time.Now()
	r.latencies, err = e.run(next)
	r.length = time.Since(began)
	if err != nil {
		return r, err
	}
	after, err := v.cpu()
	r.cpu = after - before
	if len(r.latencies) == 0 {
		err = errors.Join(err, errors.New("no request was answered"))
	}
	return r, err
}

// closedLoop sends the next request of a connection when the previous one is answered.
func (v *server) closedLoop(connections int, length time.Duration) (result, error) {
	end := time.Now().Add(length)
	return v.load(connections, func(_, _ int) (time.Time, bool) {
		now := time.Now()
		return now, now.Before(end)
	})
}

// fixedRate sends requests at a rate, spread evenly over the connections, regardless of whether earlier requests are answered.
func (v *server) fixedRate(connections int, rate float64, length time.Duration) (result, error) {
	began := time.Now()
	return v.load(connections, func(k, i int) (time.Time, bool) {
		due := time.Duration(float64(i*connections+k) / rate * float64(time.Second))
		return began.Add(due), due < length
	})
}

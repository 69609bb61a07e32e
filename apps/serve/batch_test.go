package serve

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// gate is a model whose batches wait until the test releases them. The value of an image is the sum of its two numbers.
type gate struct {
	began chan int // number of images of each batch
	pass  chan struct{}
}

func (g *gate) encode(_ context.Context, dst, images []float32) ([]float32, error) {
	g.began <- len(images) / 2
	<-g.pass
	for i := 0; i < len(images); i += 2 {
		if images[i] < 0 {
			panic("negative")
		}
		dst = append(dst, images[i]+images[i+1])
	}
	return dst, nil
}

// gated returns a batcher with one worker.
func gated(t *testing.T, most int, places int64, wait time.Duration) (*batcher, *gate) {
	g := &gate{began: make(chan int, 100), pass: make(chan struct{}, 100)}
	b := &batcher{encode: g.encode, in: 2, out: 1, most: most, places: places, wait: wait, observe: func(int) {}}
	b.start(1)
	t.Cleanup(b.stop)
	return b, g
}

func newJob(ctx context.Context, values ...float32) *job {
	now := time.Now()
	return &job{ctx: ctx, images: values, count: len(values) / 2, began: now, until: now.Add(time.Hour), done: make(chan struct{}, 1)}
}

func submit(t *testing.T, b *batcher, j *job) *job {
	t.Helper()
	fatal.If(t, b.submit(j))
	return j
}

func TestWhatWaitsIsComputedTogether(t *testing.T) {
	b, g := gated(t, 4, 100, 0)
	first := submit(t, b, newJob(t.Context(), 1, 2))
	if n := <-g.began; n != 1 { // the worker is busy with it
		t.Fatalf("the first batch has %d images", n)
	}
	var jobs []*job
	for i, n := range []int{1, 2, 2, 1, 6, 1} { // 1+2, then 2+1, 6 alone, 1
		var values []float32
		for k := range n {
			values = append(values, float32(10*i), float32(k))
		}
		jobs = append(jobs, submit(t, b, newJob(t.Context(), values...)))
	}
	for range 5 {
		g.pass <- struct{}{}
	}
	if got, err := first.result(); err != nil || !slices.Equal(got, []float32{3}) {
		t.Errorf("got %v, %v", got, err)
	}
	for i, j := range jobs {
		got, err := j.result()
		if err != nil || len(got) != j.count {
			t.Fatalf("job %d: got %v, %v", i, got, err)
		}
		for k, v := range got {
			expect.Equal(t, v, float32(10*i+k), "job", i, got)
		}
	}
	for _, want := range []int{3, 3, 6, 1} {
		expect.Equal(t, <-g.began, want, "a batch of")
	}
}

// If a worker is free, a request computes its own images together with the waiting ones, but not images that arrive later.
func TestARequestComputesByItself(t *testing.T) {
	b, g := gated(t, 4, 100, 0)
	for range 2 {
		g.pass <- struct{}{}
		alone := newJob(t.Context(), 1, 2)
		if err := b.lead(alone); err != nil || len(alone.done) != 1 {
			t.Fatalf("got %v, %d results, want one when lead returns", err, len(alone.done))
		}
		<-g.began
	}
	leader, after := newJob(t.Context(), 3, 4), newJob(t.Context(), 5, 6)
	returned := make(chan error)
	go func() { returned <- b.lead(leader) }()
	<-g.began
	if err := b.lead(after); err != nil || len(after.done) != 0 {
		t.Fatalf("got %v, %d results while the worker is busy", err, len(after.done))
	}
	g.pass <- struct{}{}
	expect.NoError(t, <-returned)
	if n := <-g.began; n != 1 || len(after.done) != 0 { // in another goroutine: the leader has returned
		t.Errorf("a batch of %d images, %d results", n, len(after.done))
	}
	g.pass <- struct{}{}
	if got, err := after.result(); err != nil || !slices.Equal(got, []float32{11}) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestAWorkerWaitsForMoreImages(t *testing.T) {
	b, g := gated(t, 3, 100, time.Hour)
	jobs := []*job{submit(t, b, newJob(t.Context(), 1, 1)), submit(t, b, newJob(t.Context(), 2, 2))}
	select {
	case n := <-g.began:
		t.Fatalf("a batch of %d images did not wait", n)
	case <-time.After(20 * time.Millisecond):
	}
	jobs = append(jobs, submit(t, b, newJob(t.Context(), 3, 3)))
	g.pass <- struct{}{}
	for _, j := range jobs {
		expect.NoError(t, expect.Err(j.result()))
	}
	expect.Equal(t, <-g.began, 3, "a batch of")
	short, g := gated(t, 3, 100, time.Microsecond)
	j := submit(t, short, newJob(t.Context(), 1, 1))
	g.pass <- struct{}{}
	expect.NoError(t, expect.Err(j.result()))
}

func TestAFullQueueIsAnError(t *testing.T) {
	b, g := gated(t, 1, 3, 0)
	busy := submit(t, b, newJob(t.Context(), 1, 1))
	<-g.began
	waiting := submit(t, b, newJob(t.Context(), 1, 1, 2, 2))
	expect.Is(t, b.submit(newJob(t.Context(), 1, 1, 2, 2)), errFull)
	last := submit(t, b, newJob(t.Context(), 1, 1))
	for range 3 {
		g.pass <- struct{}{}
	}
	for _, j := range []*job{busy, waiting, last} {
		expect.NoError(t, expect.Err(j.result()))
	}
	expect.Equal(t, b.waiting.Load(), 0, "images wait")
}

func TestJobsThatNobodyWaitsForAreNotComputed(t *testing.T) {
	b, g := gated(t, 4, 100, 0)
	submit(t, b, newJob(t.Context(), 1, 1))
	<-g.began
	ctx, cancel := context.WithCancel(t.Context())
	gone := submit(t, b, newJob(ctx, 5, 5))
	stays := submit(t, b, newJob(t.Context(), 2, 2))
	late := newJob(t.Context(), 7, 7)
	late.until = late.began
	submit(t, b, late)
	cancel()
	expect.Is(t, expect.Err(gone.result()), context.Canceled)
	g.pass <- struct{}{}
	g.pass <- struct{}{}
	expect.NoError(t, expect.Err(stays.result()))
	if _, err := late.result(); !errors.Is(err, context.DeadlineExceeded) || statusOf(err) != http.StatusServiceUnavailable {
		t.Errorf("got %v", err)
	}
	expect.Equal(t, <-g.began, 1, "a batch of")
}

func TestAPanicIsAnErrorOfItsBatch(t *testing.T) {
	b, g := gated(t, 4, 100, 0)
	for _, value := range []float32{-1, 1} {
		j := submit(t, b, newJob(t.Context(), value, 0))
		g.pass <- struct{}{}
		if _, err := j.result(); (value < 0) != (err != nil) || err != nil && statusOf(err) != http.StatusInternalServerError {
			t.Errorf("%v: got %v", value, err)
		}
	}
}

// The values of an image do not depend on the other images of its batch.
func TestBatchesHaveTheBitsOfSingleImages(t *testing.T) {
	s := newServer(t, Options{MaxWait: time.Millisecond, Workers: 2})
	var wait sync.WaitGroup
	for g := range 16 {
		wait.Go(func() {
			for i := range 20 {
				x := images(1+(g+i)%5, uint64(20*g+i))
				body, header := binaryRequest(x, `,"outputs":[{"name":"code"}]`)
				got := post(s, "/v2/models/small/infer", body, headerLength+": "+header).reply(t)
				alone, err := s.models[0].current.outputs[0].encoder.Encode(t.Context(), nil, x)
				if err != nil || !sameBits(got.Outputs[0].Data, alone) {
					t.Errorf("other codes (%v)", err)
				}
			}
		})
	}
	wait.Wait()
}

func TestAFullServerAsksClientsToComeBack(t *testing.T) {
	s := newServer(t, Options{Queue: 2, MaxImages: 2, MaxMemory: 1 << 16})
	o := s.models[0].current.outputs[0]
	o.batch.waiting.Add(1) // as if an image waited
	a := post(s, "/v2/models/small/infer", jsonRequest(images(2, 1), ""))
	expect.Equal(t, a.status, http.StatusTooManyRequests, "status")
	expect.Equal(t, a.header.Get("Retry-After"), "1", "status")
	o.batch.waiting.Add(-1)
	s.memory.Add(1 << 16)
	a = post(s, "/v2/models/small/infer", jsonRequest(images(2, 1), ""))
	expect.Equal(t, a.status, http.StatusTooManyRequests, "status")
	expect.Equal(t, a.header.Get("Retry-After"), "1", "status")
	s.memory.Add(-1 << 16)
	if a := post(s, "/v2/models/small/infer", jsonRequest(images(2, 1), "")); a.status != http.StatusOK {
		t.Errorf("status %d: %s", a.status, a.body)
	}
}

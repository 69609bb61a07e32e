package serve

import (
	"context"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// job contains the images of one request for a batcher, and their results.
type job struct {
	ctx     context.Context
	images  []float32
	count   int
	began   time.Time
	until   time.Time // deadline, after which the job is not computed
	results []float32
	err     error
	done    chan struct{} // receives one value when results or err are set
}

// encode computes one value, such as the code, of n images and appends it to dst. It is called concurrently.
type encode func(ctx context.Context, dst, images []float32) ([]float32, error)

// yields is the number of times that a worker calls runtime.Gosched before it collects a batch: the first call wakes the connections,
// the second one lets their requests arrive.
const yields = 2

// batcher collects the images of requests that wait at the same time and computes them together.
//
// If a worker is free, the goroutine of a request computes: handing an image over to another goroutine can take as long as a
// small model. Its batch consists of its own images and of waiting images, up to the limit most. Before it collects images,
// the goroutine yields to every goroutine that is ready to run. Under load these are requests that have just arrived, and for
// a small model eight images take hardly longer than one. If a maximum wait is set, the goroutine waits for further images
// until its first image has waited for this time. A request with more images than most is computed alone. A request that does
// not fit into a batch is the first one of the worker's next batch. If images are still waiting when the request of the
// goroutine is answered, another goroutine computes them.
type batcher struct {
	encode   encode
	in, out  int // number of values of an image, and of its result
	most     int
	wait     time.Duration
	queue    chan *job
	free     chan *worker // idle workers
	places   int64        // maximum number of waiting images
	waiting  atomic.Int64
	observe  func(images int)
	finished sync.WaitGroup
}

// start creates the workers: as many as goroutines may compute at the same time.
func (b *batcher) start(workers int) {
	b.queue = make(chan *job, b.places)
	b.free = make(chan *worker, workers)
	for range workers {
		b.free <- &worker{}
	}
}

// stop waits until all queued jobs are computed. No job may be submitted afterwards.
func (b *batcher) stop() { b.finished.Wait() }

// submit queues a job, or returns errFull.
func (b *batcher) submit(j *job) error {
	if err := b.reserve(j); err != nil {
		return err
	}
	b.enqueue(j)
	return nil
}

// lead computes a job in this goroutine if a worker is free, otherwise it queues the job. It may return errFull.
func (b *batcher) lead(j *job) error {
	if err := b.reserve(j); err != nil {
		return err
	}
	select {
	case w := <-b.free:
		w.next = j
		b.batch(w)
		if w.next != nil || len(b.queue) > 0 {
			b.finished.Go(func() { b.work(w) })
		} else {
			b.release(w)
		}
	default:
		b.enqueue(j)
	}
	return nil
}

// reserve reserves places in the queue for the images of a job.
func (b *batcher) reserve(j *job) error {
	if b.waiting.Add(int64(j.count)) > b.places {
		b.waiting.Add(-int64(j.count))
		return errFull
	}
	return nil
}

func (b *batcher) enqueue(j *job) {
	b.queue <- j // has a place for every image
	b.wake()
}

// release makes a worker idle. It calls wake for a job that was queued in the meantime without an idle worker.
func (b *batcher) release(w *worker) {
	b.free <- w
	b.wake()
}

// wake starts an idle worker, if there is one, to compute the queued jobs.
func (b *batcher) wake() {
	if len(b.queue) == 0 {
		return
	}
	select {
	case w := <-b.free:
		b.finished.Go(func() { b.work(w) })
	default:
	}
}

// work computes until the queue is empty.
func (b *batcher) work(w *worker) {
	for {
		if w.next == nil {
			select {
			case w.next = <-b.queue:
			default:
				b.release(w)
				return
			}
		}
		b.batch(w)
	}
}

// batch computes w.next together with other jobs.
func (b *batcher) batch(w *worker) {
	for range yields {
		runtime.Gosched()
	}
	b.collect(w)
	b.compute(w)
}

// result waits for a job and returns its results. If the client disconnects, result returns at once, but a worker may still
// use the memory of the job.
func (j *job) result() ([]float32, error) {
	select {
	case <-j.done:
		return j.results, j.err
	case <-j.ctx.Done():
		return nil, j.ctx.Err()
	}
}

// worker is the permission to compute, with the memory for one batch.
type worker struct {
	jobs    []*job
	next    *job // the first job of the next batch
	count   int
	images  []float32
	results []float32
	timer   *time.Timer
}

// collect takes the jobs of a batch from the queue, beginning with w.next.
func (b *batcher) collect(w *worker) {
	first := w.next
	w.jobs, w.count, w.next = append(w.jobs[:0], first), first.count, nil
	b.waiting.Add(-int64(first.count))
	for w.count < b.most {
		j := b.following(w, first.began.Add(b.wait))
		if j == nil {
			return
		}
		if w.count+j.count > b.most {
			w.next = j
			return
		}
		w.jobs, w.count = append(w.jobs, j), w.count+j.count
		b.waiting.Add(-int64(j.count))
	}
}

// following returns the next job of the queue, nil if none arrives until the given time.
func (b *batcher) following(w *worker, until time.Time) *job {
	select {
	case j := <-b.queue:
		return j
	default:
	}
	if b.wait <= 0 {
		return nil
	}
	left := time.Until(until)
	if left <= 0 {
		return nil
	}
	if w.timer == nil {
		w.timer = time.NewTimer(left)
	} else {
		w.timer.Reset(left)
	}
	defer w.timer.Stop()
	select {
	case j := <-b.queue:
		return j
	case <-w.timer.C:
		return nil
	}
}

// compute computes a batch and distributes the results. Jobs whose clients have disconnected, or whose deadline has passed,
// are omitted.
func (b *batcher) compute(w *worker) {
	live, now := w.jobs[:0], time.Now()
	for _, j := range w.jobs {
		if err := j.ctx.Err(); err != nil {
			j.finish(j.results, err)
			continue
		}
		if now.After(j.until) {
			j.finish(j.results, context.DeadlineExceeded)
			continue
		}
		live = append(live, j)
	}
	switch {
	case len(live) == 1:
		b.observe(live[0].count)
		live[0].finish(b.protected(live[0].ctx, live[0].results[:0], live[0].images))
	case len(live) > 1:
		b.together(w, live)
	}
	clear(w.jobs) // a job is garbage when its request ends
}

// together computes several jobs as one batch.
func (b *batcher) together(w *worker, jobs []*job) {
	w.images = w.images[:0]
	for _, j := range jobs {
		w.images = append(w.images, j.images...)
	}
	b.observe(len(w.images) / b.in)
	var err error
	w.results, err = b.protected(context.Background(), w.results[:0], w.images)
	rest := w.results
	for _, j := range jobs {
		if err != nil {
			j.finish(j.results, err)
			continue
		}
		own := rest[:j.count*b.out]
		rest = rest[len(own):]
		j.finish(append(j.results[:0], own...), nil) // from here on j belongs to another request
	}
}

// protected turns a panic of the model into an error. A panic would end the process and every other request.
func (b *batcher) protected(ctx context.Context, dst, images []float32) (results []float32, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			results, err = dst, problemf(http.StatusInternalServerError, "internal error: %v", cause)
		}
	}()
	results, err = b.encode(ctx, dst, images)
	if err != nil && statusOf(err) == http.StatusBadRequest {
		err = problemf(http.StatusInternalServerError, "%v", err)
	}
	return results, err
}

func (j *job) finish(results []float32, err error) {
	j.results, j.err = results, err
	j.done <- struct{}{}
}

package augment

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"tessera/internal/parallel/team"
	"tessera/internal/volume"
)

// Chain applies augmentations in order to images of one shape. It is safe for concurrent use.
//
// Every step of every image has a separate random stream. The draws of one step therefore do not affect another step,
// and the result does not depend on the number of goroutines.
type Chain struct {
	steps  []Augmentation
	shape  []int
	pixels int

	mu   sync.Mutex
	idle []*worker // idle workers; the list grows to the maximum number of concurrent goroutines
}

// worker is the memory and the random generators of one goroutine.
type worker struct {
	changes      []Change  // changes of the steps
	a, b         []float32 // results between steps, one image each
	image, step  rand.PCG
	images, each *rand.Rand // images reads the stream of an image, each the stream of one step
}

type seed struct{ high, low uint64 }

// NewChain returns a chain of the given augmentations for images of shape (height, width) or (height, width, channels).
// A chain without augmentations copies the images. NewChain returns an error if a setting is invalid or an augmentation
// does not accept the shape.
func NewChain(steps []Augmentation, shape []int) (*Chain, error) {
	if err := checkShape(shape); err != nil {
		return nil, err
	}
	c := &Chain{steps: slices.Clone(steps), shape: slices.Clone(shape), pixels: volume.Of(shape)}
	w, err := c.newWorker()
	if err != nil {
		return nil, err
	}
	c.idle = append(c.idle, w)
	return c, nil
}

// Apply writes the augmented images src to dst. src contains any number of images, one after the other. Both slices
// have the same length and share no memory. r provides a seed for every image, in order, so that the results for the
// first images of a batch do not depend on the number of images that follow. Apply returns an error if the lengths
// differ or are not a whole number of images, or if an augmentation can no longer be prepared.
func (c *Chain) Apply(dst, src []float32, r *rand.Rand) error {
	if len(dst) != len(src) || len(src)%c.pixels != 0 {
		return fmt.Errorf("augment: %d values into %d, want as many, and a multiple of %d", len(src), len(dst), c.pixels)
	}
	n := len(src) / c.pixels
	seeds := make([]seed, n)
	for i := range seeds {
		seeds[i] = seed{r.Uint64(), r.Uint64()}
	}
	const grain = 16 // images per goroutine; a training thread passes at most this many, so that no further goroutine starts
	var failed atomic.Pointer[error]
	team.For(n, grain, func(from, to int) {
		w, err := c.take()
		if err != nil {
			failed.Store(&err)
			return
		}
		defer c.give(w)
		for i := from; i < to; i++ {
			at := i * c.pixels
			c.one(w, dst[at:at+c.pixels:at+c.pixels], src[at:at+c.pixels:at+c.pixels], seeds[i])
		}
	})
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

func (c *Chain) one(w *worker, dst, src []float32, s seed) {
	if len(w.changes) == 0 {
		copy(dst, src)
		return
	}
	w.image.Seed(s.high, s.low)
	last := len(w.changes) - 1
	for i, change := range w.changes {
		to := w.a
		if i == last {
			to = dst
		}
		w.step.Seed(w.images.Uint64(), w.images.Uint64())
		change(to, src, w.each)
		src = to
		w.a, w.b = w.b, w.a
	}
}

func (c *Chain) take() (*worker, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.idle); n > 0 {
		w := c.idle[n-1]
		c.idle = c.idle[:n-1]
		return w, nil
	}
	return c.newWorker()
}

func (c *Chain) newWorker() (*worker, error) {
	w := &worker{a: make([]float32, c.pixels), b: make([]float32, c.pixels)}
	w.images, w.each = rand.New(&w.image), rand.New(&w.step)
	for i, a := range c.steps {
		if a == nil {
			return nil, fmt.Errorf("augment: step %d is nil", i)
		}
		change, err := Prepare(a, c.shape)
		if err != nil {
			return nil, fmt.Errorf("augment: step %d: %w", i, err)
		}
		w.changes = append(w.changes, change)
	}
	return w, nil
}

func (c *Chain) give(w *worker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = append(c.idle, w)
}

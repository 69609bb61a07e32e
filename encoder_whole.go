package tessera

import (
	"context"

	"tessera/metrics"
)

// whole computes with a coder that has no programs to compile, in one call after the other; the run takes turns with it.
type whole struct {
	mu      *turns        // the run's
	coder   metrics.Coder // nil after Close
	in      int           // values of an image
	decoded bool          // the output is computed, not the code
}

// encode appends the values of images. Each image is encoded by itself: a baseline stops its iterations when all images of a call
// have converged, and some begin with the mean code of all.
func (w *whole) encode(ctx context.Context, dst, images []float32) ([]float32, error) {
	if err := w.mu.Within(ctx); err != nil {
		return dst, err
	}
	defer w.mu.Unlock()
	if w.coder == nil {
		return dst, ErrClosed
	}
	before := len(dst)
	for ; len(images) > 0; images = images[w.in:] {
		values, err := w.one(ctx, images[:w.in])
		if err != nil {
			return dst[:before], err
		}
		dst = append(dst, values...)
	}
	return dst, nil
}

// one computes the values of one image, unless ctx has ended.
func (w *whole) one(ctx context.Context, image []float32) ([]float32, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	values, err := w.coder.Encode(image)
	if err == nil && w.decoded {
		values, err = w.coder.Decode(values)
	}
	return values, err
}

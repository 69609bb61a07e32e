package metrics

import (
	"fmt"
	"iter"

	"tessera/internal/volume"
)

// batchSize images are encoded and decoded at a time: their buffers stay in the processor's cache, and the usual test
// sets are whole numbers of batches, so that a coder prepares for one size only.
const batchSize = 500

// batches yields consecutive ranges [from, to) that cover n images.
func batches(n int) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for from := 0; from < n; from += batchSize {
			if !yield(from, min(from+batchSize, n)) {
				return
			}
		}
	}
}

// imageCount checks that values are whole images of the coder's shape and returns how many; none is an error.
func imageCount(coder Coder, values []float32) (int, error) {
	n, err := rowCount(values, volume.Of(coder.Shape()))
	if err != nil {
		return 0, fmt.Errorf("%w (images of shape %v)", err, coder.Shape())
	}
	if n == 0 {
		return 0, fmt.Errorf("metrics: there are no images to measure on")
	}
	return n, nil
}

// encode is coder.Encode with its error and its answer's length checked.
func encode(coder Coder, images []float32) ([]float32, error) {
	codes, err := coder.Encode(images)
	if err != nil {
		return nil, fmt.Errorf("metrics: encode: %w", err)
	}
	if want := len(images) / volume.Of(coder.Shape()) * coder.Units(); len(codes) != want {
		return nil, fmt.Errorf("metrics: encode returned %d values, want %d", len(codes), want)
	}
	return codes, nil
}

// decode is coder.Decode with its error and its answer's length checked.
func decode(coder Coder, codes []float32) ([]float32, error) {
	images, err := coder.Decode(codes)
	if err != nil {
		return nil, fmt.Errorf("metrics: decode: %w", err)
	}
	if want := len(codes) / coder.Units() * volume.Of(coder.Shape()); len(images) != want {
		return nil, fmt.Errorf("metrics: decode returned %d values, want %d", len(images), want)
	}
	return images, nil
}

package augment

import (
	"math"
	"math/rand/v2"
)

// Blur convolves the image, channel by channel, with a Gaussian of standard deviation s from U[Sigma]:
//
//	y(i, j) = sum over |k|, |l| <= R of w(k) w(l) x(i + k, j + l),  w(k) proportional to exp(-k² / 2s²), sum of w = 1
//
// R = round(4 s). The image is blurred with probability Probability. Beyond the edge the image is mirrored, with the
// edge pixels repeated, which keeps the mean of the image. A probability of 0, or Sigma = [0, 0], changes nothing.
//
// Source: Chen et al., A simple framework for contrastive learning of visual representations, 2020, appendix A, with
// its defaults; the result equals scipy.ndimage.gaussian_filter.
type Blur struct {
	Sigma       []float64 `toml:"sigma" want:"in [0,1000]" doc:"[low, high]: the standard deviation, in pixels"`
	Probability float64   `toml:"probability" want:"in [0,1]" doc:"probability of blurring the image"`
}

func init() {
	Registry.Register("blur", "convolution with a Gaussian of random width", func() Augmentation { return &Blur{Sigma: []float64{0.1, 2}, Probability: 0.5} })
}

func (b *Blur) Check() error { return checkRange("sigma", b.Sigma) }

func (b *Blur) Clips() bool { return b.Probability > 0 }

func (b *Blur) Prepare(shape []int) (Change, error) {
	low, high, probability := b.Sigma[0], b.Sigma[1], b.Probability
	s := newSmoother(sizeOf(shape), high)
	return func(dst, src []float32, r *rand.Rand) {
		if !happens(r, probability) {
			copy(dst, src)
			return
		}
		s.smooth(dst, src, uniform(r, low, high))
	}, nil
}

type smoother struct {
	in                   size
	weights, sum, padded []float64 // working memory
}

func newSmoother(in size, sigma float64) *smoother {
	radius := reach(sigma)
	return &smoother{in, make([]float64, radius+1), make([]float64, in.stride()), make([]float64, (in.width+2*radius)*in.channels)}
}

// reach returns the radius in pixels within which a Gaussian has non-zero weights.
func reach(sigma float64) int { return int(math.Round(4 * sigma)) }

// smooth writes src convolved with a Gaussian of standard deviation sigma to dst. It convolves first along the columns,
// then along the rows.
func (s *smoother) smooth(dst, src []float32, sigma float64) {
	radius, in := reach(sigma), s.in
	w, sum, padded := s.weights[:radius+1], s.sum, s.padded[:(in.width+2*radius)*in.channels]
	gaussian(w, sigma)
	for y := range in.height {
		clear(sum)
		for k := -radius; k <= radius; k++ {
			add(sum, w[max(k, -k)], src[mirrored(y+k, in.height)*in.stride():])
		}
		for x := range in.width + 2*radius {
			copy(padded[x*in.channels:][:in.channels], sum[mirrored(x-radius, in.width)*in.channels:])
		}
		clear(sum)
		for k := -radius; k <= radius; k++ {
			add(sum, w[max(k, -k)], padded[(radius+k)*in.channels:])
		}
		for x, v := range sum {
			dst[y*in.stride()+x] = clip(float32(v))
		}
	}
}

// gaussian writes the weights at the distances 0, 1, ... from the centre to w.
func gaussian(w []float64, sigma float64) {
	w[0] = 1
	total := 1.0
	for k := 1; k < len(w); k++ {
		z := float64(k) / sigma
		w[k] = math.Exp(-z * z / 2)
		total += 2 * w[k]
	}
	for k := range w {
		w[k] /= total
	}
}

func add[T float32 | float64](sum []float64, weight float64, x []T) {
	x = x[:len(sum)]
	for i, v := range x {
		sum[i] += weight * float64(v)
	}
}

// mirrored returns the index of the pixel at position i of an image of n pixels that is continued by its mirror images:
// ... 1 0 | 0 1 ... n-1 | n-1 ...
func mirrored(i, n int) int {
	i %= 2 * n
	if i < 0 {
		i += 2 * n
	}
	return min(i, 2*n-1-i)
}

package attack

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"tessera/config/part"
	"tessera/internal/engine/kernel"
	"tessera/internal/parallel/team"
	"tessera/internal/vectors"
)

// Ball is the set of values that an attack may choose for a sample: those whose difference from the clean sample has a norm of at most
// Epsilon, and that lie in Range. A value whose clean one is outside of the range may not move further away from it.
type Ball struct {
	Norm    Norm    `toml:"norm" doc:"norm of the perturbation"`
	Epsilon float64 `toml:"epsilon" want:"> 0" doc:"largest norm of the perturbation; pixels lie in [0,1]"`

	Range [2]float32 // smallest and largest value of a pixel; if both are 0, the range is [0,1]
}

// Check returns the first invalid setting as a part.KeyError.
func (b *Ball) Check() error {
	switch {
	case !slices.Contains(b.Norm.Choices(), string(b.Norm)):
		return part.KeyErrorf("norm", "got %v, want one of %v", b.Norm, b.Norm.Choices())
	case !(b.Epsilon > 0) || math.IsInf(b.Epsilon, 0):
		return part.KeyErrorf("epsilon", "got %v, want > 0", b.Epsilon)
	case b.Epsilon > math.MaxFloat32: // pixels are float32
		return part.KeyErrorf("epsilon", "got %v, want at most %.2g", b.Epsilon, math.MaxFloat32)
	}
	return nil
}

// Norm is the norm of the difference between an adversarial example and the clean image.
type Norm string

// The norms.
const (
	LInf Norm = "linf" // the largest absolute difference of a pixel
	L2   Norm = "l2"   // the Euclidean norm
)

// Radii are usual radii of balls in the norm, ascending, for images in [0,1].
func (n Norm) Radii() []float64 {
	if n == L2 {
		return []float64{0.25, 0.5, 1, 2, 3}
	}
	return []float64{0.02, 0.05, 0.1, 0.2, 0.3}
}

// Choices lists the norms.
func (Norm) Choices() []string { return []string{string(LInf), string(L2)} }

// Move takes one step of the given length, in the norm of the ball, for one or several complete images. pixels is the number of values of
// an image. It moves x along the gradient and projects it. Before the first step x must equal clean. An l2 step along a zero or non-finite
// gradient does not move x.
func (b *Ball) Move(x, clean, gradient []float32, pixels int, step float64) {
	if b.Norm == LInf {
		b.moveLinf(x, clean, gradient, step)
		return
	}
	for at := 0; at < len(x); at += pixels {
		to := at + pixels
		b.moveL2(x[at:to], clean[at:to], gradient[at:to], step)
	}
}

// strip is the number of values that moveLinf computes together. They stay in the first-level cache.
const strip = 1024

// strips contains scratch of moveLinf, *[2][strip]float32.
var strips = sync.Pool{New: func() any { return new([2][strip]float32) }}

// moveLinf sets x to the number nearest to x + step sign(gradient) in the intersection of the ball and the range of pixel
// values. Both contain clean, so the order of the two projections does not matter.
func (b *Ball) moveLinf(x, clean, gradient []float32, length float64) {
	step, radius := float32(length), float32(b.Epsilon)
	low, high := b.span()
	k, scratch := kernel.Float32(), strips.Get().(*[2][strip]float32)
	defer strips.Put(scratch)
	for len(x) > 0 {
		n := min(strip, len(x))
		v, c, g, s, bound := x[:n], clean[:n], gradient[:n], scratch[0][:n], scratch[1][:n]
		k.GtScalar(s, g, 0) // the sign of NaN is 0 here, so that x does not move
		k.LtScalar(bound, g, 0)
		k.Sub(s, s, bound)
		k.AddScaled(v, v, s, step)

		k.AddScalar(s, c, -radius)
		k.MinScalar(bound, c, low)
		k.Max(bound, bound, s)
		k.Max(v, v, bound)

		k.AddScalar(s, c, radius)
		k.MaxScalar(bound, c, high)
		k.Min(bound, bound, s)
		k.Min(v, v, bound)
		x, clean, gradient = x[n:], clean[n:], gradient[n:]
	}
}

func (b *Ball) moveL2(x, clean, gradient []float32, length float64) {
	scale := length / vectors.Norm(gradient)
	if !(scale > 0) || math.IsInf(scale, 0) {
		return
	}
	squares := 0.0
	for i, g := range gradient {
		x[i] += float32(scale * float64(g))
		d := float64(x[i]) - float64(clean[i])
		squares += d * d
	}
	shrink := min(1, b.Epsilon/math.Sqrt(squares))
	for i, c := range clean { // clipping cannot leave the ball: it moves x towards the clean image, which lies within the bounds
		x[i] = b.bounded(c+float32(shrink*(float64(x[i])-float64(c))), c)
	}
}

// span returns the range of pixel values.
func (b *Ball) span() (low, high float32) {
	if b.Range == [2]float32{} {
		return 0, 1
	}
	return b.Range[0], b.Range[1]
}

// bounded clips v to the range of pixel values. If clean lies outside of the range, it extends the range to clean.
func (b *Ball) bounded(v, clean float32) float32 {
	low, high := b.span()
	return min(max(v, min(clean, low)), max(clean, high))
}

// Scatter sets x to random points of the balls around the clean images. pixels is the number of values of an image. The
// points are uniform in the ball before pixels are clipped.
func (b *Ball) Scatter(x, clean []float32, pixels int, r *rand.Rand) {
	for at := 0; at < len(x); at += pixels {
		if b.Norm == L2 {
			b.scatterL2(x[at:at+pixels], clean[at:at+pixels], r)
			continue
		}
		for j, c := range clean[at : at+pixels] {
			x[at+j] = b.bounded(c+float32(b.Epsilon*(2*r.Float64()-1)), c)
		}
	}
}

// scatterL2 sets x to a random point of the l2 ball around clean. The direction is a normalised Gaussian vector. The
// length is epsilon times the n-th root of a uniform number, where n is the number of values.
func (b *Ball) scatterL2(x, clean []float32, r *rand.Rand) {
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	scale := b.Epsilon * math.Pow(r.Float64(), 1/float64(len(x))) / max(vectors.Norm(x), math.SmallestNonzeroFloat32)
	for i, c := range clean {
		x[i] = b.bounded(c+float32(scale*float64(x[i])), c)
	}
}

// shifted returns clean + d, clipped to the range of pixel values.
func (b *Ball) shifted(clean float32, d float64) float32 {
	return b.bounded(clean+float32(d), clean)
}

// settle moves images exactly into the ball and into the range of pixel values, because float32 arithmetic may leave
// the ball by rounding. The ball is measured in float64.
func (b *Ball) settle(x, clean []float32, pixels int) {
	team.For(len(x)/pixels, 32, func(from, to int) {
		for at := from * pixels; at < to*pixels; at += pixels {
			if b.Norm == L2 {
				b.settleL2(x[at:at+pixels], clean[at:at+pixels])
			} else {
				b.settleLinf(x[at:at+pixels], clean[at:at+pixels])
			}
		}
	})
}

func (b *Ball) settleLinf(x, clean []float32) {
	for i, c := range clean {
		v := b.bounded(x[i], c)
		if d := float64(v) - float64(c); math.Abs(d) > b.Epsilon {
			v = float32(float64(c) + math.Copysign(b.Epsilon, d)) // start next to the bound, so that few steps are needed
			for math.Abs(float64(v)-float64(c)) > b.Epsilon {
				v = math.Nextafter32(v, c)
			}
		}
		x[i] = v
	}
}

func (b *Ball) settleL2(x, clean []float32) {
	for i, c := range clean {
		x[i] = b.bounded(x[i], c)
	}
	for shrink := 1 - 1e-7; ; shrink -= 1e-7 {
		d := distance(x, clean)
		if !(d > b.Epsilon) { // NaN, which [Ball.largest] reports
			break
		}
		factor := shrink * b.Epsilon / d
		for i, c := range clean {
			x[i] = b.bounded(c+float32(factor*(float64(x[i])-float64(c))), c)
		}
	}
}

// largest returns the largest norm of the differences between images and clean images, in float64. It returns an error
// if one of them exceeds the ball, or if a pixel leaves the range of pixel values.
func (b *Ball) largest(x, clean []float32, pixels int) (most float64, err error) {
	for at := 0; at < len(x); at += pixels {
		one, of := x[at:at+pixels], clean[at:at+pixels]
		for i, v := range one {
			if v != b.bounded(v, of[i]) {
				return 0, fmt.Errorf("a pixel of sample %d has the value %g, outside of the range of pixels", at/pixels, v)
			}
		}
		d := b.away(one, of)
		if !(d <= b.Epsilon) {
			return 0, fmt.Errorf("the example of sample %d is %g away from it, more than %g", at/pixels, d, b.Epsilon)
		}
		most = max(most, d)
	}
	return most, nil
}

// away returns the distance of x from the clean sample in the norm of the ball.
func (b *Ball) away(x, clean []float32) float64 {
	if b.Norm == L2 {
		return distance(x, clean)
	}
	most := 0.0
	for i, v := range x {
		most = max(most, math.Abs(float64(v)-float64(clean[i])))
	}
	return most
}

// distance returns the l2 norm of a - b.
func distance(a, b []float32) float64 {
	sum := 0.0
	for i, v := range a {
		d := float64(v) - float64(b[i])
		sum += d * d
	}
	return math.Sqrt(sum)
}

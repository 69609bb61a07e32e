// Package attack computes adversarial examples and measures their effect: images that hardly differ from clean ones,
// but that a model reconstructs or classifies badly.
//
// An adversarial example x' = x + d lies in the ball |d| <= epsilon around a clean image x and has pixels in [0,1]. The
// attack follows the gradient, with respect to x', of the error between the model's output for x' and the clean x. The
// model computes this gradient; the package does not depend on its graph.
package attack

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"tessera/config/part"
	"tessera/internal/engine/kernel"
	"tessera/internal/random"
	"tessera/internal/vectors"
	"tessera/internal/volume"
)

// Attack computes adversarial examples.
//
// fgsm takes one step of length epsilon along the gradient g, in the norm of the ball:
//
//	linf: d = epsilon sign(g)        l2: d = epsilon g / |g|
//
// (Goodfellow, Shlens and Szegedy, Explaining and Harnessing Adversarial Examples, 2015). pgd takes several shorter
// steps and projects d back into the ball after each of them (Madry, Makelov, Schmidt, Tsipras and Vladu, Towards Deep
// Learning Models Resistant to Adversarial Attacks, 2018):
//
//	linf: d = clip(d + step_size sign(g), -epsilon, epsilon)        l2: d = d + step_size g / |g|, scaled down to epsilon
//
// Both start from the clean image and clip x' to Range, [0,1] by default, after every step. A pixel whose clean value
// is outside of this range may not move further away from it. Only Restarts use random numbers: pgd then starts again
// from random points in the ball and keeps, for each image, the example with the largest error. A single start may miss
// the worst example in the ball.
type Attack struct {
	Method   Method  `toml:"method" doc:"fgsm: one step of length epsilon; pgd: several steps, each projected into the ball"`
	Norm     Norm    `toml:"norm" doc:"norm of the perturbation"`
	Epsilon  float64 `toml:"epsilon" want:"> 0" doc:"largest norm of the perturbation; pixels lie in [0,1]"`
	Steps    int     `toml:"steps" want:"in [1,1000]" doc:"number of steps of pgd"`
	StepSize float64 `toml:"step_size" want:"> 0" doc:"step size of pgd, in the norm; 2.5 epsilon / steps by default"`

	Restarts int    // number of additional starts of pgd, from random points in the ball, in [0,1000]; adversarial training uses none
	Seed     uint64 // seed of the random points

	Range [2]float32 // smallest and largest value of a pixel; if both are 0, the range is [0,1]
}

// mostSteps is the maximum number of steps and of restarts of an attack. A larger number is probably a typo. It would
// compute for hours, and a batch cannot be interrupted.
const mostSteps = 1000

// Default returns the default attack: PGD with ten steps in a small linf ball.
func Default() Attack { return Attack{Method: PGD, Norm: LInf, Epsilon: 0.05, Steps: 10} }

// Method selects how the attack follows the gradient.
type Method string

// The methods.
const (
	FGSM Method = "fgsm"
	PGD  Method = "pgd"
)

// Choices lists the methods.
func (Method) Choices() []string { return []string{string(FGSM), string(PGD)} }

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

// Check returns the first invalid setting as a part.KeyError.
func (a *Attack) Check() error {
	wrong := func(key string, got, want any) error {
		return part.KeyErrorf(key, "got %v, want %v", got, want)
	}
	switch {
	case !slices.Contains(a.Method.Choices(), string(a.Method)):
		return wrong("method", a.Method, a.Method.Choices())
	case !slices.Contains(a.Norm.Choices(), string(a.Norm)):
		return wrong("norm", a.Norm, a.Norm.Choices())
	case !(a.Epsilon > 0) || math.IsInf(a.Epsilon, 0):
		return wrong("epsilon", a.Epsilon, "> 0")
	case (a.Steps < 1 || a.Steps > mostSteps) && a.Method != FGSM:
		return wrong("steps", a.Steps, fmt.Sprintf("in [1,%d]", mostSteps))
	case !(a.StepSize >= 0) || math.IsInf(a.StepSize, 0):
		return wrong("step_size", a.StepSize, "> 0, or 0 for 2.5 epsilon / steps")
	case a.Epsilon > math.MaxFloat32: // pixels are float32
		return wrong("epsilon", a.Epsilon, fmt.Sprintf("at most %.2g", math.MaxFloat32))
	case a.StepSize > math.MaxFloat32:
		return wrong("step_size", a.StepSize, fmt.Sprintf("at most %.2g", math.MaxFloat32))
	case a.Restarts < 0 || a.Restarts > mostSteps:
		return wrong("restarts", a.Restarts, fmt.Sprintf("in [0,%d]", mostSteps))
	case a.Restarts > 0 && a.Method == FGSM:
		return wrong("restarts", a.Restarts, fmt.Sprintf("0: %s starts from the clean image", FGSM))
	}
	return nil
}

// Rounds returns the number of gradient steps from one start.
func (a *Attack) Rounds() int {
	if a.Method == FGSM {
		return 1
	}
	return a.Steps
}

// step returns the length of one step in the norm of the ball.
func (a *Attack) step() float64 {
	switch {
	case a.Method == FGSM:
		return a.Epsilon
	case a.StepSize > 0:
		return a.StepSize
	}
	return 2.5 * a.Epsilon / float64(a.Steps)
}

// Move takes one step for one or several complete images. pixels is the number of values of an image. It moves x along
// the gradient and projects it. Before the first step x must equal clean. An l2 step along a zero or non-finite
// gradient does not move x.
func (a *Attack) Move(x, clean, gradient []float32, pixels int) {
	if a.Norm == LInf {
		a.moveLinf(x, clean, gradient)
		return
	}
	for at := 0; at < len(x); at += pixels {
		to := at + pixels
		a.moveL2(x[at:to], clean[at:to], gradient[at:to])
	}
}

// strip is the number of values that moveLinf computes together. They stay in the first-level cache.
const strip = 1024

// strips contains scratch of moveLinf, *[2][strip]float32.
var strips = sync.Pool{New: func() any { return new([2][strip]float32) }}

// moveLinf sets x to the number nearest to x + step sign(gradient) in the intersection of the ball and the range of pixel
// values. Both contain clean, so the order of the two projections does not matter.
func (a *Attack) moveLinf(x, clean, gradient []float32) {
	step, radius := float32(a.step()), float32(a.Epsilon)
	low, high := a.span()
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

func (a *Attack) moveL2(x, clean, gradient []float32) {
	scale := a.step() / vectors.Norm(gradient)
	if !(scale > 0) || math.IsInf(scale, 0) {
		return
	}
	squares := 0.0
	for i, g := range gradient {
		x[i] += float32(scale * float64(g))
		d := float64(x[i]) - float64(clean[i])
		squares += d * d
	}
	shrink := min(1, a.Epsilon/math.Sqrt(squares))
	for i, c := range clean { // clipping cannot leave the ball: it moves x towards the clean image, which lies within the bounds
		x[i] = a.bounded(c+float32(shrink*(float64(x[i])-float64(c))), c)
	}
}

// span returns the range of pixel values.
func (a *Attack) span() (low, high float32) {
	if a.Range == [2]float32{} {
		return 0, 1
	}
	return a.Range[0], a.Range[1]
}

// bounded clips v to the range of pixel values. If clean lies outside of the range, it extends the range to clean.
func (a *Attack) bounded(v, clean float32) float32 {
	low, high := a.span()
	return min(max(v, min(clean, low)), max(clean, high))
}

// Perturb returns the adversarial examples of clean images. The random points of an image depend on the seed and on the index
// of the image.
func (a *Attack) Perturb(target Target, clean []float32) ([]float32, error) {
	if target == nil {
		return nil, errNoTarget
	}
	pixels := volume.Of(target.Shape())
	if pixels == 0 || len(clean)%pixels != 0 {
		return nil, fmt.Errorf("attack: %d values are not whole images of %d", len(clean), pixels)
	}
	return a.perturb(context.Background(), target, clean, 0)
}

// perturb is like [Attack.Perturb] for consecutive images. first is the index of the first one.
func (a *Attack) perturb(ctx context.Context, target Target, clean []float32, first int) ([]float32, error) {
	worst := append([]float32(nil), clean...)
	if err := a.follow(target, worst, clean); err != nil || a.Restarts == 0 {
		return worst, err
	}
	pixels := volume.Of(target.Shape())
	errors, err := imageErrors(target, worst, clean, pixels)
	if err != nil {
		return nil, err
	}
	x := make([]float32, len(clean))
	for restart := range a.Restarts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		a.scatter(x, clean, pixels, restart, first)
		if err := a.follow(target, x, clean); err != nil {
			return nil, err
		}
		others, err := imageErrors(target, x, clean, pixels)
		if err != nil {
			return nil, err
		}
		for i, e := range others {
			if e > errors[i] {
				errors[i] = e
				copy(worst[i*pixels:(i+1)*pixels], x[i*pixels:(i+1)*pixels])
			}
		}
	}
	return worst, nil
}

// follow moves x, the starting points, by all steps of the attack.
func (a *Attack) follow(target Target, x, clean []float32) error {
	pixels := volume.Of(target.Shape())
	for range a.Rounds() {
		gradient, err := target.InputGradient(x, clean)
		if err != nil {
			return err
		}
		a.Move(x, clean, gradient, pixels)
	}
	return nil
}

// scatter sets x to the starting points of a restart: random points of the balls around the clean images.
func (a *Attack) scatter(x, clean []float32, pixels, restart, first int) {
	for i := range len(clean) / pixels {
		r := random.Stream(a.Seed, fmt.Sprintf("attack/restart/%d", restart), uint64(first+i))
		at, to := i*pixels, (i+1)*pixels
		a.Scatter(x[at:to], clean[at:to], pixels, r)
	}
}

// Scatter sets x to random points of the balls around the clean images. pixels is the number of values of an image. The
// points are uniform in the ball before pixels are clipped.
func (a *Attack) Scatter(x, clean []float32, pixels int, r *rand.Rand) {
	for at := 0; at < len(x); at += pixels {
		if a.Norm == L2 {
			a.scatterL2(x[at:at+pixels], clean[at:at+pixels], r)
			continue
		}
		for j, c := range clean[at : at+pixels] {
			x[at+j] = a.bounded(c+float32(a.Epsilon*(2*r.Float64()-1)), c)
		}
	}
}

// scatterL2 sets x to a random point of the l2 ball around clean. The direction is a normalised Gaussian vector. The
// length is epsilon times the n-th root of a uniform number, where n is the number of values.
func (a *Attack) scatterL2(x, clean []float32, r *rand.Rand) {
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	scale := a.Epsilon * math.Pow(r.Float64(), 1/float64(len(x))) / max(vectors.Norm(x), math.SmallestNonzeroFloat32)
	for i, c := range clean {
		x[i] = a.bounded(c+float32(scale*float64(x[i])), c)
	}
}

// imageErrors returns, for every image, the squared error between the output and the clean image.
func imageErrors(target Target, images, clean []float32, pixels int) ([]float64, error) {
	codes, err := target.Encode(images)
	if err != nil {
		return nil, err
	}
	outputs, err := target.Decode(codes)
	if err != nil {
		return nil, err
	}
	errors := make([]float64, len(clean)/pixels)
	for i := range errors {
		d := distance(outputs[i*pixels:(i+1)*pixels], clean[i*pixels:(i+1)*pixels])
		errors[i] = d * d
	}
	return errors, nil
}

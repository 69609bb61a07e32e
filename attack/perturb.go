package attack

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"tessera/internal/random"
	"tessera/internal/volume"
)

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

// perturb is Perturb of images that begin at index first.
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

// follow takes all steps from x.
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

// scatter sets x to random points of the balls around the clean images, uniform in the ball before pixels are clipped.
func (a *Attack) scatter(x, clean []float32, pixels, restart, first int) {
	for i := range len(clean) / pixels {
		r := random.Stream(a.Seed, fmt.Sprintf("attack/restart/%d", restart), uint64(first+i))
		at, to := i*pixels, (i+1)*pixels
		if a.Norm == L2 {
			a.scatterL2(x[at:to], clean[at:to], r)
			continue
		}
		for j, c := range clean[at:to] {
			x[at+j] = bounded(c+float32(a.Epsilon*(2*r.Float64()-1)), c)
		}
	}
}

// scatterL2 draws a direction by Gaussian numbers and a length, the root of a uniform number of the order of the dimension.
func (a *Attack) scatterL2(x, clean []float32, r *rand.Rand) {
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	scale := a.Epsilon * math.Pow(r.Float64(), 1/float64(len(x))) / max(norm(x), math.SmallestNonzeroFloat32)
	for i, c := range clean {
		x[i] = bounded(c+float32(scale*float64(x[i])), c)
	}
}

// imageErrors returns the squared error of the output for every image, compared with the clean one.
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

package attack

import (
	"context"
	"errors"
	"fmt"
	"math"

	"tessera/config/part"
	"tessera/internal/vectors"
	"tessera/internal/volume"
)

// Target is a model that can be attacked. All slices are row-major: n images with the number of values of Shape(), or n
// codes with Units() values each.
type Target interface {
	// Shape returns the shape of one image.
	Shape() []int
	// Units returns the number of units of a code.
	Units() int
	// Encode returns the codes of images.
	Encode(images []float32) (codes []float32, err error)
	// Decode returns the images of codes.
	Decode(codes []float32) (images []float32, err error)
	// InputGradient returns the gradient of the reconstruction error between the outputs for images and the clean
	// images, with respect to images. The scale of the gradient may differ between images.
	InputGradient(images, clean []float32) (gradient []float32, err error)
}

var errNoTarget = errors.New("attack: nothing to attack: give a target")

// Result is the effect of one attack on a model.
type Result struct {
	Method     Method  `json:"method"`
	Norm       Norm    `json:"norm"`
	Epsilon    float64 `json:"epsilon"`
	Steps      int     `json:"steps"`
	Restarts   int     `json:"restarts"`
	StepSize   float64 `json:"step_size"`
	MSE        float64 `json:"mse"`         // squared error between the output for attacked images and the clean images, mean over pixels and images
	CodeChange float64 `json:"code_change"` // |h(x')-h(x)| / |h(x)|, mean over the images whose code is not 0; 0 if there are none
}

// Report is the effect of several attacks on a model.
type Report struct {
	Model   string   `json:"model"`
	Dataset string   `json:"dataset"`
	Images  int      `json:"images"`
	MSE     float64  `json:"mse"` // mean squared error of the output for clean images
	Attacks []Result `json:"attacks"`
}

// batchImages is the number of images that are attacked together. The context is checked between batches.
const batchImages = 1000

// Measure runs each attack on the images. The result is deterministic.
func Measure(ctx context.Context, target Target, images []float32, attacks []Attack) (*Report, error) {
	if ctx == nil {
		return nil, errors.New("attack: no context: give context.Background()")
	}
	if target == nil {
		return nil, errNoTarget
	}
	pixels := volume.Of(target.Shape())
	if pixels == 0 || len(images) == 0 || len(images)%pixels != 0 {
		return nil, fmt.Errorf("attack: %d values are not one or more images of %d", len(images), pixels)
	}
	if len(attacks) == 0 {
		return nil, errors.New("attack: no attacks")
	}
	for i := range attacks {
		if err := attacks[i].Check(); err != nil {
			return nil, fmt.Errorf("attack %d: %w", i, err)
		}
	}
	clean := &sums{}
	attacked := make([]sums, len(attacks))
	for from := 0; from < len(images); from += batchImages * pixels {
		x := images[from:min(from+batchImages*pixels, len(images))]
		if err := measureBatch(ctx, target, x, from/pixels, attacks, clean, attacked); err != nil {
			return nil, fmt.Errorf("attack: %w", err)
		}
	}
	r := &Report{Images: len(images) / pixels, MSE: clean.squares / float64(len(images))}
	for i, a := range attacks {
		r.Attacks = append(r.Attacks, Result{Method: a.Method, Norm: a.Norm, Epsilon: a.Epsilon, Steps: a.Rounds(), Restarts: a.Restarts, StepSize: a.step(),
			MSE: attacked[i].squares / float64(len(images)), CodeChange: attacked[i].mean()})
		if last := r.Attacks[i]; !finite(last.MSE) || !finite(last.CodeChange) {
			return nil, part.KeyErrorf("epsilon", "got %v: the code or the output of attacked images is not finite; lower it", a.Epsilon)
		}
	}
	return r, nil
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// sums contains the sums over the images from which a Result is computed.
type sums struct {
	squares float64 // sum of the squared errors
	changes float64
	codes   int // number of codes that are not 0
}

func (s *sums) mean() float64 {
	if s.codes == 0 {
		return 0
	}
	return s.changes / float64(s.codes)
}

// measureBatch adds one batch to the sums. first is the index of its first image.
func measureBatch(ctx context.Context, target Target, x []float32, first int, attacks []Attack, clean *sums, attacked []sums) error {
	codes, err := clean.add(target, x, x, nil)
	if err != nil {
		return err
	}
	for i := range attacks {
		if err := ctx.Err(); err != nil {
			return err
		}
		moved, err := attacks[i].perturb(ctx, target, x, first)
		if err != nil {
			return err
		}
		if _, err := attacked[i].add(target, moved, x, codes); err != nil {
			return err
		}
	}
	return nil
}

// add adds the errors of a model on images to the sums, and returns the codes of the images. The errors are differences
// from the clean images and from their codes.
func (s *sums) add(target Target, images, clean, cleanCodes []float32) ([]float32, error) {
	codes, err := target.Encode(images)
	if err != nil {
		return nil, err
	}
	outputs, err := target.Decode(codes)
	if err != nil {
		return nil, err
	}
	d := distance(outputs, clean)
	s.squares += d * d
	units := target.Units()
	for at := 0; at < len(cleanCodes); at += units {
		if length := vectors.Norm(cleanCodes[at : at+units]); length > 0 {
			s.changes += distance(codes[at:at+units], cleanCodes[at:at+units]) / length
			s.codes++
		}
	}
	return codes, nil
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

package attack

import (
	"context"
	"fmt"
	"math"
	"slices"

	"tessera/config/part"
	"tessera/internal/parallel/team"
	"tessera/internal/vectors"
	"tessera/internal/volume"
)

// Classifier is a model whose head predicts classes. All slices are row-major.
type Classifier interface {
	// Shape returns the shape of one image.
	Shape() []int
	// Classes returns the number of classes, which is the number of logits of an image.
	Classes() int
	// Logits returns the logits of images. They are valid until the next call of a method.
	Logits(images []float32) ([]float32, error)
}

// WhiteBox is a classifier whose gradients are available.
type WhiteBox interface {
	Classifier
	// Gradient returns the gradient of an objective with respect to the images, and the logits of the images. Both are
	// valid until the next call of a method. The objective is summed over the images. targets are the classes of the
	// images as one-hot rows, (n, classes).
	Gradient(objective Objective, images, targets []float32) (gradient, logits []float32, err error)
}

// Trial is one attack on a classifier. The methods fgsm and pgd are those of [Attack], with the gradient of Objective.
type Trial struct {
	Attack
	Objective   Objective // CrossEntropy or Margin; "" means CrossEntropy
	RandomStart bool      // the first start of pgd is a random point of the ball, too, and not the clean image
	Queries     int       // maximum number of queries per image for square, score and decision; 0 means 1000
	Estimator   Estimator // estimator of the gradient for score; "" means NES
	Samples     int       // number of directions per estimate for nes and spsa; 0 means 20
	Keep        int       // number of images, from the first, whose examples the result has
	Early       bool      // pgd stops at the first misclassification of an image: the accuracy is computed faster, but the risk is underestimated
}

// Check returns the first invalid setting as a part.KeyError.
func (t *Trial) Check() error {
	if t.Objective != "" && t.Objective != CrossEntropy && t.Objective != Margin {
		return part.KeyErrorf("objective", "got %v, want %v", t.Objective, []Objective{CrossEntropy, Margin})
	}
	if t.RandomStart && t.Method != PGD {
		return part.KeyErrorf("random_start", "%s starts from the clean image", t.Method)
	}
	if t.Early && t.Method != PGD {
		return part.KeyErrorf("early", "%s takes one step", t.Method)
	}
	if !t.Method.blackBox() {
		return t.Attack.Check()
	}
	switch {
	case t.Queries < 0 || t.Queries > mostQueries:
		return part.KeyErrorf("queries", "got %d, want in [1,%d], or 0 for %d", t.Queries, mostQueries, usualQueries)
	case t.Estimator != "" && !slices.Contains(t.Estimator.Choices(), string(t.Estimator)):
		return part.KeyErrorf("estimator", "got %v, want one of %v", t.Estimator, t.Estimator.Choices())
	case t.Samples < 0 || 2*t.Samples+1 > mostQueries:
		return part.KeyErrorf("samples", "got %d, want at least 1, or 0 for %d", t.Samples, usualSamples)
	case t.Restarts != 0:
		return part.KeyErrorf("restarts", "got %d, want 0: %s has none", t.Restarts, t.Method)
	}
	a := t.Attack // the norm, the ball and the steps have the same rules as in pgd
	a.Method, a.Steps = PGD, 1
	return a.Check()
}

// subject is a classifier with the images of a trial.
type subject struct {
	ctx            context.Context
	model          Classifier
	images         []float32 // clean images
	labels         []int
	pixels, inputs int // number of values of an image; number of images
}

// atOnce is the maximum number of images that a classifier computes together.
const atOnce = 500

// batches calls f with the given indices in batches of equal size, so that one compiled program suffices. The last
// batch is padded with the first indices. Only the first n indices of a batch count.
func (s *subject) batches(indices []int, f func(batch []int, n int) error) error {
	size := min(atOnce, s.inputs)
	for from := 0; from < len(indices); from += size {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		batch := slices.Clone(indices[from:min(from+size, len(indices))])
		n := len(batch)
		for len(batch) < size {
			batch = append(batch, indices[len(batch)%n])
		}
		if err := f(batch, n); err != nil {
			return err
		}
	}
	return nil
}

// image returns image i of values.
func (s *subject) image(values []float32, i int) []float32 {
	return values[i*s.pixels : (i+1)*s.pixels]
}

// gathered returns copies of the images with the given indices.
func (s *subject) gathered(values []float32, indices []int) []float32 {
	x := make([]float32, len(indices)*s.pixels)
	for k, i := range indices {
		copy(s.image(x, k), s.image(values, i))
	}
	return x
}

// classes returns the classes of the images with the given indices.
func (s *subject) classes(indices []int) []int {
	labels := make([]int, len(indices))
	for k, i := range indices {
		labels[k] = s.labels[i]
	}
	return labels
}

// outcomes contains the results for images under attack, one element per image.
type outcomes struct {
	wrong  []bool
	margin []float64 // max_{j != c} z_j - z_c
	loss   []float64 // -log p_c
}

// judge returns the outcomes of the images x with the given labels.
func (s *subject) judge(model Classifier, x []float32, labels []int) (outcomes, error) {
	o := outcomes{make([]bool, len(labels)), make([]float64, len(labels)), make([]float64, len(labels))}
	logits, err := model.Logits(x)
	if err != nil {
		return o, err
	}
	classes := model.Classes()
	for i, c := range labels {
		z := logits[i*classes : (i+1)*classes]
		best, err := vectors.Class(z)
		if err != nil {
			return o, fmt.Errorf("an image has %w", err)
		}
		o.margin[i], o.loss[i], o.wrong[i] = margin(z, c), logLoss(z, c), best != c
	}
	return o, nil
}

// margin returns max_{j != c} z_j - z_c.
func margin(z []float32, c int) float64 {
	most := math.Inf(-1)
	for j, v := range z {
		if j != c {
			most = max(most, float64(v))
		}
	}
	return most - float64(z[c])
}

// logLoss returns -log softmax(z)_c.
func logLoss(z []float32, c int) float64 {
	most, sum := float64(slices.Max(z)), 0.0
	for _, v := range z {
		sum += math.Exp(float64(v) - most)
	}
	return most + math.Log(sum) - float64(z[c])
}

// oneHot returns the classes of images as one-hot rows.
func oneHot(labels []int, classes int) []float32 {
	rows := make([]float32, len(labels)*classes)
	for i, c := range labels {
		rows[i*classes+c] = 1
	}
	return rows
}

// Follow moves complete images x, the starting points, by all steps of the attack.
func (t *Trial) Follow(model WhiteBox, x, clean []float32, labels []int) error {
	pixels, targets := volume.Of(model.Shape()), oneHot(labels, model.Classes())
	for range t.Rounds() {
		gradient, _, err := model.Gradient(t.Objective, x, targets)
		if err != nil {
			return err
		}
		team.For(len(labels), 32, func(from, to int) {
			from, to = from*pixels, to*pixels
			t.Move(x[from:to], clean[from:to], gradient[from:to], pixels)
		})
	}
	return nil
}

// settle moves images exactly into the ball and into the range of pixel values, because float32 arithmetic may leave
// the ball by rounding. The ball is measured in float64.
func (a *Attack) settle(x, clean []float32, pixels int) {
	team.For(len(x)/pixels, 32, func(from, to int) {
		for at := from * pixels; at < to*pixels; at += pixels {
			if a.Norm == L2 {
				a.settleL2(x[at:at+pixels], clean[at:at+pixels])
			} else {
				a.settleLinf(x[at:at+pixels], clean[at:at+pixels])
			}
		}
	})
}

func (a *Attack) settleLinf(x, clean []float32) {
	for i, c := range clean {
		v := a.bounded(x[i], c)
		if d := float64(v) - float64(c); math.Abs(d) > a.Epsilon {
			v = float32(float64(c) + math.Copysign(a.Epsilon, d)) // start next to the bound, so that few steps are needed
			for math.Abs(float64(v)-float64(c)) > a.Epsilon {
				v = math.Nextafter32(v, c)
			}
		}
		x[i] = v
	}
}

func (a *Attack) settleL2(x, clean []float32) {
	for i, c := range clean {
		x[i] = a.bounded(x[i], c)
	}
	for shrink := 1 - 1e-7; ; shrink -= 1e-7 {
		d := distance(x, clean)
		if d <= a.Epsilon {
			break
		}
		factor := shrink * a.Epsilon / d
		for i, c := range clean {
			x[i] = a.bounded(c+float32(factor*(float64(x[i])-float64(c))), c)
		}
	}
}

// largest returns the largest norm of the differences between images and clean images, in float64. It returns an error
// if one of them exceeds the ball, or if a pixel leaves the range of pixel values.
func (a *Attack) largest(x, clean []float32, pixels int) (most float64, err error) {
	for at := 0; at < len(x); at += pixels {
		one, of := x[at:at+pixels], clean[at:at+pixels]
		d := 0.0
		if a.Norm == L2 {
			d = distance(one, of)
		}
		for i, v := range one {
			if a.Norm == LInf {
				d = max(d, math.Abs(float64(v)-float64(of[i])))
			}
			if v != a.bounded(v, of[i]) {
				return 0, fmt.Errorf("%s: a pixel of image %d has the value %g, outside of the range of pixels", a.Method, at/pixels, v)
			}
		}
		if !(d <= a.Epsilon) {
			return 0, fmt.Errorf("%s: the example of image %d is %g away from it, more than %g", a.Method, at/pixels, d, a.Epsilon)
		}
		most = max(most, d)
	}
	return most, nil
}

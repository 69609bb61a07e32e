// Package attack computes adversarial examples and measures their effect: images that hardly differ from clean ones,
// but that a model reconstructs or classifies badly.
//
// An adversarial example x' = x + d lies in a [Ball] around a clean image x. An [Attack], a registered part, looks for the worst one:
// that with the largest error between the model's output for x' and the clean x, or with the largest [Objective] of a head. The model
// answers and computes gradients with respect to x'; the package does not depend on its graph.
package attack

import (
	"context"
	"fmt"
	"slices"

	"tessera/config/part"
)

// Attack looks for the worst examples in balls around clean samples. Its tagged fields are its settings.
type Attack interface {
	// Perturb moves x, copies of the clean samples of the task, to the worst examples that it finds. They lie in the ball up to the rounding
	// of float32. Random numbers come from the seed of the task.
	Perturb(t *Task, x []float32) error
}

// Iterative is an attack whose starts take steps of the same length along gradients. Adversarial training uses it.
type Iterative interface {
	Attack
	// Plan returns the number and the length of the steps in a ball of radius epsilon. share in (0,1] is the part of its final size that
	// the ball has: a training may begin with smaller balls.
	Plan(epsilon, share float64) (steps int, length float64)
	// StartsAtRandom reports whether the first start is a random point of the ball, not the clean image.
	StartsAtRandom() bool
}

// BlackBox is an attack on the predictions of a classifier that uses its answers to queries, one image each, and no gradients.
type BlackBox interface {
	Attack
	// Budget returns the maximum number of queries for one image.
	Budget() int
}

// Suited is an attack that cannot change every kind of sample.
type Suited interface {
	// Suits returns an error for samples of a shape.
	Suits(b Ball, shape []int) error
}

// Registry contains the attacks.
var Registry = part.New[Attack]("attack")

// Name is the name of an attack.
type Name string

// Choices lists the attacks.
func (Name) Choices() []string { return Registry.Names() }

// Trial is one attack with what it is asked for.
type Trial struct {
	Attack Attack
	Ball
	Objective Objective // of a head: CrossEntropy or Margin; "" means CrossEntropy
	Seed      uint64
	Keep      int // number of images, from the first, whose examples the result has
}

// Name returns the name of the attack, "" for one that is not registered.
func (t *Trial) Name() string { return Registry.NameOf(t.Attack) }

// Check returns the first invalid setting as a part.KeyError.
func (t *Trial) Check() error {
	if t.Attack == nil {
		return part.KeyErrorf("attack", "got none, want one of %v", Registry.Names())
	}
	if t.Objective != "" && t.Objective != CrossEntropy && t.Objective != Margin {
		return part.KeyErrorf("objective", "got %v, want %v", t.Objective, []Objective{CrossEntropy, Margin})
	}
	if c, ok := t.Attack.(interface{ Check() error }); ok {
		if err := c.Check(); err != nil {
			return err
		}
	}
	return t.Ball.Check()
}

// Suits returns an error if the attack cannot change images of a shape.
func (t *Trial) Suits(shape []int) error {
	if s, ok := t.Attack.(Suited); ok {
		return s.Suits(t.Ball, shape)
	}
	return nil
}

// Perturb returns the adversarial examples of clean images for the reconstruction of a model. The random points of an image depend on the
// seed and on the index of the image.
func (t *Trial) Perturb(ctx context.Context, target Target, clean []float32) ([]float32, error) {
	task, err := t.reconstruction(ctx, target, clean)
	if err != nil {
		return nil, err
	}
	x := slices.Clone(clean)
	return x, t.Attack.Perturb(task, x)
}

// examples returns the examples of a task, exactly in the ball, and the largest norm of a perturbation.
func (t *Trial) examples(task *Task) (x []float32, largest float64, err error) {
	x = slices.Clone(task.Clean)
	if err = t.Attack.Perturb(task, x); err == nil {
		t.settle(x, task.Clean, task.Pixels)
		largest, err = t.largest(x, task.Clean, task.Pixels)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", t.Name(), err)
	}
	return x, largest, nil
}

// within returns an error for a whole number outside of [low, high].
func within(key string, got, low, high int) error {
	if got < low || got > high {
		return part.KeyErrorf(key, "got %d, want in [%d,%d]", got, low, high)
	}
	return nil
}

package hooks

import (
	"fmt"
	"math"

	"tessera/attack"
	"tessera/parallel/team"
)

// Adversarial trains a model on adversarial examples. The first images of every (shuffled) mini-batch are replaced by
// adversarial examples for the current parameters; the model must reconstruct the clean images. The attack of package
// attack computes the examples from the gradient of the reconstruction error with respect to the images, in inference mode:
// without noise and with running averages. The procedure is deterministic.
//
// Source: Goodfellow, Shlens and Szegedy, Explaining and Harnessing Adversarial Examples, 2015; Madry et al., Towards Deep
// Learning Models Resistant to Adversarial Attacks, 2018.
type Adversarial struct {
	attack.Attack
	Share float64 `toml:"share" want:"in (0,1]" doc:"fraction of the mini-batch that is replaced by adversarial examples; at least one image"`
}

func init() {
	Registry.Register("adversarial", "trains on adversarial examples",
		func() Hook { return &Adversarial{Attack: attack.Default(), Share: 1} })
}

// Distorts implements [Distorting].
func (*Adversarial) Distorts() {}

// NeedsSteps implements [NeedsSteps].
func (a *Adversarial) NeedsSteps() (problem, hint string) {
	return "adversarial examples change with the parameters, but the objective of %s must not change between evaluations", "remove the hook"
}

// Stage implements [Staged].
func (*Adversarial) Stage() Stage { return Distort }

// Attach implements [Hook].
func (a *Adversarial) Attach(t Training) (*Active, error) {
	h := &adversary{Adversarial: a, training: t}
	h.update = h.updateRows
	return &Active{Begin: h.begin, BeforeStep: h.attack}, nil
}

// adversary is the active form.
type adversary struct {
	*Adversarial
	training Training
	pixels   int
	program  Program

	x, clean, gradient []float32        // of this step
	update             func(thread int) // bound once: a method value allocates
}

func (h *adversary) begin() (err error) {
	h.pixels = h.training.Images().Pixels()
	sizes := h.training.BatchSizes()
	for i, size := range sizes {
		sizes[i] = h.examples(size)
	}
	if h.program, err = h.training.Compile(ImageGradient, sizes...); err != nil {
		return fmt.Errorf("attack: %w", err)
	}
	return nil
}

// examples is the number of images of a batch that are replaced.
func (h *adversary) examples(size int) int {
	return min(size, max(1, int(math.Round(h.Share*float64(size)))))
}

// attack replaces the first images of a batch.
func (h *adversary) attack(s *Step) (err error) {
	n := h.examples(s.Size) * h.pixels
	h.x, h.clean = s.Images[:n], s.Clean[:n]
	for range h.Rounds() {
		if h.gradient, err = h.program.Run(h.x, h.clean); err != nil {
			return err
		}
		h.training.Do(h.update)
	}
	return nil
}

// updateRows updates a thread's share of the images. Each image is updated separately: the number of threads changes no bit.
func (h *adversary) updateRows(thread int) {
	from, to := team.EvenShare(len(h.x)/h.pixels, thread, h.training.Threads())
	from, to = from*h.pixels, to*h.pixels
	h.Move(h.x[from:to], h.clean[from:to], h.gradient[from:to], h.pixels)
}

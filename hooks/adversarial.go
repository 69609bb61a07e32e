package hooks

import (
	"fmt"
	"math"
	"slices"

	"tessera/attack"
	"tessera/config/part"
	"tessera/internal/parallel/team"
)

// Adversarial trains a model on adversarial examples. In every (shuffled) mini-batch, adversarial examples for the current
// parameters replace the first images; the model must reconstruct the clean images, or predict their classes. The attack (package
// attack) computes the examples from a gradient with respect to the images, in inference mode: without noise and with
// running averages. The gradient is that of the reconstruction error, or, with the key on, that of an objective of a head.
// Perturbed values stay in [0,1], or in the range of the training samples, after `scale`, if it is larger. Only random starts use random
// numbers, which are determined by the seed of the run.
//
// Source: Goodfellow, Shlens and Szegedy, Explaining and Harnessing Adversarial Examples, 2015; Madry et al., Towards Deep
// Learning Models Resistant to Adversarial Attacks, 2018; Zhang et al., Theoretically Principled Trade-off between Robustness
// and Accuracy, 2019 (objective kl, with the loss trades).
type Adversarial struct {
	Attack attack.Attack `toml:"attack" doc:"how examples are computed: an attack that takes steps along gradients"`
	attack.Ball
	Share     float64          `toml:"share" want:"in (0,1]" doc:"fraction of the mini-batch that is replaced by adversarial examples; at least one sample"`
	On        string           `toml:"on" doc:"the head that is attacked; by default the output, or the head that is compared with labels if no loss compares the output with the samples"`
	Objective attack.Objective `toml:"objective" doc:"what the attack on a head maximises: cross_entropy, margin, or kl, the divergence from the prediction for the clean sample"`
	Warmup    int              `toml:"warmup" want:">= 0" doc:"number of epochs in which epsilon and the step size grow linearly from 0"`
}

func init() {
	Registry.Register("adversarial", "trains on adversarial examples", func() Hook {
		return &Adversarial{Attack: &attack.PGD{Steps: 10}, Ball: attack.Ball{Norm: attack.LInf, Epsilon: 0.05}, Share: 1, Objective: attack.CrossEntropy}
	})
}

// Check reports the first invalid setting as a part.KeyError.
func (a *Adversarial) Check() error {
	steps, ok := a.Attack.(attack.Iterative)
	if !ok {
		return part.KeyErrorf("attack", "got %q, want one that takes steps along gradients, such as fgsm or pgd", attack.Registry.NameOf(a.Attack))
	}
	if pgd, ok := a.Attack.(*attack.PGD); ok && (pgd.Restarts > 0 || pgd.StopEarly) {
		return part.KeyErrorf("attack", "restarts and stop_early: a training has one start with all steps; leave them out")
	}
	trial := attack.Trial{Attack: a.Attack, Ball: a.Ball}
	switch err := trial.Check(); {
	case err != nil:
		return err
	case a.Objective != "" && !slices.Contains(a.Objective.Choices(), string(a.Objective)):
		return part.KeyErrorf("objective", "got %v, want one of %v", a.Objective, a.Objective.Choices())
	case a.Objective == attack.KL && !steps.StartsAtRandom():
		return part.KeyErrorf("attack", "random_start: the objective kl has no gradient at the clean sample: give attack = { kind = \"pgd\", random_start = true }")
	}
	return nil
}

func (*Adversarial) Distorts() {}

func (a *Adversarial) NeedsSteps() (problem, hint string) {
	return "adversarial examples change with the parameters, but the objective of %s must not change between evaluations", "remove the hook"
}

func (*Adversarial) Stage() Stage { return Distort }

func (a *Adversarial) Attach(t Training) (*Active, error) {
	h := &adversary{Adversarial: a, training: t, by: a.Attack.(attack.Iterative)}
	h.update = h.updateRows
	return &Active{Begin: h.begin, BeforeStep: h.attack}, nil
}

// adversary is the hook's state in a training.
type adversary struct {
	*Adversarial
	training Training
	by       attack.Iterative
	now      attack.Ball // the ball of this step
	length   float64     // length of a step of the attack
	pixels   int
	span     [2]float32  // range of perturbed values; zeros mean [0,1]
	program  Program     // program for attacks on the reconstruction; else nil
	head     HeadProgram // program for attacks on a head; else nil

	x, clean, gradient []float32        // images and gradient of this step
	targets            []float32        // targets of the head
	update             func(thread int) // stored because each method value allocates
}

func (h *adversary) begin() (err error) {
	images := h.training.Images()
	h.pixels = images.Pixels()
	if low, high := images.Range(); low < 0 || high > 1 {
		h.span = [2]float32{low, high}
	}
	sizes := h.training.BatchSizes()
	for i, size := range sizes {
		sizes[i] = h.examples(size)
	}
	if h.On == "" {
		h.program, err = h.training.Compile(ImageGradient, sizes...)
	} else {
		h.head, err = h.training.CompileHead(h.On, h.Objective, sizes...)
	}
	if err != nil {
		return fmt.Errorf("attack: %w", err)
	}
	return nil
}

// examples returns the number of images in a batch that adversarial examples replace.
func (h *adversary) examples(size int) int {
	return min(size, max(1, int(math.Round(h.Share*float64(size)))))
}

// attack replaces the first images of a batch.
func (h *adversary) attack(s *Step) (err error) {
	images := h.examples(s.Size)
	n := images * h.pixels
	h.x, h.clean = s.Images[:n], s.Clean[:n]
	share := 1.0
	if s.Epochs < float64(h.Warmup) {
		share = s.Epochs / float64(h.Warmup)
	}
	h.now = attack.Ball{Norm: h.Norm, Epsilon: h.Epsilon * share, Range: h.span}
	if h.now.Epsilon == 0 {
		return nil
	}
	var steps int
	steps, h.length = h.by.Plan(h.now.Epsilon, share)
	if h.head != nil {
		if err := h.aim(s, images); err != nil {
			return err
		}
	}
	if h.by.StartsAtRandom() {
		h.now.Scatter(h.x, h.clean, h.pixels, h.training.Random(h.training.Step()))
	}
	for range steps {
		if h.head != nil {
			h.gradient, _, err = h.head.Run(h.x, h.targets)
		} else {
			h.gradient, err = h.program.Run(h.x, h.clean)
		}
		if err != nil {
			return err
		}
		h.training.Do(h.update)
	}
	return nil
}

// aim sets the targets of the attack, which moves the predictions away from them: the labels, or for kl the predictions for
// the clean images.
func (h *adversary) aim(s *Step, images int) error {
	if h.Objective != attack.KL {
		if h.targets = s.Labels[:images*(len(s.Labels)/s.Size)]; len(h.targets) == 0 {
			return fmt.Errorf("attack: the objective %s needs labels, which no loss term reads", h.Objective)
		}
		return nil
	}
	_, logits, err := h.head.Run(h.clean, nil)
	if err == nil {
		h.targets = attack.Softmax(logits, len(logits)/images)
	}
	return err
}

// updateRows updates a thread's share of the images. Each image is updated separately, so the result does not depend on the
// number of threads.
func (h *adversary) updateRows(thread int) {
	from, to := team.EvenShare(len(h.x)/h.pixels, thread, h.training.Threads())
	from, to = from*h.pixels, to*h.pixels
	h.now.Move(h.x[from:to], h.clean[from:to], h.gradient[from:to], h.pixels, h.length)
}

package attack

import (
	"context"
	"fmt"
	"math"
	"slices"

	"tessera/config/part"
	"tessera/internal/lists"
	"tessera/internal/parallel/team"
)

func init() {
	Registry.Register("fgsm", "one step of length epsilon along the gradient", func() Attack { return &FGSM{} })
	Registry.Register("pgd", "several steps along gradients, each projected into the ball", func() Attack { return &PGD{Steps: 10} })
}

// FGSM takes one step of length epsilon from the clean image along the gradient g, in the norm of the ball:
//
//	linf: d = epsilon sign(g)        l2: d = epsilon g / |g|
//
// Source: Goodfellow, Shlens and Szegedy, Explaining and Harnessing Adversarial Examples, 2015.
type FGSM struct{}

var _ Iterative = (*FGSM)(nil)

func (f *FGSM) Perturb(t *Task, x []float32) error { return t.climb(x, f, 0, false) }

func (*FGSM) Plan(epsilon, _ float64) (steps int, length float64) { return 1, epsilon }

func (*FGSM) StartsAtRandom() bool { return false }

// PGD takes several steps and projects d back into the ball after each of them:
//
//	linf: d = clip(d + step_size sign(g), -epsilon, epsilon)        l2: d = d + step_size g / |g|, scaled down to epsilon
//
// It starts from the clean image and clips x' to the range of the ball after every step. Only random starts use random numbers. With
// restarts, pgd starts again from random points in the ball and keeps, for each image, the example with the largest error: a single start
// may miss the worst example in the ball.
//
// Source: Madry, Makelov, Schmidt, Tsipras and Vladu, Towards Deep Learning Models Resistant to Adversarial Attacks, 2018.
type PGD struct {
	Steps       int     `toml:"steps" want:"in [1,1000]" doc:"number of steps of pgd"`
	StepSize    float64 `toml:"step_size" want:"> 0" doc:"step size of pgd, in the norm; 2.5 epsilon / steps by default"`
	Restarts    int     `toml:"restarts" want:"in [0,1000]" optional:"true" doc:"further starts of pgd from random points of the ball; each sample keeps its worst example"`
	RandomStart bool    `toml:"random_start" doc:"pgd starts at a random point of the ball around each sample, not at the sample"`
	StopEarly   bool    `toml:"stop_early" optional:"true" doc:"on a head, pgd leaves a sample at its first misclassification: faster, with smaller risks"`
}

var _ Iterative = (*PGD)(nil)

// mostSteps is the maximum number of steps and of restarts of an attack. A larger number is probably a typo. It would
// compute for hours.
const mostSteps = 1000

// Check returns the first invalid setting as a part.KeyError.
func (p *PGD) Check() error {
	if !(p.StepSize >= 0) || p.StepSize > math.MaxFloat32 {
		return part.KeyErrorf("step_size", "got %v, want > 0, or 0 for 2.5 epsilon / steps", p.StepSize)
	}
	if err := within("steps", p.Steps, 1, mostSteps); err != nil {
		return err
	}
	return within("restarts", p.Restarts, 0, mostSteps)
}

func (p *PGD) Perturb(t *Task, x []float32) error { return t.climb(x, p, p.Restarts, p.StopEarly) }

func (p *PGD) Plan(epsilon, share float64) (steps int, length float64) {
	if p.StepSize > 0 {
		return p.Steps, p.StepSize * share
	}
	return p.Steps, 2.5 * epsilon / float64(p.Steps)
}

func (p *PGD) StartsAtRandom() bool { return p.RandomStart }

// climb sets x to the worst examples that the starts of an attack find. A misclassified example is worse than one that is not; otherwise the
// one with the larger value is worse. The first start attacks every image, further starts attack the images that are still classified
// correctly. With early an image is left at its first misclassification.
func (t *Task) climb(x []float32, a Iterative, restarts int, early bool) error {
	found, active := newOutcomes(t.Samples), lists.Range(0, t.Samples)
	for start := range restarts + 1 {
		moving, clean := t.gathered(t.Clean, active), t.gathered(t.Clean, active)
		if start > 0 || a.StartsAtRandom() {
			purpose := fmt.Sprintf("restart/%d", start-1)
			team.For(len(active), 32, func(from, to int) {
				for k := from; k < to; k++ {
					t.Scatter(t.Sample(moving, k), t.Sample(clean, k), t.Pixels, t.Random(purpose, active[k]))
				}
			})
		}
		follow := t.Follow
		if early && t.Labels != nil {
			follow = t.race
		}
		if err := follow(a, moving, active); err != nil {
			return err
		}
		if restarts == 0 {
			copy(x, moving)
			return nil
		}
		t.settle(moving, clean, t.Pixels)
		o, err := t.Outcomes(moving, active)
		if err != nil {
			return err
		}
		for k, i := range active {
			if start == 0 || t.worse(o, k, found, i) {
				found.Wrong[i], found.Margin[i], found.Loss[i] = o.Wrong[k], o.Margin[k], o.Loss[k]
				copy(t.Sample(x, i), t.Sample(moving, k))
			}
		}
		active = slices.DeleteFunc(active, func(i int) bool { return found.Wrong[i] })
	}
	return nil
}

// move takes one step for several images.
func (t *Task) move(x, clean, gradient []float32, length float64) {
	team.For(len(x)/t.Pixels, 32, func(from, to int) {
		from, to = from*t.Pixels, to*t.Pixels
		t.Move(x[from:to], clean[from:to], gradient[from:to], t.Pixels, length)
	})
}

// Follow moves x, the starting points, by all steps of one start of an attack.
func (t *Task) Follow(a Iterative, x []float32, of []int) error {
	clean := t.gathered(t.Clean, of)
	steps, length := a.Plan(t.Epsilon, 1)
	for range steps {
		g, err := t.Gradient(x, of)
		if err != nil {
			return err
		}
		t.move(x, clean, g, length)
	}
	return nil
}

// race is like Follow, but leaves an image that is misclassified. One program for a fixed number of images computes the gradients. When an
// image is done, the next one takes its place.
func (t *Task) race(a Iterative, x []float32, of []int) error {
	t.aims = true
	steps, length := a.Plan(t.Epsilon, 1)
	places := min(atOnce, t.Samples)
	rows, at, taken := slices.Repeat([]int{-1}, places), slices.Repeat([]int{-1}, places), make([]int, places) // row -1 means that the place is free
	moving, start := make([]float32, places*t.Pixels), make([]float32, places*t.Pixels)
	leave := func(p int) {
		copy(t.Sample(x, rows[p]), t.Sample(moving, p))
		rows[p], at[p] = -1, -1
	}
	for next, busy := 0, 0; ; busy = 0 {
		if err := t.ctx.Err(); err != nil {
			return err
		}
		for p := range rows {
			if rows[p] < 0 && next < len(of) {
				rows[p], at[p], taken[p] = next, of[next], 0
				copy(t.Sample(moving, p), t.Sample(x, next))
				copy(t.Sample(start, p), t.Sample(t.Clean, of[next]))
				next++
			}
			if rows[p] >= 0 {
				busy++
			}
		}
		if busy == 0 {
			return nil
		}
		g, o, err := t.victim.gradient(moving, at)
		if err != nil {
			return err
		}
		for p := range rows {
			if rows[p] >= 0 && o.Wrong[p] {
				leave(p)
			}
		}
		t.move(moving, start, g, length)
		for p := range rows {
			if taken[p]++; rows[p] >= 0 && taken[p] == steps {
				leave(p)
			}
		}
	}
}

// Gradients returns the gradient of the cross entropy of images with respect to them. labels are their classes.
func Gradients(model WhiteBox, images []float32, labels []int) ([]float32, error) {
	t, err := NewTask(context.Background(), Trial{}, model, images, labels)
	if err != nil {
		return nil, err
	}
	return t.Gradient(images, lists.Range(0, t.Samples))
}

package attack_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tessera/attack"
	"tessera/config/part"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
)

// scaling is a linear model in plain loops: h = x, output = factor x. Its error at x+d is |(factor-1) x + factor d|².
type scaling struct {
	factor float64
	failed error
}

func (scaling) Shape() []int { return []int{2, 3} }
func (scaling) Units() int   { return 6 }

func (s scaling) Encode(images []float32) ([]float32, error) { return slices.Clone(images), nil }

func (s scaling) Decode(codes []float32) ([]float32, error) {
	images := slices.Clone(codes)
	for i := range images {
		images[i] = float32(s.factor * float64(images[i]))
	}
	return images, nil
}

func (s scaling) InputGradient(images, clean []float32) ([]float32, error) {
	gradient := make([]float32, len(images))
	for i, v := range images {
		gradient[i] = float32(2 * s.factor * (s.factor*float64(v) - float64(clean[i])))
	}
	return gradient, s.failed
}

// in returns a trial in a ball.
func in(a attack.Attack, norm attack.Norm, epsilon float64) attack.Trial {
	return attack.Trial{Attack: a, Ball: attack.Ball{Norm: norm, Epsilon: epsilon}}
}

// usual is a trial with usual settings.
func usual() attack.Trial { return in(&attack.PGD{Steps: 10}, attack.LInf, 0.05) }

// images returns n values in [low, high].
func images(n int, low, high float64) []float32 {
	r := rand.New(rand.NewPCG(1, 2))
	x := lists.Of(n*6, func(int) float32 { return float32(low + (high-low)*r.Float64()) })
	return x
}

// The worst perturbation of a linear model is known: along x in the l2 ball, and away from 0 at every pixel in the linf
// ball.
func TestAttacksOfALinearModelAreTheWorstOnes(t *testing.T) {
	const epsilon, factor, n = 0.05, 1.5, 4
	x := images(n, 0.2, 0.8)
	worst := map[attack.Norm]float64{}
	clean := 0.0
	for at := 0; at < len(x); at += 6 {
		length := 0.0
		for _, v := range x[at : at+6] {
			length += float64(v) * float64(v)
			worst[attack.LInf] += math.Pow((factor-1)*float64(v)+factor*epsilon, 2) / (n * 6)
			clean += math.Pow((factor-1)*float64(v), 2) / (n * 6)
		}
		worst[attack.L2] += math.Pow((factor-1)*math.Sqrt(length)+factor*epsilon, 2) / (n * 6)
	}
	for norm, want := range worst {
		for _, method := range []attack.Attack{&attack.FGSM{}, &attack.PGD{Steps: 7}} {
			r, err := attack.Measure(context.Background(), scaling{factor: factor}, x, []attack.Trial{in(method, norm, epsilon)})
			fatal.If(t, err)
			expect.Near(t, r.Attacks[0].MSE, want, 1e-6*want, method, norm, "mse")
			expect.Near(t, r.MSE, clean, 1e-6*clean, method, norm, "clean mse")
		}
	}
}

func TestCodeChangeIsRelativeToTheCode(t *testing.T) {
	x := images(3, 0.3, 0.6)
	clear(x[6:12]) // an image whose code is 0 has no relative change of the code
	r, err := attack.Measure(context.Background(), scaling{factor: 1.5}, x, []attack.Trial{in(&attack.FGSM{}, attack.L2, 0.1)})
	fatal.If(t, err)
	want := 0.0
	for _, at := range []int{0, 12} {
		squares := 0.0
		for _, v := range x[at : at+6] {
			squares += float64(v) * float64(v)
		}
		want += 0.1 / math.Sqrt(squares) / 2
	}
	expect.Near(t, r.Attacks[0].CodeChange, want, 1e-6)
}

// bumpy is a model with gradients of any direction and size, including zero and infinite ones.
type bumpy struct{ scaling }

func (bumpy) InputGradient(images, _ []float32) ([]float32, error) {
	gradient := lists.Map(images, func(v float32) float32 { return float32(math.Sin(1e4 * float64(v))) })
	clear(gradient[:6])
	for i := range 6 {
		gradient[6+i] *= 1e-30
		gradient[12+i] *= 1e30
	}
	gradient[18] = float32(math.Inf(1))
	gradient[24] = float32(math.NaN())
	return gradient, nil
}

func TestAttackedImagesStayInTheBallAndInRange(t *testing.T) {
	x := images(40, 0, 1)
	for i := 6 * 20; i < 6*30; i++ { // black and white images
		x[i] = float32(i % 2)
	}
	x[6*30], x[6*31] = -0.5, 1.75 // outside of the range: these pixels may not move further away from it
	for _, norm := range []attack.Norm{attack.LInf, attack.L2} {
		for _, epsilon := range []float64{1e-3, 0.1, 0.7, 5} {
			for _, a := range []attack.Attack{&attack.FGSM{}, &attack.PGD{Steps: 20}, &attack.PGD{Steps: 5, StepSize: 3 * epsilon}} {
				trial := in(a, norm, epsilon)
				moved, err := trial.Perturb(t.Context(), bumpy{}, x)
				fatal.If(t, err)
				for at := 0; at < len(x); at += 6 {
					squares, largest := 0.0, 0.0
					for i := at; i < at+6; i++ {
						v, d := moved[i], math.Abs(float64(moved[i])-float64(x[i]))
						squares, largest = squares+d*d, max(largest, d)
						if !(v >= min(x[i], 0) && v <= max(x[i], 1)) {
							t.Fatalf("%+v: pixel %d is %v, clean %v", a, i, v, x[i])
						}
					}
					distance := largest
					if norm == attack.L2 {
						distance = math.Sqrt(squares)
					}
					if distance > epsilon*(1+1e-6)+1e-7 { // allows for the rounding of pixels
						t.Fatalf("%+v: image %d moves by %v", a, at/6, distance)
					}
					if at == 0 && distance != 0 {
						t.Errorf("%+v: an image without a gradient moves by %v", a, distance)
					}
				}
			}
		}
	}
}

func TestImagesAreAttackedEachByItself(t *testing.T) {
	x := images(5, 0, 1)
	a := usual()
	together, err := a.Perturb(t.Context(), scaling{factor: 0.5}, x)
	fatal.If(t, err)
	for at := 0; at < len(x); at += 6 {
		alone, err := a.Perturb(t.Context(), scaling{factor: 0.5}, x[at:at+6])
		fatal.If(t, err)
		expect.Slice(t, alone, together[at:at+6], "image", at/6)
	}
	if slices.Equal(together, x) || !slices.Equal(x, images(5, 0, 1)) {
		t.Error("the clean images must stay as they are, and the attacked ones differ")
	}
}

func TestMeasureRefusesWhatItCannotMeasure(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	failed := errors.New("no gradient today")
	some := []attack.Trial{usual()}
	for want, call := range map[string]func() error{
		"not one or more samples": func() error {
			_, err := attack.Measure(context.Background(), scaling{}, make([]float32, 7), some)
			return err
		},
		"no attacks": func() error {
			_, err := attack.Measure(context.Background(), scaling{}, images(1, 0, 1), nil)
			return err
		},
		"attack 1: epsilon: got 0, want > 0": func() error {
			_, err := attack.Measure(context.Background(), scaling{}, images(1, 0, 1), append(some, in(&attack.PGD{Steps: 1}, attack.L2, 0)))
			return err
		},
		"no gradient today": func() error {
			_, err := attack.Measure(context.Background(), scaling{failed: failed}, images(1, 0, 1), some)
			return err
		},
		"canceled": func() error { _, err := attack.Measure(ctx, scaling{}, images(1, 0, 1), some); return err },
	} {
		expect.Error(t, call(), want)
	}
}

func TestCheckNamesTheKey(t *testing.T) {
	good := usual()
	expect.NoError(t, good.Check(), "the usual one")
	score := func(change func(*attack.Score)) attack.Trial {
		s := &attack.Score{Queries: 10, Estimator: attack.NES, Samples: 2}
		change(s)
		return in(s, attack.LInf, 0.1)
	}
	for key, list := range map[string][]attack.Trial{
		"attack": {in(nil, attack.LInf, 0.1)}, "norm": {in(&attack.FGSM{}, "l1", 0.1)}, "step_size": {in(&attack.PGD{Steps: 1, StepSize: -1}, attack.LInf, 0.1)},
		"epsilon": {in(&attack.FGSM{}, attack.L2, math.NaN()), in(&attack.Decision{Queries: 5}, attack.L2, 0), in(&attack.FGSM{}, attack.LInf, 1e39)},
		"steps":   {in(&attack.PGD{}, attack.LInf, 0.1)}, "restarts": {in(&attack.PGD{Steps: 1, Restarts: -1}, attack.LInf, 0.1)},
		"queries": {in(&attack.Square{}, attack.LInf, 0.1), in(&attack.Decision{Queries: -1}, attack.LInf, 0.1), score(func(s *attack.Score) { s.Queries = 0 })},
		"samples": {score(func(s *attack.Score) { s.Samples = 0 })}, "estimator": {score(func(s *attack.Score) { s.Estimator = "guess" })},
		"objective": {{Attack: &attack.FGSM{}, Ball: good.Ball, Objective: attack.KL}},
	} {
		for _, trial := range list {
			var wrong part.KeyError
			if err := trial.Check(); !errors.As(err, &wrong) || wrong.Key != key {
				t.Errorf("%s: got %v", key, err)
			}
		}
	}
}

func TestMoveAllocatesNothing(t *testing.T) {
	x, clean, gradient := images(4, 0, 1), images(4, 0, 1), images(4, -1, 1)
	for _, norm := range []attack.Norm{attack.LInf, attack.L2} {
		b := attack.Ball{Norm: norm, Epsilon: 0.1}
		expect.Equal(t, testing.AllocsPerRun(10, func() { b.Move(x, clean, gradient, 6, 0.05) }), 0, norm)
	}
}

// A model that only makes images brighter has its largest errors on brighter images.
func ExampleTrial_Perturb() {
	t := attack.Trial{Attack: &attack.FGSM{}, Ball: attack.Ball{Norm: attack.LInf, Epsilon: 0.25}}
	x, _ := t.Perturb(context.Background(), scaling{factor: 2}, []float32{0, 0.25, 0.5, 0.625, 0.875, 1})
	fmt.Println(x)
	// Output: [0 0.5 0.75 0.875 1 1]
}

// humped is a model with the output v³ for the value v. Its error has a local maximum below the clean value and grows
// without bound above.
type humped struct{ scaling }

func (humped) value(v float64) float64 { return v * v * v }

func (h humped) Decode(codes []float32) ([]float32, error) {
	images := slices.Clone(codes)
	for i, v := range images {
		images[i] = float32(h.value(float64(v)))
	}
	return images, nil
}

func (h humped) InputGradient(images, clean []float32) ([]float32, error) {
	gradient := make([]float32, len(images))
	for i, v := range images {
		gradient[i] = float32(6 * (h.value(float64(v)) - float64(clean[i])) * float64(v) * float64(v))
	}
	return gradient, nil
}

// At the clean value 0.1 the gradient leads to the local maximum, so a single start ends there. Larger errors lie
// beyond a local minimum.
func TestRestartsFindWorseExamples(t *testing.T) {
	x := lists.Of(6*4, func(int) float32 { return 0.1 })
	x[6] = 0.4
	for _, norm := range []attack.Norm{attack.LInf, attack.L2} {
		pgd := &attack.PGD{Steps: 10}
		a := in(pgd, norm, 0.9)
		a.Seed = 3
		if norm == attack.L2 {
			a.Epsilon = 2.2
		}
		errors := func(restarts int) (list []float64, moved []float32) {
			pgd.Restarts = restarts
			moved, err := a.Perturb(t.Context(), humped{}, x)
			fatal.If(t, err)
			y, _ := humped{}.Decode(moved)
			for at := 0; at < len(x); at += 6 {
				sum := 0.0
				for i := at; i < at+6; i++ {
					sum += math.Pow(float64(y[i]-x[i]), 2)
				}
				list = append(list, sum)
			}
			return list, moved
		}
		one, _ := errors(0)
		more, moved := errors(5)
		_, again := errors(5)
		expect.Slice(t, moved, again, norm, "equal seeds give other examples")
		worse := 0
		for i := range one {
			if more[i] < one[i] {
				t.Errorf("%s: image %d: error %g with restarts, %g without", norm, i, more[i], one[i])
			}
			if more[i] > 2*one[i] {
				worse++
			}
		}
		if worse < 3 {
			t.Errorf("%s: errors %.3g with restarts, %.3g without", norm, more, one)
		}
		if a.Seed++; slices.Equal(moved, func() []float32 { _, m := errors(5); return m }()) {
			t.Errorf("%s: another seed gives the same examples", norm)
		}
	}
}

// The reference is the formula, one value at a time. More values than a strip has, clean values outside of the range, and
// gradients that are 0 or NaN.
func TestSignStepsFollowTheFormula(t *testing.T) {
	const n = 2*1024 + 77
	a := attack.Ball{Norm: attack.LInf, Epsilon: 0.1}
	clean, x, gradient := images(n, -0.2, 1.2)[:n], make([]float32, n), images(n, -1, 1)[:n]
	copy(x, clean)
	for i := 0; i < n; i += 5 {
		gradient[i] = 0
		gradient[(i+1)%n] = float32(math.NaN())
	}
	want := slices.Clone(x)
	for step := range 3 {
		for i, c := range clean {
			v := want[i]
			if gradient[i] > 0 {
				v += 0.07
			} else if gradient[i] < 0 {
				v -= 0.07
			}
			v = min(max(v, c-0.1), c+0.1)
			want[i] = min(max(v, min(c, 0)), max(c, 1))
		}
		a.Move(x, clean, gradient, n, 0.07)
		for i := range want {
			if x[i] != want[i] {
				t.Fatalf("step %d, value %d: got %v, want %v (clean %v, gradient %v)", step, i, x[i], want[i], clean[i], gradient[i])
			}
		}
		slices.Reverse(gradient)
	}
}

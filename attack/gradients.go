package attack

import (
	"context"
	"fmt"
	"slices"

	"tessera/internal/parallel/team"
	"tessera/internal/random"
)

// byGradient returns the worst adversarial example that fgsm or pgd finds for each image. An example that is
// misclassified is worse than one that is not; otherwise the one with the larger objective is worse. The first start
// attacks every image, further starts attack the images that are still classified correctly. s.model computes the
// objective of the examples.
func (t *Trial) byGradient(s *subject) ([]float32, error) {
	model, ok := s.model.(WhiteBox)
	if !ok {
		return nil, fmt.Errorf("%s needs gradients, which the model does not give", t.Method)
	}
	worst := slices.Clone(s.images)
	found := outcomes{make([]bool, s.inputs), make([]float64, s.inputs), make([]float64, s.inputs)}
	active := indices(s.inputs)
	for start := range t.Restarts + 1 {
		x := s.gathered(s.images, active)
		team.For(len(active), 32, func(from, to int) {
			for k := from; k < to; k++ {
				t.begin(s.image(x, k), s.image(s.images, active[k]), start, active[k])
			}
		})
		follow := t.march
		if t.Early {
			follow = t.race
		}
		if err := follow(s, model, x, active); err != nil {
			return nil, err
		}
		err := s.batches(indices(len(active)), func(batch []int, n int) error {
			of := make([]int, len(batch))
			for k, b := range batch {
				of[k] = active[b]
			}
			one := s.gathered(x, batch)
			t.settle(one, s.gathered(s.images, of), s.pixels)
			o, err := s.judge(model, one, s.classes(of))
			for k, i := range of[:n] {
				if err == nil && (start == 0 || worse(t.Objective, o, k, found, i)) {
					found.wrong[i], found.margin[i], found.loss[i] = o.wrong[k], o.margin[k], o.loss[k]
					copy(s.image(worst, i), s.image(one, k))
				}
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		active = slices.DeleteFunc(active, func(i int) bool { return found.wrong[i] })
	}
	return worst, nil
}

// begin moves x, which equals clean, to the point from which a start attacks image i.
func (t *Trial) begin(x, clean []float32, start, i int) {
	if start > 0 || t.RandomStart {
		t.Scatter(x, clean, len(clean), random.Stream(t.Seed, fmt.Sprintf("attack/restart/%d", start-1), uint64(i)))
	}
}

// march performs all steps on x, the starting points of some of the images. The argument of contains the indices of
// these images.
func (t *Trial) march(s *subject, model WhiteBox, x []float32, of []int) error {
	return s.batches(indices(len(of)), func(batch []int, n int) error {
		images := make([]int, len(batch))
		for k, b := range batch {
			images[k] = of[b]
		}
		moved := s.gathered(x, batch)
		if err := t.Follow(model, moved, s.gathered(s.images, images), s.classes(images)); err != nil {
			return err
		}
		for k, b := range batch[:n] {
			copy(s.image(x, b), s.image(moved, k))
		}
		return nil
	})
}

// race moves x, the starting points of some of the images, until each image is misclassified or has made all steps. The
// argument of contains the indices of these images. One program for a fixed number of images computes the gradients.
// When an image is done, the next one takes its place.
func (t *Trial) race(s *subject, model WhiteBox, x []float32, of []int) error {
	places, classes := min(atOnce, s.inputs), model.Classes()
	type place struct{ image, steps int }
	at := make([]place, places) // image -1 means that the place is free
	moving, clean, targets := make([]float32, places*s.pixels), make([]float32, places*s.pixels), make([]float32, places*classes)
	for p := range at {
		at[p].image = -1
	}
	leave := func(p int) {
		copy(s.image(x, at[p].image), s.image(moving, p))
		at[p].image = -1
	}
	for next, busy := 0, 0; ; busy = 0 {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		for p := range at {
			if at[p].image < 0 && next < len(of) {
				at[p] = place{image: next}
				copy(s.image(moving, p), s.image(x, next))
				copy(s.image(clean, p), s.image(s.images, of[next]))
				clear(targets[p*classes : (p+1)*classes])
				targets[p*classes+s.labels[of[next]]] = 1
				next++
			}
			if at[p].image >= 0 {
				busy++
			}
		}
		if busy == 0 {
			return nil
		}
		gradient, logits, err := model.Gradient(t.Objective, moving, targets)
		if err != nil {
			return err
		}
		for p := range at {
			z := logits[p*classes : (p+1)*classes]
			if at[p].image >= 0 && slices.Index(z, slices.Max(z)) != s.labels[of[at[p].image]] {
				leave(p)
			}
		}
		team.For(places, 32, func(from, to int) {
			from, to = from*s.pixels, to*s.pixels
			t.Move(moving[from:to], clean[from:to], gradient[from:to], s.pixels)
		})
		for p := range at {
			if at[p].steps++; at[p].image >= 0 && at[p].steps == t.Rounds() {
				leave(p)
			}
		}
	}
}

// worse reports whether image k of a is worse for the model than image i of b.
func worse(objective Objective, a outcomes, k int, b outcomes, i int) bool {
	if a.wrong[k] != b.wrong[i] {
		return a.wrong[k]
	}
	if objective == Margin {
		return a.margin[k] > b.margin[i]
	}
	return a.loss[k] > b.loss[i]
}

// indices returns 0, ..., n-1.
func indices(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// Gradients returns the gradient of the cross entropy of images with respect to them. labels are their classes.
func Gradients(model WhiteBox, images []float32, labels []int) ([]float32, error) {
	s, err := newSubject(context.Background(), model, model, images, labels)
	if err != nil {
		return nil, err
	}
	all := make([]float32, len(images))
	err = s.batches(indices(s.inputs), func(batch []int, n int) error {
		gradient, _, err := model.Gradient(CrossEntropy, s.gathered(images, batch), oneHot(s.classes(batch), model.Classes()))
		for k, i := range batch[:n] {
			if err == nil {
				copy(s.image(all, i), s.image(gradient, k))
			}
		}
		return err
	})
	return all, err
}

// Package fit fits readouts of labelled codes: linear support vector machines, logistic regression, nearest centroids and k-means. Everything
// is in float64, and equal inputs give equal bits for any number of processors.
package fit

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"tessera/internal/parallel/team"
)

// Tolerance is LIBLINEAR's default, which the study used.
const Tolerance = 1e-4

// SVM returns the weights of a linear support vector machine, one class against the rest: one row of width weights per class, the bias last. For each
// class, with y = +1 for its images and -1 for the others, it minimises LIBLINEAR's primal problem with the squared hinge,
//
//	f(w) = 1/2 w.w + c sum_i max(0, 1 - y_i w.x_i)^2,
//
// where a constant 1 is appended to every x, so that the last weight is the bias (and is regularised like the others). It stops at
// |f'(w)| <= tolerance min(positives, negatives)/n |f'(0)|, as LIBLINEAR does. Features are not scaled. The predicted class is the one with the largest w.x.
//
// Source: R.-E. Fan et al., LIBLINEAR: a library for large linear classification, JMLR 9, 2008 (solver 2).
func (p *Labelled) SVM(ctx context.Context, c, tolerance float64) ([]float64, error) {
	weights := make([]float64, len(p.Classes)*p.Width)
	err := p.path(ctx, []float64{c}, tolerance, func(class, _ int, w []float64) { copy(weights[class*p.Width:], w) })
	return weights, err
}

// path solves the problem of every class for each C in turn, starting from the previous solution. It passes the weights to the
// function use, which must not retain them. Classes are solved in parallel, so use may be called concurrently for different
// classes.
func (p *Labelled) path(ctx context.Context, cs []float64, tolerance float64, use func(class, step int, w []float64)) error {
	moments := newMoments(p)
	team.For(len(p.Classes), 1, func(class, _ int) {
		t := newTron(p, class, moments)
		for step, c := range cs {
			if ctx.Err() != nil {
				return
			}
			t.solve(c, tolerance)
			use(class, step, t.w)
		}
	})
	return ctx.Err()
}

// Accuracies fits support vector machines to train for every C and returns the accuracies on test.
func Accuracies(ctx context.Context, train, test *Labelled, cs []float64, tolerance float64) ([]float64, error) {
	classes := len(train.Classes)
	decisions := make([]float64, len(cs)*test.N*classes) // of each C, each test row, each class
	err := train.path(ctx, cs, tolerance, func(class, step int, w []float64) {
		for i := range test.N {
			decisions[(step*test.N+i)*classes+class] = Dot(w, test.Row(i))
		}
	})
	if err != nil {
		return nil, err
	}
	right := make([]float64, len(cs))
	team.For(len(cs), 1, func(step, _ int) {
		count := 0
		for i, label := range test.Labels {
			row := decisions[(step*test.N+i)*classes:][:classes]
			if slices.Index(row, slices.Max(row)) == label {
				count++
			}
		}
		right[step] = float64(count) / float64(test.N)
	})
	return right, nil
}

// tron minimises the problem of one class by a trust-region Newton method: each step minimises a local quadratic model within
// a radius by conjugate gradients; the radius is adapted to the accuracy of the model.
//
// On the set I of active rows, those with y w.x < 1, the objective is quadratic: with A = sum_I x x', b = sum_I y x,
//
//	gradient = w + 2C (A w - b),  Hessian = 1 + 2C A.
//
// A and b are stored and updated for the rows that enter or leave I, which are few after the first steps. Each step therefore
// reads all rows only once, and another C needs no extra pass. A is small, because codes have far fewer units than there are
// images.
//
// Source: C.-J. Lin, R. C. Weng, S. S. Keerthi, Trust region Newton method for large-scale logistic regression, JMLR 9, 2008;
// the active set as in S. S. Keerthi, D. DeCoste, A modified finite Newton method for fast solution of large scale linear
// SVMs, JMLR 6, 2005.
type tron struct {
	p       *Labelled
	y       []float64 // +1 or -1 per row
	balance float64   // min(positives, negatives) / n
	start   float64   // |sum of y x| over all rows: |f'(0)| / 2C

	w, margins []float64 // the weights; w.x for every row
	active     []bool
	moments    moments // A and b

	gradient, step, trial, trialMargins []float64
	residual, direction, image          []float64 // vectors of the conjugate gradient method
}

// moments contains A, row-major and symmetric, and b.
type moments struct {
	a blas64.General
	b blas64.Vector
}

// newMoments returns A over all rows. b is zero, because it depends on the class.
func newMoments(p *Labelled) moments {
	d := p.Width
	m := moments{
		a: blas64.General{Rows: d, Cols: d, Stride: d, Data: make([]float64, d*d)},
		b: blas64.Vector{N: d, Inc: 1, Data: make([]float64, d)},
	}
	for i := range p.N {
		m.add(1, 0, p.Row(i))
	}
	return m
}

func (m moments) add(sign, y float64, x []float64) {
	v := blas64.Vector{N: len(x), Inc: 1, Data: x}
	blas64.Ger(sign, v, v, m.a)
	if y != 0 {
		blas64.Axpy(sign*y, v, m.b)
	}
}

// newTron starts at w = 0, where every row is active; all contains A over all rows.
func newTron(p *Labelled, class int, all moments) *tron {
	t := &tron{p: p, y: make([]float64, p.N), active: make([]bool, p.N), moments: all}
	t.moments.a.Data = slices.Clone(all.a.Data)
	t.moments.b.Data = slices.Clone(all.b.Data)
	positives := 0
	for i, l := range p.Labels {
		t.active[i], t.y[i] = true, -1
		if l == class {
			t.y[i] = 1
			positives++
		}
		blas64.Axpy(t.y[i], blas64.Vector{N: p.Width, Inc: 1, Data: p.Row(i)}, t.moments.b)
	}
	t.balance = float64(max(min(positives, p.N-positives), 1)) / float64(p.N)
	t.start = Norm(t.moments.b.Data)
	for _, v := range []*[]float64{&t.margins, &t.trialMargins} {
		*v = make([]float64, p.N)
	}
	for _, v := range []*[]float64{&t.w, &t.gradient, &t.step, &t.trial, &t.residual, &t.direction, &t.image} {
		*v = make([]float64, p.Width)
	}
	return t
}

// maxNewtonSteps ends a solve that cannot reach the tolerance because of rounding. It is LIBLINEAR's bound.
const maxNewtonSteps = 1000

// solve sets w to the minimum for this C, within the tolerance.
func (t *tron) solve(c, tolerance float64) {
	value := t.objective(c, t.w, t.margins) // the margins of w are always at hand
	target := tolerance * t.balance * 2 * c * t.start
	radius := math.Inf(1) // the Hessian is at least 1, so that |step| <= |gradient|: the first radius never binds
	for range maxNewtonSteps {
		t.setGradient(c)
		if Norm(t.gradient) <= target {
			return
		}
		predicted, bound := t.model(c, radius)
		for j, s := range t.step {
			t.trial[j] = t.w[j] + s
		}
		rows := blas64.General{Rows: t.p.N, Cols: t.p.Width, Stride: t.p.Width, Data: t.p.Rows}
		blas64.Gemv(blas.NoTrans, 1, rows, vector(t.trial), 0, vector(t.trialMargins))
		next := t.objective(c, t.trial, t.trialMargins)
		decrease := value - next
		if predicted <= 1e-14*value && decrease <= 1e-14*value {
			return // only rounding is left
		}
		switch length := Norm(t.step); {
		case decrease < 0.25*predicted:
			radius = 0.25 * length
		case decrease > 0.75*predicted && bound:
			radius = 4 * length
		}
		if decrease > 1e-4*predicted {
			value = next
			t.accept()
		}
	}
}

// objective returns f(w); margins contains w.x for every row.
func (t *tron) objective(c float64, w, margins []float64) float64 {
	loss := 0.0
	for i, m := range margins {
		if gap := 1 - t.y[i]*m; gap > 0 {
			loss += gap * gap
		}
	}
	return Dot(w, w)/2 + c*loss
}

// setGradient computes f'(w) from A and b.
func (t *tron) setGradient(c float64) {
	copy(t.gradient, t.w)
	blas64.Axpy(-2*c, t.moments.b, vector(t.gradient))
	blas64.Gemv(blas.NoTrans, 2*c, t.moments.a, vector(t.w), 1, vector(t.gradient))
}

// model sets step to the minimiser of the quadratic model within the radius, by Steihaug's conjugate gradients with a
// residual of a hundredth of the gradient. It returns the predicted decrease and whether the step ends at the radius.
func (t *tron) model(c, radius float64) (decrease float64, bound bool) {
	clear(t.step)
	for j, g := range t.gradient {
		t.residual[j], t.direction[j] = -g, -g
	}
	square := Dot(t.residual, t.residual)
	enough := 1e-2 * math.Sqrt(square)
	for range 4 * len(t.step) {
		if math.Sqrt(square) <= enough {
			break
		}
		copy(t.image, t.direction)
		blas64.Gemv(blas.NoTrans, 2*c, t.moments.a, vector(t.direction), 1, vector(t.image))
		length := square / Dot(t.direction, t.image)
		if reach := toBoundary(t.step, t.direction, radius); length >= reach {
			blas64.Axpy(reach, vector(t.direction), vector(t.step))
			blas64.Axpy(-reach, vector(t.image), vector(t.residual))
			bound = true
			break
		}
		blas64.Axpy(length, vector(t.direction), vector(t.step))
		blas64.Axpy(-length, vector(t.image), vector(t.residual))
		before := square
		square = Dot(t.residual, t.residual)
		for j, r := range t.residual {
			t.direction[j] = r + square/before*t.direction[j]
		}
	}
	// The model's value is g.s + s.Hs/2, and Hs = -g - residual.
	for j, s := range t.step {
		decrease -= s * (t.gradient[j] - t.residual[j]) / 2
	}
	return decrease, bound
}

// toBoundary returns the factor t >= 0 for which step + t direction has length radius.
func toBoundary(step, direction []float64, radius float64) float64 {
	if math.IsInf(radius, 1) {
		return radius
	}
	dd, sd := Dot(direction, direction), Dot(step, direction)
	rest := max(radius*radius-Dot(step, step), 0)
	return rest / (sd + math.Sqrt(sd*sd+dd*rest))
}

// accept moves to the trial point and updates A and b for the rows that entered or left the active set.
func (t *tron) accept() {
	t.w, t.trial = t.trial, t.w
	t.margins, t.trialMargins = t.trialMargins, t.margins
	for i, m := range t.margins {
		if now := t.y[i]*m < 1; now != t.active[i] {
			sign := -1.0
			if now {
				sign = 1
			}
			t.moments.add(sign, t.y[i], t.p.Row(i))
			t.active[i] = now
		}
	}
}

func vector(v []float64) blas64.Vector { return blas64.Vector{N: len(v), Inc: 1, Data: v} }

// Dot returns the sum of a b.
func Dot(a, b []float64) float64 { return blas64.Dot(vector(a), vector(b)) }

// Norm returns the Euclidean length of a vector.
func Norm(v []float64) float64 { return math.Sqrt(Dot(v, v)) }

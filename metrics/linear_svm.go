package metrics

import (
	"context"
	"fmt"
	"slices"

	"tessera/data"
	"tessera/parallel/team"
)

// LinearSVM is a linear support vector machine, one class against the rest. For each class, with y = +1 for its images
// and -1 for the others, it minimises LIBLINEAR's primal problem with the squared hinge,
//
//	f(w) = 1/2 w.w + C sum_i max(0, 1 - y_i w.x_i)^2,
//
// where every x has a constant 1 appended, so that the last weight is the bias (and is regularised like the others).
// Features are taken as they are. An image belongs to the class with the greatest w.x.
//
// Source: R.-E. Fan et al., LIBLINEAR: a library for large linear classification, JMLR 9, 2008 (solver 2).
type LinearSVM struct {
	C         float64 // > 0
	Tolerance float64 // > 0; stops at |f'(w)| <= Tolerance min(positives, negatives)/n |f'(0)|, as LIBLINEAR does
}

// SVMTolerance is LIBLINEAR's default in the study's use.
const SVMTolerance = 1e-4

// LinearClassifier is a fitted [LinearSVM].
type LinearClassifier struct {
	Classes []int     // ascending
	Width   int       // of a row of features
	Weights []float64 // one row of Width+1 per class, the bias last
}

// Fit fits one weight vector per class that occurs. Features are n x width, row-major. It fails on fewer than two classes,
// on lengths that do not fit, and on features that are not finite.
func (s LinearSVM) Fit(ctx context.Context, features []float32, width int, labels []int) (*LinearClassifier, error) {
	p, err := newSVMProblem(features, width, labels)
	if err != nil {
		return nil, err
	}
	if !(s.C > 0) || !(s.Tolerance > 0) {
		return nil, fmt.Errorf("metrics: svm: C %g and tolerance %g, want > 0", s.C, s.Tolerance)
	}
	c := &LinearClassifier{Classes: p.classes, Width: width, Weights: make([]float64, len(p.classes)*p.width)}
	err = p.path(ctx, []float64{s.C}, s.Tolerance, func(class, _ int, w []float64) {
		copy(c.Weights[class*p.width:], w)
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Predict returns the class of every row of features.
func (c *LinearClassifier) Predict(features []float32) ([]int, error) {
	n, err := rowCount(features, c.Width)
	if err != nil {
		return nil, err
	}
	classes := make([]int, n)
	for i := range n {
		var best float64
		for k, class := range c.Classes {
			w := c.Weights[k*(c.Width+1) : (k+1)*(c.Width+1)]
			score := w[c.Width]
			for j, v := range features[i*c.Width : (i+1)*c.Width] {
				score += w[j] * float64(v)
			}
			if k == 0 || score > best {
				best, classes[i] = score, class
			}
		}
	}
	return classes, nil
}

// svmProblem is a training set: rows with their constant, and labels as indices into classes.
type svmProblem struct {
	rows    []float64 // n x width, row-major
	width   int       // the constant included
	n       int
	classes []int // ascending
	labels  []int // index of each row's class
}

func newSVMProblem(features []float32, width int, labels []int) (*svmProblem, error) {
	n, err := rowCount(features, width)
	if err != nil {
		return nil, err
	}
	if len(labels) != n {
		return nil, fmt.Errorf("metrics: svm: %d labels for %d codes", len(labels), n)
	}
	p := &svmProblem{width: width + 1, n: n, rows: make([]float64, n*(width+1)), labels: make([]int, n)}
	for i := range n {
		row := p.rows[i*p.width : (i+1)*p.width]
		for j, v := range features[i*width : (i+1)*width] {
			if v-v != 0 { // infinite or NaN
				return nil, fmt.Errorf("metrics: svm: code %d has the value %g", i, v)
			}
			row[j] = float64(v)
		}
		row[width] = 1
	}
	p.classes = slices.Compact(slices.Sorted(slices.Values(labels)))
	if len(p.classes) < 2 {
		return nil, &data.Error{Problem: fmt.Sprintf("svm: %d classes, want at least 2", len(p.classes)), Hint: "measure without the SVM"}
	}
	for i, l := range labels {
		p.labels[i], _ = slices.BinarySearch(p.classes, l)
	}
	return p, nil
}

// subset returns the problem of some of the rows. All classes keep their indices.
func (p *svmProblem) subset(indices []int) *svmProblem {
	s := &svmProblem{width: p.width, n: len(indices), classes: p.classes}
	s.rows, s.labels = make([]float64, 0, len(indices)*p.width), make([]int, 0, len(indices))
	for _, i := range indices {
		s.rows = append(s.rows, p.row(i)...)
		s.labels = append(s.labels, p.labels[i])
	}
	return s
}

func (p *svmProblem) row(i int) []float64 { return p.rows[i*p.width : (i+1)*p.width] }

// path solves the problem of every class for each C in turn, each from the last one's solution, and hands the weights to
// use, which must not keep them; calls for different classes may come at once. Classes are solved in parallel.
func (p *svmProblem) path(ctx context.Context, cs []float64, tolerance float64, use func(class, step int, w []float64)) error {
	moments := newMoments(p)
	team.For(len(p.classes), 1, func(class, _ int) {
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

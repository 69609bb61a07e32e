package metrics

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/optimize"

	"tessera/internal/engine/kernel"
	"tessera/internal/parallel/team"
	"tessera/internal/random"
)

func init() {
	Registry.Register("linear_probe", "classification of held-out codes by multinomial logistic regression on four fifths of the codes",
		func() Metric { return &LinearProbe{C: 1, Seed: 1} })
}

// LinearProbe classifies codes by multinomial logistic regression. With logits z_i = W x_i + b, it minimises
//
//	|W|² / 2 + C sum_i cross_entropy(z_i, y_i)
//
// by L-BFGS; the bias b is not regularised. This is the objective of scikit-learn's LogisticRegression. The codes are split as
// by [SVMHoldout]: 4 random splits, stratified by class, of which a fifth is held out. Every unit is divided by its root mean
// square over the fitted codes, so that the result does not depend on the scale of units; a unit that is always 0 is not
// divided. C is fixed, so that no setting is selected. Accuracy and cross entropy are means over the splits.
//
// Sources: D. C. Liu, J. Nocedal, On the limited memory BFGS method for large scale optimization, 1989; the probe: G. Alain,
// Y. Bengio, Understanding intermediate layers using linear classifier probes, 2016.
type LinearProbe struct {
	C    float64 `toml:"c" want:"> 0" doc:"C, the weight of the cross entropy relative to the regularizer; 0 means 1"`
	Seed uint64  `toml:"seed" doc:"seed of the random splits; 0 means the run's seed"`
}

func (*LinearProbe) Describe() Description {
	measures := []Measure{
		{Name: "linear_probe_accuracy", Better: Higher, Doc: "accuracy of multinomial logistic regression (C = 1) on a held-out fifth of the codes, fitted to the others by " +
			"L-BFGS, every unit divided by its root mean square: mean over the 4 stratified splits of `svm_holdout_accuracy`, the same for all models. Of any encoder; `--with c=10` changes C"},
		{Name: "linear_probe_nll", Unit: "nats", Better: Lower, Doc: "mean cross entropy of its predictions for the held-out codes"},
		{Name: "linear_probe_std", Better: Neither, Doc: "standard deviation of `linear_probe_accuracy` over its splits, of the sample"},
	}
	for i := range holdouts {
		measures = append(measures, Measure{Name: fmt.Sprintf("linear_probe_%d", i+1), Better: Higher,
			Doc: fmt.Sprintf("accuracy on split %d, to be paired with that of another model", i+1)})
	}
	return Description{Measures: measures, Reads: ReadsCodes | ReadsLabels, ScaleFree: true, Ordered: true, OnRequest: true}
}

func (m *LinearProbe) Start(s *Subject) (Meter, error) {
	meter := &probeMeter{LinearProbe: *m, svmMeter: svmMeter{units: s.Units}}
	if meter.C == 0 {
		meter.C = 1
	}
	if meter.Seed == 0 {
		meter.Seed = s.Seed
	}
	return meter, nil
}

type probeMeter struct {
	LinearProbe
	svmMeter
}

func (m *probeMeter) Values(ctx context.Context) ([]Value, error) {
	p, err := newSVMProblem(m.codes, m.units, m.labels)
	if err != nil {
		return nil, err
	}
	scores, losses, failed := make([]float64, holdouts), make([]float64, holdouts), make([]error, holdouts)
	team.For(holdouts, 1, func(split, _ int) {
		fitted, held, err := stratifiedSplit(p.labels, len(p.classes), heldOut, random.Stream(m.Seed, "svm/holdout", uint64(split)))
		if err != nil {
			failed[split] = err
			return
		}
		train, test := p.subset(fitted), p.subset(held)
		train.scale(test)
		train.centre(test)
		w, err := train.logistic(ctx, m.C)
		if err != nil {
			failed[split] = err
			return
		}
		scores[split], losses[split] = test.predicted(w)
	})
	for _, err := range failed {
		if err != nil {
			return nil, err
		}
	}
	average := mean(scores, len(scores))
	squares := 0.0
	values := []Value{Number(average), Number(mean(losses, len(losses))), {}}
	for _, s := range scores {
		squares += (s - average) * (s - average)
		values = append(values, Number(s))
	}
	values[2] = Number(math.Sqrt(squares / (holdouts - 1)))
	return values, nil
}

// logistic returns the weights of the logistic regression, one row of width weights per class, the bias last.
func (p *svmProblem) logistic(ctx context.Context, c float64) ([]float64, error) {
	classes, n := len(p.classes), float64(p.n)
	logits, value, gradient := make([]float64, p.n*classes), 0.0, make([]float64, classes*p.width)
	last := slices.Repeat([]float64{math.NaN()}, len(gradient))
	evaluate := func(w []float64) { // the objective divided by C n, and its gradient
		if slices.Equal(w, last) {
			return
		}
		copy(last, w)
		value = p.crossEntropy(w, logits)
		kernel.Float64().Gemm(true, false, classes, p.width, p.n, 1/n, logits, classes, p.rows, p.width, 0, gradient, p.width)
		for i, v := range w {
			if i%p.width < p.width-1 {
				value += v * v / (2 * c * n)
				gradient[i] += v / (c * n)
			}
		}
	}
	r, err := optimize.Minimize(optimize.Problem{
		Func:   func(w []float64) float64 { evaluate(w); return value },
		Grad:   func(g, w []float64) { evaluate(w); copy(g, gradient) },
		Status: func() (optimize.Status, error) { return optimize.NotTerminated, ctx.Err() },
	}, make([]float64, len(gradient)), &optimize.Settings{GradientThreshold: 1e-6, MajorIterations: 2000}, &optimize.LBFGS{})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if r == nil {
		return nil, fmt.Errorf("metrics: linear_probe: %w", err)
	}
	evaluate(r.X)
	if rest := floats.Norm(gradient, math.Inf(1)); !(rest <= 1e-4) { // the objective is strictly convex but for a shift of the biases
		return nil, fmt.Errorf("metrics: linear_probe: L-BFGS did not converge: the largest derivative is %.2g, want at most 1e-4; lower c", rest)
	}
	return r.X, nil
}

// centre subtracts the mean of p from every unit, in p and in other. As the bias of a logistic regression is not regularised,
// this changes only the bias, and L-BFGS needs fewer steps.
func (p *svmProblem) centre(other *svmProblem) {
	means := make([]float64, p.width-1)
	for i := range p.n {
		floats.AddScaled(means, 1/float64(p.n), p.row(i)[:p.width-1])
	}
	for _, q := range []*svmProblem{p, other} {
		for i := range q.n {
			floats.Sub(q.row(i)[:p.width-1], means)
		}
	}
}

// crossEntropy returns the mean cross entropy of the rows for the weights w. It overwrites logits by the derivatives of each
// row's cross entropy with respect to its logits, probabilities minus targets.
func (p *svmProblem) crossEntropy(w []float64, logits []float64) (sum float64) {
	classes := len(p.classes)
	kernel.Float64().Gemm(false, true, p.n, classes, p.width, 1, p.rows, p.width, w, p.width, 0, logits, classes)
	for i, label := range p.labels {
		row := logits[i*classes : (i+1)*classes]
		log := floats.LogSumExp(row)
		sum += log - row[label]
		for k, z := range row {
			row[k] = math.Exp(z - log)
		}
		row[label]--
	}
	return sum / float64(p.n)
}

// predicted returns the accuracy and the mean cross entropy of the rows for the weights w.
func (p *svmProblem) predicted(w []float64) (accuracy, nll float64) {
	classes := len(p.classes)
	residuals := make([]float64, p.n*classes)
	nll = p.crossEntropy(w, residuals)
	right := 0
	for i, label := range p.labels {
		row := residuals[i*classes : (i+1)*classes]
		row[label]++
		if slices.Index(row, slices.Max(row)) == label {
			right++
		}
	}
	return float64(right) / float64(p.n), nll
}

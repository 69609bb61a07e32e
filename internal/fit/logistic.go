package fit

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/optimize"

	"tessera/internal/engine/kernel"
)

// Logistic returns the weights of the logistic regression, one row of width weights per class, the bias last.
func (p *Labelled) Logistic(ctx context.Context, c float64) ([]float64, error) {
	classes, n := len(p.Classes), float64(p.N)
	logits, value, gradient := make([]float64, p.N*classes), 0.0, make([]float64, classes*p.Width)
	last := slices.Repeat([]float64{math.NaN()}, len(gradient))
	evaluate := func(w []float64) { // the objective divided by C n, and its gradient
		if slices.Equal(w, last) {
			return
		}
		copy(last, w)
		value = p.crossEntropy(w, logits)
		kernel.Float64().Gemm(true, false, classes, p.Width, p.N, 1/n, logits, classes, p.Rows, p.Width, 0, gradient, p.Width)
		for i, v := range w {
			if i%p.Width < p.Width-1 {
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
		return nil, fmt.Errorf("logistic regression: %w", err)
	}
	evaluate(r.X)
	if rest := floats.Norm(gradient, math.Inf(1)); !(rest <= 1e-4) { // the objective is strictly convex but for a shift of the biases
		return nil, fmt.Errorf("logistic regression: L-BFGS did not converge: the largest derivative is %.2g, want at most 1e-4; lower c", rest)
	}
	return r.X, nil
}

// Centre subtracts the mean of p from every unit, in p and in other. As the bias of a logistic regression is not regularised,
// this changes only the bias, and L-BFGS needs fewer steps.
func (p *Labelled) Centre(other *Labelled) {
	means := make([]float64, p.Width-1)
	for i := range p.N {
		floats.AddScaled(means, 1/float64(p.N), p.Row(i)[:p.Width-1])
	}
	for _, q := range []*Labelled{p, other} {
		for i := range q.N {
			floats.Sub(q.Row(i)[:p.Width-1], means)
		}
	}
}

// crossEntropy returns the mean cross entropy of the rows for the weights w. It overwrites logits by the derivatives of each
// row's cross entropy with respect to its logits, probabilities minus targets.
func (p *Labelled) crossEntropy(w []float64, logits []float64) (sum float64) {
	classes := len(p.Classes)
	kernel.Float64().Gemm(false, true, p.N, classes, p.Width, 1, p.Rows, p.Width, w, p.Width, 0, logits, classes)
	for i, label := range p.Labels {
		row := logits[i*classes : (i+1)*classes]
		log := floats.LogSumExp(row)
		sum += log - row[label]
		for k, z := range row {
			row[k] = math.Exp(z - log)
		}
		row[label]--
	}
	return sum / float64(p.N)
}

// Predicted returns the accuracy and the mean cross entropy of the rows for the weights w.
func (p *Labelled) Predicted(w []float64) (accuracy, nll float64) {
	classes := len(p.Classes)
	residuals := make([]float64, p.N*classes)
	nll = p.crossEntropy(w, residuals)
	right := 0
	for i, label := range p.Labels {
		row := residuals[i*classes : (i+1)*classes]
		row[label]++
		if slices.Index(row, slices.Max(row)) == label {
			right++
		}
	}
	return float64(right) / float64(p.N), nll
}

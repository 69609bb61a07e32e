package baselines

import (
	"context"
	"errors"
	"fmt"
	"math"

	"tessera/metrics"
	"tessera/part"
)

// RankDensity is how a number of components of a density describes images.
type RankDensity struct {
	Components    int     `json:"components"`
	LogLikelihood float64 `json:"log_likelihood"` // mean over the images of the log density by a fit to other images, in nats
	Deviation     float64 `json:"standard_error"` // standard error of that mean over the folds
	BIC           float64 `json:"bic"`            // Bayesian information criterion of a fit to all images
}

// CrossValidateDensity measures numbers of components of a density (gmm, bmm, factor_analysis): the images are dealt into folds at
// random, and each fold is measured by a fit to the others. The number with the largest held-out log-likelihood predicts best; the
// number with the least BIC is, for many images, the true one if there is one. All other settings are those of method. report, which
// may be nil, is called after each of the (folds + 1) x len(components) fits.
//
// Sources: P. Smyth, Model selection for probabilistic clustering using cross-validated likelihood, Statistics and Computing 10(1),
// 2000; G. Schwarz, Estimating the dimension of a model, Annals of Statistics 6(2), 1978.
func CrossValidateDensity(ctx context.Context, method Method, images Images, components []int, folds int, seed uint64,
	report func(done int)) ([]RankDensity, error) {
	if ctx == nil || method == nil || images == nil {
		return nil, errors.New("baselines: cross-validation: no method, no images or no context")
	}
	n, p := images.Len(), images.Pixels()
	if folds < 2 || folds > n {
		return nil, fmt.Errorf("folds: got %d, want 2 to %d, the number of images", folds, n)
	}
	if len(components) == 0 {
		return nil, errors.New("components: got none, want numbers > 0")
	}
	x, fold := load(images), deal(n, folds, seed, "rank/images")
	cut := func(held int, inside bool) (rows []float32) {
		for i, f := range fold {
			if (f == held) == inside {
				rows = append(rows, x[i*p:(i+1)*p]...)
			}
		}
		return rows
	}
	var results []RankDensity
	done := 0
	for _, k := range components {
		measure := func(rows, measured []float32) (float64, metrics.Density, error) {
			density, err := fitDensity(ctx, method, k, p, rows, seed)
			if err != nil {
				return 0, nil, err
			}
			values, err := density.LogLikelihood(measured)
			if done++; report != nil {
				report(done)
			}
			return sum(values), density, err
		}
		total, means := 0.0, []float64(nil)
		for f := range folds {
			held := cut(f, true)
			likelihood, _, err := measure(cut(f, false), held)
			if err != nil {
				return nil, err
			}
			total += likelihood
			means = append(means, likelihood/float64(len(held)/p))
		}
		likelihood, density, err := measure(x, x)
		if err != nil {
			return nil, err
		}
		bic := float64(density.Freedom())*math.Log(float64(n)) - 2*likelihood
		results = append(results, RankDensity{k, total / float64(n), standardError(means), bic})
	}
	return results, nil
}

// fitDensity fits a density with k components to rows of p values.
func fitDensity(ctx context.Context, method Method, k, p int, rows []float32, seed uint64) (metrics.Density, error) {
	var sized Method
	switch s := method.(type) {
	case *GMM:
		c := *s
		c.Components, sized = k, &c
	case *BMM:
		c := *s
		c.Components, sized = k, &c
	case *FactorAnalysis:
		c := *s
		c.Components, sized = k, &c
	default:
		return nil, part.KeyError{Key: "kind", Problem: `cross-validated likelihoods compare densities: want kind = "gmm", "bmm" or "factor_analysis"`}
	}
	m, err := sized.New([]int{p}, seed)
	if err != nil {
		return nil, err
	}
	if _, err := Fit(ctx, m, Matrix{rows, p}, nil); err != nil {
		return nil, err
	}
	if r, ok := m.(*restarted); ok {
		m = r.Model
	}
	return m.(metrics.Density), nil
}

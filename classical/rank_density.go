package classical

import (
	"context"
	"errors"
	"fmt"
	"math"

	"tessera/config/part"
	"tessera/internal/lists"
	"tessera/metrics"
)

// RankDensity contains the log density of held-out images, and BIC, for a given number of components.
type RankDensity struct {
	Components    int     `json:"components"`
	LogLikelihood float64 `json:"log_likelihood"` // mean log density of held-out images, in nats
	Deviation     float64 `json:"standard_error"` // standard error of this mean over the folds
	BIC           float64 `json:"bic"`            // Bayesian information criterion of a fit to all images
	// Silhouette is the mean silhouette of the clusters of a mixture that is fitted to all images, where the cluster of an
	// image is its most probable component. It is nil for a single cluster, and for models other than mixtures.
	Silhouette *float64 `json:"silhouette,omitempty"`
}

// CrossValidateDensity compares numbers of components of a density (gmm, bmm, factor_analysis). The images are divided into
// folds at random, and the log-likelihood of each fold is measured by a fit to the other folds. The number with the largest
// held-out log-likelihood predicts best. For many images, the number with the smallest BIC is the true number, if one exists.
// All other settings are those of method. report, which may be nil, is called after each of the (folds + 1) x len(components)
// fits.
//
// Sources: P. Smyth, Model selection for probabilistic clustering using cross-validated likelihood, Statistics and Computing
// 10(1), 2000; G. Schwarz, Estimating the dimension of a model, Annals of Statistics 6(2), 1978.
func CrossValidateDensity(ctx context.Context, method Method, images Images, components []int, folds int, seed uint64,
	report func(done int)) (results []RankDensity, err error) {
	switch method.(type) {
	case nil, *GMM, *BMM, *FactorAnalysis:
	default:
		return nil, part.KeyError{Key: "kind", Problem: `cross-validated likelihoods compare densities: want kind = "gmm", "bmm" or "factor_analysis"`}
	}
	v := foldwise{images: images, components: components, folds: folds, seed: seed, report: report}
	v.sum = func(m Model, rows []float32) (float64, error) {
		values, err := coderOf(m).(metrics.Density).LogLikelihood(rows)
		return lists.Sum(values), err
	}
	err = v.run(ctx, method, func(k int, m Model, all, total, deviation float64, x []float32) error {
		n := float64(images.Len())
		bic := float64(coderOf(m).(metrics.Density).Freedom())*math.Log(n) - 2*all
		r := RankDensity{Components: k, LogLikelihood: total / n, Deviation: deviation, BIC: bic}
		if _, factors := method.(*FactorAnalysis); !factors {
			if r.Silhouette, err = silhouetteOf(m, x, images.Pixels()); err != nil {
				return err
			}
		}
		results = append(results, r)
		return nil
	})
	return results, err
}

// foldwise compares numbers of components by fits to all folds of the images but one.
type foldwise struct {
	images     Images
	components []int
	folds      int
	seed       uint64
	report     func(done int)
	sum        func(m Model, rows []float32) (float64, error) // returns the sum of a measure over rows
}

// run calls each for every number of components, with a fit m to all images and the measure of all images by this fit. total
// and deviation are the sum, and the standard error of the mean, of the measures of held-out images.
func (v *foldwise) run(ctx context.Context, method Method, each func(k int, m Model, all, total, deviation float64, x []float32) error) error {
	if ctx == nil || method == nil || v.images == nil {
		return errors.New("classical: cross-validation: no method, no images or no context")
	}
	n, p := v.images.Len(), v.images.Pixels()
	if v.folds < 2 || v.folds > n {
		return fmt.Errorf("folds: got %d, want 2 to %d, the number of images", v.folds, n)
	}
	if len(v.components) == 0 {
		return errors.New("components: got none, want numbers > 0")
	}
	if err := complete(v.images); err != nil {
		return err
	}
	x, fold := load(v.images), deal(n, v.folds, v.seed, "rank/images")
	cut := func(held int, inside bool) (rows []float32) {
		for i, f := range fold {
			if (f == held) == inside {
				rows = append(rows, x[i*p:(i+1)*p]...)
			}
		}
		return rows
	}
	done := 0
	for _, k := range v.components {
		measure := func(rows, measured []float32) (Model, float64, error) {
			m, err := fitTo(ctx, method, k, v.seed, Matrix{rows, p})
			if err != nil {
				return nil, 0, err
			}
			total, err := v.sum(m, measured)
			if done++; v.report != nil {
				v.report(done)
			}
			return m, total, err
		}
		total, means := 0.0, []float64(nil)
		for f := range v.folds {
			held := cut(f, true)
			_, part, err := measure(cut(f, false), held)
			if err != nil {
				return err
			}
			total += part
			means = append(means, part/float64(len(held)/p))
		}
		m, all, err := measure(x, x)
		if err != nil {
			return err
		}
		if err := each(k, m, all, total, standardError(means), x); err != nil {
			return err
		}
	}
	return nil
}

package classical

import (
	"context"
	"errors"
	"fmt"
	"math"

	"tessera/internal/lists"
	"tessera/metrics"
)

// densities compares numbers of components of a density (gmm, bmm, factor_analysis). The images are divided into
// folds at random, and the log-likelihood of each fold is measured by a fit to the other folds. The number with the largest
// held-out log-likelihood predicts best. For many images, the number with the smallest BIC, of a fit to all images, is the true number, if one
// exists. The silhouette is that of the clusters of this fit, where the cluster of an image is its most probable component; it is missing for a
// single cluster.
//
// Sources: P. Smyth, Model selection for probabilistic clustering using cross-validated likelihood, Statistics and Computing
// 10(1), 2000; G. Schwarz, Estimating the dimension of a model, Annals of Statistics 6(2), 1978.
func (v *validation) densities(ctx context.Context) (*Ranking, error) {
	r := &Ranking{Measures: []RankMeasure{{Key: "log_likelihood", Name: "held-out log-likelihood", Choice: Highest, Mark: "highest likelihood"},
		{Key: "bic", Name: "bic", Choice: Lowest, Mark: "least bic"}, silhouetteMeasure}}
	_, factors := v.method.(*FactorAnalysis)
	if factors { // of which no image has a most probable one
		r.Measures = r.Measures[:2]
	}
	total := func(m Model, rows []float32) (float64, error) {
		values, err := coderOf(m).(metrics.Density).LogLikelihood(rows)
		return lists.Sum(values), err
	}
	err := v.byImages(ctx, total, func(k int, m Model, all, total, deviation float64) error {
		n := float64(v.n)
		one := r.Add(k, deviation, total/n, float64(coderOf(m).(metrics.Density).Freedom())*math.Log(n)-2*all)
		if factors {
			return nil
		}
		return one.silhouette(m, v.x, v.p)
	})
	return r, err
}

// byImages compares numbers of components by fits to all folds of the images but one. sum returns the sum of a measure over rows. byImages calls
// each for every number of components, with a fit m to all images and the measure of all images by this fit. total
// and deviation are the sum, and the standard error of the mean, of the measures of held-out images.
func (v *validation) byImages(ctx context.Context, sum func(m Model, rows []float32) (float64, error), each func(k int, m Model, all, total, deviation float64) error) error {
	if v.folds < 2 || v.folds > v.n {
		return fmt.Errorf("folds: got %d, want 2 to %d, the number of samples", v.folds, v.n)
	}
	if len(v.components) == 0 {
		return errors.New("components: got none, want numbers > 0")
	}
	if err := complete(v.images); err != nil {
		return err
	}
	fold := deal(v.n, v.folds, v.seed, "rank/images")
	v.x = load(v.images)
	cut := func(held int, inside bool) (rows []float32) {
		for i, f := range fold {
			if (f == held) == inside {
				rows = append(rows, v.x[i*v.p:(i+1)*v.p]...)
			}
		}
		return rows
	}
	done := 0
	for _, k := range v.components {
		measure := func(rows, measured []float32) (Model, float64, error) {
			m, err := fitTo(ctx, v.method, k, v.seed, Matrix{rows, v.p})
			if err != nil {
				return nil, 0, err
			}
			total, err := sum(m, measured)
			done++
			v.report(done, (v.folds+1)*len(v.components))
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
			means = append(means, part/float64(len(held)/v.p))
		}
		m, all, err := measure(v.x, v.x)
		if err != nil {
			return err
		}
		if err := each(k, m, all, total, standardError(means)); err != nil {
			return err
		}
	}
	return nil
}

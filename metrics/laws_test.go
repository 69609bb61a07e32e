package metrics_test

import (
	"testing"

	"tessera/data/morph"
	"tessera/laws"
	"tessera/metrics"
)

// others lists settings for the law tests, in addition to the defaults.
var others = map[string][]metrics.Metric{
	"mse":          {&metrics.MSE{Single: true}},
	"kl":           {&metrics.KL{Target: 0.3}},
	"max_approx":   {&metrics.MaxApprox{}, &metrics.MaxApprox{Morphology: metrics.Morphology{Operator: morph.Opening, Radius: 2}}},
	"used_units":   {&metrics.UsedUnits{}},
	"ece":          {&metrics.ECE{}, &metrics.ECE{Bins: 3}},
	"useful_units": {&metrics.UsefulUnits{}, &metrics.UsefulUnits{Rise: 0.2}},
	"knn":          {&metrics.KNN{}, &metrics.KNN{Neighbours: 1}},
	"knn_cosine":   {&metrics.KNNCosine{}, &metrics.KNNCosine{Neighbours: 1}},
	"kmeans":       {&metrics.KMeans{Seed: 2, Starts: 2}},
	"svm":          {&metrics.SVM{Protocol: quick()}, &metrics.SVM{Seed: 9, Protocol: quick()}},
	"svm_holdout":  {&metrics.SVMHoldout{}, &metrics.SVMHoldout{Seed: 3, Scale: true}},
}

func quick() *metrics.SVMProtocol {
	p := metrics.NewSVMProtocol(1)
	p.Grid, p.GridSplits, p.Splits, p.GridTest, p.Test = []float64{1, 10}, 2, 2, 0.2, 0.2
	return p
}

func TestEveryMetricObeysTheLaws(t *testing.T) {
	for _, e := range metrics.Registry.All() {
		if testing.Short() && e.Name == "gabor" { // it takes as long as ten others
			continue
		}
		if e.Name != "svm" && e.Name != "rbm_ais" && e.Name != "dbn_bound" { // their defaults take minutes
			t.Run(e.Name, func(t *testing.T) {
				t.Parallel()
				laws.Check(t, laws.Metric, e.New)
			})
		}
		for _, m := range others[e.Name] {
			t.Run(e.Name+" with other settings", func(t *testing.T) {
				t.Parallel()
				laws.Check(t, laws.Metric, func() metrics.Metric { return m })
			})
		}
	}
}

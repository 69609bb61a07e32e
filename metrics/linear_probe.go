package metrics

import (
	"cmp"
	"context"
	"fmt"

	"tessera/internal/fit"
	"tessera/internal/parallel/team"
	"tessera/internal/random"
)

func init() {
	Registry.Register("linear_probe", "classification of held-out codes by multinomial logistic regression on four fifths of the codes",
		func() Metric { return &LinearProbe{C: 1, Seed: 1} })
}

// LinearProbe classifies codes by multinomial logistic regression with the objective of scikit-learn's LogisticRegression,
//
//	|W|² / 2 + C sum_i cross_entropy(W x_i + b, y_i)
//
// A unit that is always 0 is not divided by its root mean square. C is fixed, so that no setting is selected.
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
	seed, c := cmp.Or(m.Seed, s.Seed), cmp.Or(m.C, 1)
	return &readout{name: "linear_probe", units: s.Units, values: func(ctx context.Context, p *fit.Labelled) ([]Value, error) {
		scores, losses, failed := make([]float64, holdouts), make([]float64, holdouts), make([]error, holdouts)
		team.For(holdouts, 1, func(split, _ int) {
			fitted, held, err := p.Split(heldOut, random.Stream(seed, "svm/holdout", uint64(split)))
			if err != nil {
				failed[split] = err
				return
			}
			train, test := p.Subset(fitted), p.Subset(held)
			train.Scale(test)
			train.Centre(test)
			w, err := train.Logistic(ctx, c)
			if err != nil {
				failed[split] = err
				return
			}
			scores[split], losses[split] = test.Predicted(w)
		})
		for _, err := range failed {
			if err != nil {
				return nil, err
			}
		}
		average, deviation := spreadOf(scores, holdouts-1)
		return append([]Value{Number(average), Number(mean(losses, len(losses))), Number(deviation)}, numbers(scores)...), nil
	}}, nil
}

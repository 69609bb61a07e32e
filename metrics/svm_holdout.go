package metrics

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"tessera/internal/fit"
	"tessera/internal/random"
)

func init() {
	Registry.Register("svm_holdout", "classification of held-out codes by a linear SVM fitted to four fifths of the codes",
		func() Metric { return &SVMHoldout{Seed: 1, Scale: true} })
}

// holdouts is the number of random splits of [SVMHoldout].
const holdouts = 4

// heldOut is the fraction of the codes that a split of [SVMHoldout] holds out.
const heldOut = 0.2

// Splits returns the measures of the single splits that a measure is the mean of, and the ratio of held-out to fitted images,
// both as [PairedSplits] takes them; ok is false for a measure without splits.
func Splits(measure string) (names []string, ratio float64, ok bool) {
	of, ok := strings.CutSuffix(measure, "_accuracy")
	if !ok || of != "svm_holdout" && of != "linear_probe" {
		return nil, 0, false
	}
	for i := range holdouts {
		names = append(names, fmt.Sprintf("%s_%d", of, i+1))
	}
	return names, heldOut / (1 - heldOut), true
}

// holdoutGrid returns the values of C: 13 from 1e-3 to 1e3, with logarithmic spacing.
func holdoutGrid() []float64 { return decades(13, -3, 6) }

// SVMHoldout classifies codes by a linear SVM, see [fit.Labelled.SVM], on 4 random splits, stratified by class: a fifth of the codes is held out,
// 2,000 of 10,000. C is selected by the accuracy on a stratified fifth of the remaining codes. Then the SVM is fitted to all
// remaining codes with this C, and scored on the held-out codes. The splits depend only on Seed and the labels, so that the
// accuracies of two models on the same images are paired, split by split.
//
// With Scale, every unit is divided by its root mean square over the codes that the SVM is fitted to, so that the accuracy
// does not depend on the scale of units; a unit that is always 0 is not divided.
type SVMHoldout struct {
	Seed  uint64 `toml:"seed" doc:"seed of the random splits; 0 means the run's seed"`
	Scale bool   `toml:"scale" doc:"divides every unit by its root mean square over the fitted codes"`
}

func (m *SVMHoldout) Describe() Description {
	measures := []Measure{
		{Name: "svm_holdout_accuracy", Better: Higher, Doc: "accuracy of a linear SVM on a held-out fifth of the codes, fitted to the others, every unit " +
			"divided by its root mean square: mean over 4 stratified splits, the same for all models. C is chosen within the fitted codes"},
		{Name: "svm_holdout_std", Better: Neither, Doc: "standard deviation of `svm_holdout_accuracy` over its splits, of the sample"},
		{Name: "svm_holdout_at_edge", Better: Lower, Count: true, Doc: "number of the splits in which the chosen C is an end of the grid from 1e-3 to 1e3: a larger grid might give a better accuracy"},
	}
	for i := range holdouts {
		measures = append(measures, Measure{Name: fmt.Sprintf("svm_holdout_%d", i+1), Better: Higher,
			Doc: fmt.Sprintf("accuracy on split %d, to be paired with that of another model", i+1)})
	}
	return Description{Measures: measures, Reads: ReadsCodes | ReadsLabels, ScaleFree: m.Scale, Ordered: true, OnRequest: true}
}

func (m *SVMHoldout) Start(s *Subject) (Meter, error) {
	seed, scale := cmp.Or(m.Seed, s.Seed), m.Scale
	return &readout{name: "svm", units: s.Units, values: func(ctx context.Context, p *fit.Labelled) ([]Value, error) {
		scores, edges := make([]float64, holdouts), 0.0
		for split := range scores {
			h, err := newHoldout(p, seed, uint64(split))
			if err != nil {
				return nil, err
			}
			accuracy, onGrid, best, err := h.classify(ctx, p, scale)
			if err != nil {
				return nil, err
			}
			if scores[split] = accuracy; best == 0 || best == len(onGrid)-1 {
				edges++
			}
		}
		average, deviation := spreadOf(scores, holdouts-1)
		return append([]Value{Number(average), Number(deviation), Number(edges)}, numbers(scores)...), nil
	}}, nil
}

// holdout is one split. C is selected by fitting to inner and scoring on chosen; both are indices into fitted.
type holdout struct{ fitted, held, inner, chosen []int }

func newHoldout(p *fit.Labelled, seed, split uint64) (h holdout, err error) {
	if h.fitted, h.held, err = p.Split(heldOut, random.Stream(seed, "svm/holdout", split)); err != nil {
		return h, err
	}
	h.inner, h.chosen, err = p.Subset(h.fitted).Split(heldOut, random.Stream(seed, "svm/holdout/c", split))
	return h, err
}

// classify returns the accuracy on the held-out codes for the best C of the grid, and the index of that C; of equally good
// values the smallest is best.
func (h holdout) classify(ctx context.Context, p *fit.Labelled, scale bool) (accuracy float64, onGrid []float64, best int, err error) {
	train, test := p.Subset(h.fitted), p.Subset(h.held)
	if scale {
		train.Scale(test)
	}
	grid := holdoutGrid()
	if onGrid, err = fit.Accuracies(ctx, train.Subset(h.inner), train.Subset(h.chosen), grid, fit.Tolerance); err != nil {
		return 0, nil, 0, err
	}
	best = slices.Index(onGrid, slices.Max(onGrid))
	result, err := fit.Accuracies(ctx, train, test, grid[best:best+1], fit.Tolerance)
	if err != nil {
		return 0, nil, 0, err
	}
	return result[0], onGrid, best, nil
}

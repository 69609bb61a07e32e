package metrics

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

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

// SVMHoldout classifies codes by a [LinearSVM] on 4 random splits, stratified by class: a fifth of the codes is held out,
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
	meter := &holdoutMeter{SVMHoldout: *m, svmMeter: svmMeter{units: s.Units}}
	if meter.Seed == 0 {
		meter.Seed = s.Seed
	}
	return meter, nil
}

type holdoutMeter struct {
	SVMHoldout
	svmMeter
}

func (m *holdoutMeter) Values(ctx context.Context) ([]Value, error) {
	p, err := newSVMProblem(m.codes, m.units, m.labels)
	if err != nil {
		return nil, err
	}
	var scores []Value
	sum, edges := 0.0, 0
	for split := range holdouts {
		accuracy, atEdge, err := m.score(ctx, p, uint64(split))
		if err != nil {
			return nil, err
		}
		sum += accuracy
		scores = append(scores, Number(accuracy))
		if atEdge {
			edges++
		}
	}
	mean, squares := sum/holdouts, 0.0
	for _, s := range scores {
		squares += (s.Number - mean) * (s.Number - mean)
	}
	return slices.Concat([]Value{Number(mean), Number(math.Sqrt(squares / (holdouts - 1))), Number(float64(edges))}, scores), nil
}

// score returns the accuracy on one split.
func (m *holdoutMeter) score(ctx context.Context, p *svmProblem, split uint64) (accuracy float64, atEdge bool, err error) {
	var h holdout
	if h.fitted, h.held, err = stratifiedSplit(p.labels, len(p.classes), heldOut, random.Stream(m.Seed, "svm/holdout", split)); err != nil {
		return 0, false, err
	}
	labels := p.subset(h.fitted).labels
	if h.inner, h.chosen, err = stratifiedSplit(labels, len(p.classes), heldOut, random.Stream(m.Seed, "svm/holdout/c", split)); err != nil {
		return 0, false, err
	}
	accuracy, onGrid, best, err := h.classify(ctx, p, m.Scale)
	return accuracy, best == 0 || best == len(onGrid)-1, err
}

// holdout is one split. C is selected by fitting to inner and scoring on chosen; both are indices into fitted.
type holdout struct{ fitted, held, inner, chosen []int }

// classify returns the accuracy on the held-out codes for the best C of the grid, and the index of that C; of equally good
// values the smallest is best.
func (h holdout) classify(ctx context.Context, p *svmProblem, scale bool) (accuracy float64, onGrid []float64, best int, err error) {
	train, test := p.subset(h.fitted), p.subset(h.held)
	if scale {
		train.scale(test)
	}
	grid := holdoutGrid()
	if onGrid, err = accuracies(ctx, train.subset(h.inner), train.subset(h.chosen), grid, SVMTolerance); err != nil {
		return 0, nil, 0, err
	}
	best = slices.Index(onGrid, slices.Max(onGrid))
	result, err := accuracies(ctx, train, test, grid[best:best+1], SVMTolerance)
	if err != nil {
		return 0, nil, 0, err
	}
	return result[0], onGrid, best, nil
}

// scale divides every unit, in p and in other, by its root mean square over p.
func (p *svmProblem) scale(other *svmProblem) {
	for j := range p.width - 1 {
		squares := 0.0
		for i := range p.n {
			v := p.rows[i*p.width+j]
			squares += v * v
		}
		if squares == 0 {
			continue
		}
		factor := 1 / math.Sqrt(squares/float64(p.n))
		for _, q := range []*svmProblem{p, other} {
			for i := range q.n {
				q.rows[i*q.width+j] *= factor
			}
		}
	}
}

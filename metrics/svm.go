package metrics

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"tessera/internal/fit"
	"tessera/internal/lists"
	"tessera/internal/random"
)

func init() {
	Registry.Register("svm", "classification of the codes by a linear SVM", func() Metric { return &SVM{Seed: 1} })
}

// SVM classifies the codes by the study's [SVMProtocol]. Images of an unknown class are ignored. Models with the same labels
// and the same Seed have the same splits.
type SVM struct {
	Seed uint64 `toml:"seed" doc:"seed of the random splits; 0 means the run's seed"`

	Protocol *SVMProtocol // the protocol; nil for the study's
}

func (*SVM) Describe() Description {
	return Description{
		Measures: []Measure{
			{Name: "svm_accuracy", Better: Higher, Doc: "accuracy of a linear SVM on the codes, mean over 25 splits of a fifth of the codes, the study's protocol. The splits are small, so the accuracy of the same codes differs between them; `svm_holdout_accuracy` is more exact"},
			{Name: "svm_std", Better: Neither, Doc: "standard deviation of `svm_accuracy` over its splits"},
			{Name: "svm_c", Better: Neither, Doc: "value of C chosen for the SVM"},
			{Name: "svm_c_at_edge", Better: Lower, Count: true, Doc: "1 where `svm_c` is an end of the grid from 0.01 to 1000: a larger grid might give a better accuracy; else 0"},
		},
		Reads: ReadsCodes | ReadsLabels, Ordered: true, OnRequest: true,
	}
}

func (m *SVM) Start(s *Subject) (Meter, error) {
	protocol := m.Protocol
	if protocol == nil {
		protocol = NewSVMProtocol(cmp.Or(m.Seed, s.Seed))
	}
	return &readout{name: "svm", units: s.Units, values: func(ctx context.Context, p *fit.Labelled) ([]Value, error) {
		r, err := protocol.measure(ctx, p)
		if err != nil {
			return nil, err
		}
		edge := 0.0
		if grid := protocol.Grid; r.C == grid[0] || r.C == grid[len(grid)-1] {
			edge = 1
		}
		return []Value{Number(r.Accuracy), Number(r.Std), Number(r.C), Number(edge)}, nil
	}}, nil
}

// SVMProtocol is the study's protocol for classifying codes by a linear SVM ([fit.Labelled.SVM]):
//
//  1. The fraction HeldOut of the codes is held out, stratified by class.
//  2. On the other codes, each C of the grid is scored by its mean accuracy over GridSplits stratified shuffle splits with the
//     test fraction GridTest. The best C is selected, the smallest of equally good ones.
//  3. On the held-out codes alone, an SVM with this C is fitted and scored on Splits stratified shuffle splits with the test fraction
//     Test. The result is the mean and the standard deviation of these scores.
//
// In the study a test set has 100 images, so a standard deviation of .035 is sampling noise: differences below .02 are not
// significant. Equal seeds give equal results.
type SVMProtocol struct {
	HeldOut    float64
	Grid       []float64 // values of C, ascending
	GridSplits int
	GridTest   float64
	Splits     int
	Test       float64
	Tolerance  float64
	Seed       uint64
}

// NewSVMProtocol returns the study's settings: .2 held out; 30 values of C from 1e-2 to 1e3 with logarithmic spacing; 15
// splits with test fraction .08 for the grid, 25 splits with .05 for the result; tolerance 1e-4.
func NewSVMProtocol(seed uint64) *SVMProtocol {
	return &SVMProtocol{
		HeldOut: 0.2, Grid: decades(30, -2, 5), GridSplits: 15, GridTest: 0.08, Splits: 25, Test: 0.05, Tolerance: fit.Tolerance, Seed: seed,
	}
}

// decades returns n values with logarithmic spacing from 10^low to 10^(low+many).
func decades(n int, low, many float64) []float64 {
	grid := lists.Of(n, func(i int) float64 { return math.Pow(10, low+many*float64(i)/float64(n-1)) })
	return grid
}

// SVMResult is the result of [SVMProtocol.Measure].
type SVMResult struct {
	Accuracy float64   // mean over the splits of the held-out codes, in [0,1]
	Std      float64   // standard deviation over the splits (divisor n)
	C        float64   // the selected value of the grid
	Grid     []float64 // mean accuracy for every C of the grid
}

// Measure classifies codes (n x units) by their labels. It returns an error if the numbers of labels and codes differ, if ctx
// is done, and, with a [*data.Error], if there are fewer than two classes or a class has too few images for a split.
func (s SVMProtocol) Measure(ctx context.Context, codes []float32, units int, labels []int) (*SVMResult, error) {
	p, err := fit.Of("svm", codes, units, labels)
	if err != nil {
		return nil, err
	}
	return s.measure(ctx, p)
}

func (s SVMProtocol) measure(ctx context.Context, p *fit.Labelled) (*SVMResult, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	rest, held, err := p.Split(s.HeldOut, random.Stream(s.Seed, "svm/held-out", 0))
	if err != nil {
		return nil, err
	}
	r := &SVMResult{Grid: make([]float64, len(s.Grid))}
	onGrid, err := s.scores(ctx, p.Subset(rest), s.Grid, s.GridSplits, s.GridTest, "svm/grid")
	if err != nil {
		return nil, err
	}
	best := 0
	for i := range s.Grid {
		r.Grid[i] = mean(onGrid[i], s.GridSplits)
		if r.Grid[i] > r.Grid[best] {
			best = i
		}
	}
	r.C = s.Grid[best]
	scores, err := s.scores(ctx, p.Subset(held), s.Grid[best:best+1], s.Splits, s.Test, "svm/result")
	if err == nil {
		r.Accuracy, r.Std = spreadOf(scores[0], s.Splits)
	}
	return r, err
}

func (s SVMProtocol) check() error {
	for _, fraction := range []float64{s.HeldOut, s.GridTest, s.Test} {
		if !(fraction > 0 && fraction < 1) {
			return fmt.Errorf("metrics: svm: test fraction %g, want in (0,1)", fraction)
		}
	}
	if s.GridSplits < 1 || s.Splits < 1 || !(s.Tolerance > 0) {
		return fmt.Errorf("metrics: svm: %d and %d splits, tolerance %g, want all > 0", s.GridSplits, s.Splits, s.Tolerance)
	}
	if len(s.Grid) == 0 || !(s.Grid[0] > 0) || !slices.IsSorted(s.Grid) {
		return fmt.Errorf("metrics: svm: the grid of C must hold ascending values > 0")
	}
	return nil
}

// scores returns the accuracy for every C on each of n random splits.
func (s SVMProtocol) scores(ctx context.Context, p *fit.Labelled, cs []float64, n int, fraction float64, stream string) ([][]float64, error) {
	scores := make([][]float64, len(cs))
	for split := range n {
		train, test, err := p.Split(fraction, random.Stream(s.Seed, stream, uint64(split)))
		if err != nil {
			return nil, err
		}
		accuracies, err := fit.Accuracies(ctx, p.Subset(train), p.Subset(test), cs, s.Tolerance)
		if err != nil {
			return nil, err
		}
		for i, a := range accuracies {
			scores[i] = append(scores[i], a)
		}
	}
	return scores, nil
}

package metrics

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"tessera/data"
	"tessera/internal/parallel/team"
	"tessera/internal/random"
)

var _ Meter = (*svmMeter)(nil)

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
	seed := m.Seed
	if seed == 0 {
		seed = s.Seed
	}
	meter := &svmMeter{protocol: m.Protocol, units: s.Units}
	if meter.protocol == nil {
		meter.protocol = NewSVMProtocol(seed)
	}
	return meter, nil
}

type svmMeter struct {
	protocol *SVMProtocol
	units    int
	codes    []float32
	labels   []int
}

func (m *svmMeter) Add(b *Batch) error {
	for i, label := range b.Labels {
		if label >= 0 {
			m.codes = append(m.codes, b.Codes[i*m.units:(i+1)*m.units]...)
			m.labels = append(m.labels, label)
		}
	}
	return nil
}

func (m *svmMeter) Values(ctx context.Context) ([]Value, error) {
	r, err := m.protocol.Measure(ctx, m.codes, m.units, m.labels)
	if err != nil {
		return nil, err
	}
	edge := 0.0
	if grid := m.protocol.Grid; r.C == grid[0] || r.C == grid[len(grid)-1] {
		edge = 1
	}
	return []Value{Number(r.Accuracy), Number(r.Std), Number(r.C), Number(edge)}, nil
}

// SVMProtocol is the study's protocol for classifying codes by a [LinearSVM]:
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
		HeldOut: 0.2, Grid: decades(30, -2, 5), GridSplits: 15, GridTest: 0.08, Splits: 25, Test: 0.05, Tolerance: SVMTolerance, Seed: seed,
	}
}

// decades returns n values with logarithmic spacing from 10^low to 10^(low+many).
func decades(n int, low, many float64) []float64 {
	grid := make([]float64, n)
	for i := range grid {
		grid[i] = math.Pow(10, low+many*float64(i)/float64(n-1))
	}
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
	if err := s.check(); err != nil {
		return nil, err
	}
	p, err := newSVMProblem(codes, units, labels)
	if err != nil {
		return nil, err
	}
	rest, held, err := stratifiedSplit(p.labels, len(p.classes), s.HeldOut, random.Stream(s.Seed, "svm/held-out", 0))
	if err != nil {
		return nil, err
	}
	r := &SVMResult{Grid: make([]float64, len(s.Grid))}
	onGrid, err := s.scores(ctx, p.subset(rest), s.Grid, s.GridSplits, s.GridTest, "svm/grid")
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
	scores, err := s.scores(ctx, p.subset(held), s.Grid[best:best+1], s.Splits, s.Test, "svm/result")
	if err != nil {
		return nil, err
	}
	r.Accuracy = mean(scores[0], s.Splits)
	for i, v := range scores[0] {
		scores[0][i] = (v - r.Accuracy) * (v - r.Accuracy)
	}
	r.Std = math.Sqrt(mean(scores[0], s.Splits))
	return r, nil
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
func (s SVMProtocol) scores(ctx context.Context, p *svmProblem, cs []float64, n int, fraction float64, stream string) ([][]float64, error) {
	scores := make([][]float64, len(cs))
	for split := range n {
		train, test, err := stratifiedSplit(p.labels, len(p.classes), fraction, random.Stream(s.Seed, stream, uint64(split)))
		if err != nil {
			return nil, err
		}
		accuracies, err := accuracies(ctx, p.subset(train), p.subset(test), cs, s.Tolerance)
		if err != nil {
			return nil, err
		}
		for i, a := range accuracies {
			scores[i] = append(scores[i], a)
		}
	}
	return scores, nil
}

// accuracies fits train for every C and returns the accuracies on test.
func accuracies(ctx context.Context, train, test *svmProblem, cs []float64, tolerance float64) ([]float64, error) {
	classes := len(train.classes)
	decisions := make([]float64, len(cs)*test.n*classes) // of each C, each test row, each class
	err := train.path(ctx, cs, tolerance, func(class, step int, w []float64) {
		for i := range test.n {
			decisions[(step*test.n+i)*classes+class] = dot(w, test.row(i))
		}
	})
	if err != nil {
		return nil, err
	}
	right := make([]float64, len(cs))
	team.For(len(cs), 1, func(step, _ int) {
		count := 0
		for i, label := range test.labels {
			row := decisions[(step*test.n+i)*classes:][:classes]
			if slices.Index(row, slices.Max(row)) == label {
				count++
			}
		}
		right[step] = float64(count) / float64(test.n)
	})
	return right, nil
}

// stratifiedSplit returns the indices of a random split, ascending: ceil(fraction n) are in test. The shares of the classes
// are as close as possible to their shares in the full set (largest remainders are rounded up, for equal remainders the lower
// class first). Labels are 0 to classes-1; every class needs at least two images, and at least one of them stays in train.
func stratifiedSplit(labels []int, classes int, fraction float64, r *rand.Rand) (train, test []int, err error) {
	members := make([][]int, classes)
	for i, l := range labels {
		members[l] = append(members[l], i)
	}
	for class, quota := range shares(members, len(labels), fraction) {
		of := members[class]
		if len(of) < 2 || len(of) == quota {
			return nil, nil, &data.Error{Problem: fmt.Sprintf("svm: a class is too small: only %d of its images are left to be split", len(of)),
				Hint: "measure without the SVM, or on ten images of every class or more"}
		}
		r.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
		test = append(test, of[:quota]...)
		train = append(train, of[quota:]...)
	}
	slices.Sort(train)
	slices.Sort(test)
	return train, test, nil
}

// shares returns the number of members of each class for test.
func shares(members [][]int, n int, fraction float64) []int {
	total := int(math.Ceil(fraction * float64(n)))
	quotas, remainders, order := make([]int, len(members)), make([]int, len(members)), make([]int, len(members))
	left := total
	for class, of := range members {
		quotas[class], remainders[class] = total*len(of)/n, total*len(of)%n
		left -= quotas[class]
		order[class] = class
	}
	slices.SortStableFunc(order, func(a, b int) int { return remainders[b] - remainders[a] })
	for _, class := range order[:left] {
		quotas[class]++
	}
	return quotas
}

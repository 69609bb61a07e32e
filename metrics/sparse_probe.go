package metrics

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"

	"tessera/data"
	"tessera/internal/fit"
	"tessera/internal/lists"
	"tessera/internal/parallel/team"
	"tessera/internal/random"
)

func init() {
	Registry.Register("sparse_probe", "recognition of every class by the few units that differ most between it and the others",
		func() Metric { return &SparseProbe{K: 1, C: 1, Seed: 1} })
}

// SparseProbe asks whether single units, or k of them, stand for classes. For every class, with the splits and the scaling of
// [LinearProbe]: equally many fitted codes of the class and of other classes are drawn, all of the smaller side; the k units with the largest
// difference of the two means are chosen, and a logistic regression of these units alone is fitted. Its score is the mean of
// the shares of the held-out codes of the class and of all others that it recognises; 0.5 is chance.
//
// Sources: W. Gurnee et al., Finding neurons in a haystack: case studies with sparse probing, 2023; the choice by the mean
// difference and the balance of classes: A. Karvonen et al., SAEBench, 2025.
type SparseProbe struct {
	K    int     `toml:"k" want:"> 0" doc:"k, the number of units of a class"`
	C    float64 `toml:"c" want:"> 0" doc:"C, the weight of the cross entropy relative to the regularizer; 0 means 1"`
	Seed uint64  `toml:"seed" doc:"seed of the random splits; 0 means the run's seed"`
}

func (*SparseProbe) Describe() Description {
	return Description{
		Measures: []Measure{
			{Name: "sparse_probe_accuracy", Better: Higher, Doc: "how well one unit recognises a class: the unit whose mean differs most between the class and as many samples of others, " +
				"by logistic regression (C = 1); mean of the recognised shares of the class and of the others, in a held-out fifth of the codes, mean over classes and the 4 splits of `linear_probe_accuracy`. " +
				"0.5 is chance. `--with k=5` takes five units (Gurnee et al. 2023; SAEBench)"},
			{Name: "sparse_probe_least", Better: Higher, Doc: "the same for the class that is recognised worst"},
		},
		Reads: ReadsCodes | ReadsLabels, ScaleFree: true, Ordered: true, OnRequest: true,
	}
}

func (m *SparseProbe) Start(s *Subject) (Meter, error) {
	seed, c, k := cmp.Or(m.Seed, s.Seed), cmp.Or(m.C, 1), min(max(1, m.K), s.Units)
	return &readout{name: "sparse_probe", units: s.Units, values: func(ctx context.Context, p *fit.Labelled) ([]Value, error) {
		classes := len(p.Classes)
		scores, failed := make([]float64, holdouts*classes), make([]error, holdouts*classes)
		for split := range holdouts {
			fitted, held, err := p.Split(heldOut, random.Stream(seed, "svm/holdout", uint64(split)))
			if err != nil {
				return nil, err
			}
			train, test := p.Subset(fitted), p.Subset(held)
			train.Scale(test)
			team.For(classes, 1, func(class, _ int) {
				at := split*classes + class
				scores[at], failed[at] = sparseProbe(ctx, train, test, class, k, c, random.Stream(seed, "sparse_probe", uint64(at)))
			})
		}
		of := make([]float64, classes)
		for at, err := range failed {
			if err != nil {
				return nil, err
			}
			of[at%classes] += scores[at] / holdouts
		}
		return []Value{Number(mean(of, classes)), Number(slices.Min(of))}, nil
	}}, nil
}

// sparseProbe fits a probe of k units to a class of the codes of train, and returns the mean of its recognised shares of test.
func sparseProbe(ctx context.Context, train, test *fit.Labelled, class, k int, c float64, r *rand.Rand) (float64, error) {
	members, others := membersOf(train, class)
	for _, more := range []*[]int{&others, &members} {
		if list, n := *more, min(len(members), len(others)); len(list) > n {
			r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			*more = list[:n]
		}
	}
	units := differing(train, members, others, k)
	w, err := train.Against(class, append(members, others...), units).Logistic(ctx, c)
	if err != nil {
		return 0, err
	}
	if members, others = membersOf(test, class); len(members) == 0 {
		return 0, &data.Error{Problem: fmt.Sprintf("sparse_probe: a class is too small: no sample of class %d is in a held-out fifth", test.Classes[class]),
			Hint: "measure without sparse_probe, or on ten samples of every class or more"}
	}
	recognised, _ := test.Against(class, members, units).Predicted(w)
	rejected, _ := test.Against(class, others, units).Predicted(w)
	return (recognised + rejected) / 2, nil
}

// membersOf returns the rows of a class, and those of all others.
func membersOf(p *fit.Labelled, class int) (members, others []int) {
	for i, label := range p.Labels {
		if label == class {
			members = append(members, i)
		} else {
			others = append(others, i)
		}
	}
	return members, others
}

// differing returns the k units with the largest difference of their means over two sets of rows.
func differing(p *fit.Labelled, a, b []int, k int) []int {
	differences := make([]float64, p.Width-1)
	for _, i := range a {
		floats.AddScaled(differences, 1/float64(len(a)), p.Code(i))
	}
	for _, i := range b {
		floats.AddScaled(differences, -1/float64(len(b)), p.Code(i))
	}
	units := lists.Range(0, len(differences))
	slices.SortStableFunc(units, func(i, j int) int { return cmp.Compare(math.Abs(differences[j]), math.Abs(differences[i])) })
	return units[:k]
}

package metrics

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"tessera/data"
	"tessera/internal/fit"
	"tessera/internal/random"
	"tessera/internal/vectors"
)

func init() {
	Registry.Register("few_shot", "classification of the codes from a few labelled samples of each class",
		func() Metric { return &FewShot{Shots: 5, Draws: 50, Seed: 1} })
}

// FewShot measures how well a few labelled images suffice for classification by codes. Each draw selects Shots images of every
// class at random, fits a classifier to their codes and classifies all other labelled images. There are two classifiers:
//
//   - the nearest centroid: the class whose mean code is nearest, by Euclidean distance
//   - linear: a linear SVM, see [fit.Labelled.SVM], with C = 1
//
// Before this, every unit is divided by its root mean square over all measured labelled images, without use of the labels; a
// unit that is always 0 is not divided. The results are the mean accuracy over the draws and its 2.5 and 97.5 % quantiles,
// which show the influence of the selected images. The draws depend only on Seed and the labels, so that the results of two
// models on the same images are paired. A class with Shots images or fewer is an error.
//
// Source of the nearest centroid: Snell, Swersky, Zemel, Prototypical networks for few-shot learning, NeurIPS 2017.
type FewShot struct {
	Shots int    `toml:"shots" want:"> 0" doc:"k, the number of labelled samples of each class; 0 means 5"`
	Draws int    `toml:"draws" want:"> 0" doc:"number of random draws; 0 means 50"`
	Seed  uint64 `toml:"seed" doc:"seed of the draws; 0 means the run's seed"`
}

func (*FewShot) Describe() Description {
	d := Description{Reads: ReadsCodes | ReadsLabels, ScaleFree: true, Ordered: true, OnRequest: true}
	for _, c := range []struct{ name, doc string }{
		{"few_shot_centroid", "accuracy of classifying codes by the nearest mean code of 5 labelled samples of each class, mean over 50 random draws of these. " +
			"All other labelled samples are classified; every unit is divided by its root mean square. `--with shots=1` changes their number (Snell et al. 2017)"},
		{"few_shot_linear", "accuracy of a linear SVM (C = 1) fitted to the codes of the same 5 labelled samples of each class"},
	} {
		d.Measures = append(d.Measures, Measure{Name: c.name, Better: Higher, Doc: c.doc},
			Measure{Name: c.name + "_low", Better: Higher, Doc: "2.5 % quantile of `" + c.name + "` over the draws"},
			Measure{Name: c.name + "_high", Better: Higher, Doc: "97.5 % quantile of `" + c.name + "` over the draws"})
	}
	return d
}

func (m *FewShot) Start(s *Subject) (Meter, error) {
	return &readout{name: "few_shot", units: s.Units, values: FewShot{max(m.Shots, 0), max(m.Draws, 0), cmp.Or(m.Seed, s.Seed)}.measure}, nil
}

// measure returns the values of the codes, whose scale it changes in a copy.
func (m FewShot) measure(ctx context.Context, p *fit.Labelled) ([]Value, error) {
	m.Shots, m.Draws = cmp.Or(m.Shots, 5), cmp.Or(m.Draws, 50)
	p = p.Clone()
	p.Scale(p.Subset(nil))
	of := make([][]int, len(p.Classes))
	for i, l := range p.Labels {
		of[l] = append(of[l], i)
	}
	for k, images := range of {
		if len(images) <= m.Shots {
			return nil, &data.Error{Problem: fmt.Sprintf("few_shot: class %d has %d samples, want more than the %d of a draw", p.Classes[k], len(images), m.Shots),
				Hint: "lower shots"}
		}
	}
	centroid, linear := make([]float64, m.Draws), make([]float64, m.Draws)
	for draw := range m.Draws {
		shots, others := m.draw(of, uint64(draw))
		train, test := p.Subset(shots), p.Subset(others)
		centroid[draw] = train.NearestCentroid(test)
		a, err := fit.Accuracies(ctx, train, test, []float64{1}, fit.Tolerance)
		if err != nil {
			return nil, err
		}
		linear[draw] = a[0]
	}
	var values []Value
	for _, all := range [][]float64{centroid, linear} {
		average := mean(all, len(all))
		slices.Sort(all)
		values = append(values, Number(average), Number(vectors.Quantile(all, 0.025)), Number(vectors.Quantile(all, 0.975)))
	}
	return values, nil
}

// draw returns the indices of Shots images of each class, and of all other images.
func (m FewShot) draw(of [][]int, draw uint64) (shots, others []int) {
	r := random.Stream(m.Seed, "few_shot", draw)
	for _, images := range of {
		for i, at := range r.Perm(len(images)) {
			if i < m.Shots {
				shots = append(shots, images[at])
			} else {
				others = append(others, images[at])
			}
		}
	}
	return shots, others
}

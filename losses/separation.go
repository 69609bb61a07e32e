package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// Separation penalises the dependence of a score on the group of a sample given the label of the sample. It is the mean over
// the classes y of the dependence of [Independence] among the samples of class y. The weight of a class is its share n_y/n of
// the samples with a known class and group. At 0 the mean score (with hsic the distribution of the scores) of the samples of a
// class is the same in all groups, and so are the error rates. The keys are those of independence, and `classes`.
//
// Source: Hardt, Price and Srebro, Equality of opportunity in supervised learning, NeurIPS 2016 (the criterion); Mary,
// Calauzènes and El Karoui, Fairness-aware learning for continuous attributes and treatments, ICML 2019 (the penalty).
type Separation struct {
	Grouping
	Classes int `toml:"classes" want:">= 2" doc:"number of classes of the labels, 0, 1, ...; a sample with a negative label is ignored"`
}

func init() {
	Registry.Register("separation", "dependence of a score on the group of a sample, given its label", func() Loss {
		return &Separation{Grouping: newGrouping(), Classes: 2}
	})
}

func (l *Separation) Reads() Reads {
	r := l.reads(Labels)
	r.Labels = l.Classes
	return r
}

func (l *Separation) Build(v Values) (*gorgonia.Node, error) {
	var c ops.Chain
	of, known := l.members(&c, column(&c, c.Do("against", v.Against)))
	labels := column(&c, c.Do("labels", func() (*gorgonia.Node, error) { return v.Value(Labels) }))
	score := l.score(&c, v)
	var sum, all *gorgonia.Node
	for class := range l.Classes {
		weights := c.Mul(known, isClass(&c, labels, class))
		count := c.Sum(weights)
		term := c.Mul(count, l.dependence(&c, score, of, weights))
		if sum == nil {
			sum, all = term, count
			continue
		}
		sum, all = c.Add(sum, term), c.Add(all, count)
	}
	return c.Div(sum, c.Clip(all, 1e-6, 1e30)), c.Err()
}

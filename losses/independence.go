package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// Independence penalises the dependence of a score on the group of a sample. The group is a column of whole numbers; a sample
// with a negative group is ignored. See [Grouping] for the measures. At 0 the mean score (correlation) or the distribution of
// the scores (hsic) is the same in all groups of the batch. Batches should be large: the expected value on a batch of n
// samples exceeds the value on all samples by about 1/n.
//
//	[[model.X.loss]]
//	kind = "independence"
//	on = "class"
//	against = "group"
//
// Sources: Mary, Calauzènes and El Karoui, Fairness-aware learning for continuous attributes and treatments, ICML 2019;
// Pérez-Suay et al., Fair kernel learning, ECML 2017 (HSIC as the penalty).
type Independence struct{ Grouping }

func init() {
	Registry.Register("independence", "dependence of a score on the group of a sample", func() Loss { return &Independence{newGrouping()} })
}

func (l *Independence) Reads() Reads { return l.reads() }

func (l *Independence) Build(v Values) (*gorgonia.Node, error) {
	var c ops.Chain
	of, known := l.members(&c, column(&c, c.Do("against", v.Against)))
	return l.dependence(&c, l.score(&c, v), of, known), c.Err()
}

package parts

import "tessera/posthoc"

// Errors gives all groups the same false positive rate, and each of them the largest true positive rate at it.
type Errors struct{}

func init() {
	posthoc.Fairness.Register("errors", "the false positive rate is equal in all groups", func() posthoc.Criterion { return &Errors{} })
}

func (*Errors) Rule(group *posthoc.ROC, _ []*posthoc.ROC, x float64) posthoc.Mix {
	return group.AtFPR(x)
}

func (*Errors) Needs() (groups, classes bool) { return true, true }

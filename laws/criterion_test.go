package laws_test

import (
	"slices"
	"testing"

	"tessera/laws"
	"tessera/posthoc"
)

// wrongCriterion is equal rates of positive decisions, with what a test specifies.
type wrongCriterion struct {
	calls *int
	rule  func(group *posthoc.ROC, all []*posthoc.ROC, x float64, call int) posthoc.Mix
}

func (c *wrongCriterion) Rule(group *posthoc.ROC, all []*posthoc.ROC, x float64) posthoc.Mix {
	if *c.calls++; c.rule != nil {
		return c.rule(group, all, x, *c.calls)
	}
	return group.AtSelection(x)
}

func (*wrongCriterion) Needs() (groups, classes bool) { return true, false }

// For every law of criteria but that of probabilities, which the rules of the package cannot break, there is an incorrect part that breaks
// it, and a correct one breaks none.
func TestTheLawsOfCriteriaAreBroken(t *testing.T) {
	for law, rule := range map[string]func(*posthoc.ROC, []*posthoc.ROC, float64, int) posthoc.Mix{
		"gives the same rules for the same samples, which it leaves as they are": func(g *posthoc.ROC, _ []*posthoc.ROC, x float64, call int) posthoc.Mix {
			return g.AtSelection(min(1, x+1e-5*float64(call%7919)))
		},
		"does not depend on the numbers of the groups": func(g *posthoc.ROC, all []*posthoc.ROC, x float64, _ int) posthoc.Mix {
			if g == all[0] {
				return g.AtSelection(1)
			}
			return g.AtSelection(x)
		},
		"decides at least as well as equal decisions for all": func(g *posthoc.ROC, _ []*posthoc.ROC, x float64, _ int) posthoc.Mix { return g.AtSelection(0) },
	} {
		calls := 0
		if broken := laws.Broken(laws.Criterion, func() posthoc.Criterion { return &wrongCriterion{&calls, rule} }); !slices.Contains(broken, law) {
			t.Errorf("%q is not broken, but %q", law, broken)
		}
	}
	calls := 0
	if broken := laws.Broken(laws.Criterion, func() posthoc.Criterion { return &wrongCriterion{calls: &calls} }); len(broken) > 0 {
		t.Errorf("a correct criterion breaks %q", broken)
	}
}

func TestEveryCriterionObeysItsLaws(t *testing.T) {
	for _, e := range posthoc.Fairness.All() {
		t.Run(e.Name, func(t *testing.T) { laws.Check(t, laws.Criterion, e.New) })
	}
}

package laws

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"

	"tessera/internal/lists"
	"tessera/posthoc"
)

// Criterion contains the laws of criteria of fairness, tested on samples of three groups with different shares of positive ones.
var Criterion = inTrials(eachCriterionTrial, []law[criterionTrial]{
	{"gives probabilities", criterionTrial.probable},
	{"gives the same rules for the same samples, which it leaves as they are", criterionTrial.repeatable},
	{"does not depend on the numbers of the groups", criterionTrial.symmetric},
	{"decides at least as well as equal decisions for all", criterionTrial.useful},
})

// criterionTrial is a criterion with samples.
type criterionTrial struct {
	fresh   func() posthoc.Criterion
	samples posthoc.Grouped
}

func (criterionTrial) String() string { return "three groups" }

func eachCriterionTrial(fresh func() posthoc.Criterion, try func(t criterionTrial)) error {
	r := rand.New(rand.NewPCG(7, 8))
	t := criterionTrial{fresh: fresh}
	for i := range 300 {
		group, class := i%3, 0
		if r.Float64() < 0.3+0.2*float64(group) {
			class = 1
		}
		z := float32(2*float64(class) - 1 + 0.3*float64(group) + r.NormFloat64())
		t.samples.Logits = append(t.samples.Logits, 0, z)
		t.samples.Labels, t.samples.Groups = append(t.samples.Labels, class), append(t.samples.Groups, group)
	}
	try(t)
	return nil
}

func (t criterionTrial) rules() (map[string]posthoc.Rule, error) {
	return posthoc.Rules(t.fresh(), t.samples, 1)
}

func (t criterionTrial) probable() error {
	rules, err := t.rules()
	if err != nil {
		return err
	}
	for _, g := range slices.Sorted(maps.Keys(rules)) {
		sum := 0.0
		for _, s := range rules[g].Steps {
			if sum += s.Probability; !(s.Probability >= 0 && s.Threshold >= 0 && s.Threshold <= 1) {
				return fmt.Errorf("group %s: threshold %v with probability %v", g, s.Threshold, s.Probability)
			}
		}
		if !(sum <= 1+1e-9) {
			return fmt.Errorf("group %s: the probabilities add up to %v", g, sum)
		}
	}
	return nil
}

func (t criterionTrial) repeatable() error {
	before := slices.Clone(t.samples.Logits)
	first, err := t.rules()
	if err != nil {
		return err
	}
	if second, err := t.rules(); err != nil || !reflect.DeepEqual(first, second) {
		return fmt.Errorf("a second fit gives other rules: %v", err)
	}
	return differ("logits after the fit", t.samples.Logits, before)
}

func (t criterionTrial) symmetric() error {
	first, err := t.rules()
	if err != nil {
		return err
	}
	t.samples.Groups = slices.Clone(t.samples.Groups)
	for i, g := range t.samples.Groups {
		t.samples.Groups[i] = 2 - g
	}
	other, err := t.rules()
	if err != nil {
		return err
	}
	for g := range 3 {
		if a, b := t.right(first[fmt.Sprint(g)], g), t.right(other[fmt.Sprint(2-g)], g); !(a-b < 1e-6 && b-a < 1e-6) {
			return fmt.Errorf("group %d: %v right decisions, %v with another number", g, a, b)
		}
	}
	return nil
}

// right returns the expected number of right decisions of a rule for the samples that belong to a group at first.
func (t criterionTrial) right(rule posthoc.Rule, group int) (sum float64) {
	for i, class := range t.samples.Labels {
		if i%3 != group {
			continue
		}
		q := rule.Probability(1 / (1 + math.Exp(-float64(t.samples.Logits[2*i+1]))))
		if class == 0 {
			q = 1 - q
		}
		sum += q
	}
	return sum
}

func (t criterionTrial) useful() error {
	rules, err := t.rules()
	if err != nil {
		return err
	}
	right := 0.0
	for g := range 3 {
		right += t.right(rules[fmt.Sprint(g)], g)
	}
	positive := lists.Sum(t.samples.Labels)
	if least := max(positive, len(t.samples.Labels)-positive); right < float64(least)-1e-6 {
		return fmt.Errorf("%.4g right decisions are expected, %d of equal decisions", right, least)
	}
	return nil
}

package posthoc

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/vectors"
)

// applicants returns samples of two groups in which equal scores mean different probabilities.
func applicants(seed uint64, n int) (s Grouped) {
	r := rand.New(rand.NewPCG(seed, 1))
	for range n {
		g := r.IntN(2)
		y := 0
		if r.Float64() < 0.6-0.3*float64(g) {
			y = 1
		}
		z := (2-float64(g))*float64(y) + r.NormFloat64() - 0.5*float64(g)
		s.Logits, s.Labels, s.Groups = append(s.Logits, 0, float32(z-0.8)), append(s.Labels, y), append(s.Groups, g)
	}
	return s
}

// ratesIn returns the rate of positive decisions, the false and the true positive rate of a group, and the accuracy of
// all samples, by plain loops.
func ratesIn(t *testing.T, of *Thresholds, s Grouped, group int) (selection, fpr, tpr, accuracy float64) {
	t.Helper()
	var n [2][2]float64
	right := 0.0
	for i, y := range s.Labels {
		d, known := of.Decide(s.Logits[2*i:2*i+2], s.Groups[i])
		if !known {
			t.Fatalf("group %d is unknown", s.Groups[i])
		}
		if d == (y == 1) {
			right++
		}
		if s.Groups[i] == group {
			if d {
				n[y][1]++
			} else {
				n[y][0]++
			}
		}
	}
	return (n[0][1] + n[1][1]) / (n[0][0] + n[0][1] + n[1][0] + n[1][1]), n[0][1] / (n[0][0] + n[0][1]), n[1][1] / (n[1][0] + n[1][1]), right / float64(len(s.Labels))
}

func TestThresholdsFulfilTheirCriterionOnOtherSamples(t *testing.T) {
	accuracies := map[string]float64{}
	for _, criterion := range Criteria() {
		of := &Thresholds{Criterion: criterion, Column: "group", Positive: 1, Seed: 3}
		fatal.If(t, of.Fit(applicants(1, 30000)))
		s := applicants(2, 30000)
		sa, fa, ta, accuracy := ratesIn(t, of, s, 0)
		sb, fb, tb, _ := ratesIn(t, of, s, 1)
		accuracies[criterion] = accuracy
		gaps := map[string][]float64{Separation: {fa - fb, ta - tb}, Opportunity: {ta - tb}, Independence: {sa - sb}}[criterion]
		for _, gap := range gaps {
			if math.Abs(gap) > 0.02 {
				t.Errorf("%s: a gap of %v", criterion, gap)
			}
		}
	}
	t.Log(accuracies)
	if !(accuracies[Accuracy] > accuracies[Opportunity] && accuracies[Opportunity] > accuracies[Separation] && accuracies[Separation] > 0.6) {
		t.Errorf("a criterion with more conditions is more accurate: %v", accuracies)
	}
}

// The thresholds of the second and of the fourth sample, and all mixtures of them, have five right decisions of six: the rule is one threshold.
func TestTheMostAccurateRuleIsOneThreshold(t *testing.T) {
	s := Grouped{Labels: []int{1, 1, 0, 1, 0, 0}, Groups: make([]int, 6)}
	for _, z := range []float32{5, 4, 3, 2, 1, 0} {
		s.Logits = append(s.Logits, 0, z)
	}
	rules, err := Rules(&accuracy{}, s, 1)
	fatal.If(t, err)
	if steps := rules["0"].Steps; len(steps) != 1 || steps[0].Probability != 1 {
		t.Errorf("got %+v", steps)
	}
}

// No rule on a fine grid that satisfies the criterion is more accurate than the fitted one.
func TestNoRuleOfAGridIsBetter(t *testing.T) {
	s := applicants(5, 200)
	var curves [2]*ROC
	for g := range curves {
		curves[g] = &ROC{}
	}
	p := make([]float64, 2)
	for i, y := range s.Labels {
		vectors.Softmax(p, s.Logits[2*i:2*i+2])
		curves[s.Groups[i]].add(p[1], y == 1)
	}
	points := [2][][2]float64{curves[0].points(), curves[1].points()}
	hull := func(g int, f float64) float64 { // largest true positive rate of mixtures of any two thresholds at the false positive rate f
		best := 0.0
		for _, a := range points[g] {
			for _, b := range points[g] {
				switch {
				case a[0] == f:
					best = max(best, a[1])
				case a[0] < f && b[0] > f:
					best = max(best, a[1]+(f-a[0])/(b[0]-a[0])*(b[1]-a[1]))
				}
			}
		}
		return best
	}
	var n, positives [2]float64
	for g, c := range curves {
		n[g], positives[g] = float64(len(c.samples)), c.positives
	}
	best := 0.0
	for k := range 101 {
		f := float64(k) / 100
		tpr := min(hull(0, f), hull(1, f))
		best = max(best, (positives[0]+positives[1])*tpr+(n[0]+n[1]-positives[0]-positives[1])*(1-f))
	}
	for _, c := range curves {
		c.finish()
	}
	right := 0.0
	rules, err := Rules(&separation{}, s, 1)
	fatal.If(t, err)
	for i, c := range curves {
		for _, x := range c.samples {
			q := rules[fmt.Sprint(i)].Probability(x.score)
			if !x.positive {
				q = 1 - q
			}
			right += q
		}
	}
	if right < best-1e-9 || right > best*1.01 {
		t.Errorf("%v right decisions expected, the grid has %v", right, best)
	}
}

// points returns the false and true positive rates at all thresholds.
func (c *ROC) points() (list [][2]float64) {
	list = append(list, [2]float64{0, 0})
	for _, at := range c.samples {
		var fp, tp float64
		for _, s := range c.samples {
			if s.score >= at.score && s.positive {
				tp++
			} else if s.score >= at.score {
				fp++
			}
		}
		list = append(list, [2]float64{fp / (float64(len(c.samples)) - c.positives), tp / c.positives})
	}
	return list
}

func TestSamplesThatDetermineNoThresholdsAreRefused(t *testing.T) {
	one, none := applicants(1, 50), applicants(1, 50)
	for i := range one.Groups {
		one.Groups[i] = 4
		if none.Groups[i] == 1 {
			none.Labels[i] = 0
		}
	}
	for want, c := range map[string]struct {
		criterion string
		s         Grouped
	}{
		"unknown criterion":                {"parity", one},
		"are of 1 groups, want at least 2": {Separation, one},
		"group 1 has ":                     {Separation, none},
		"got 0 logits":                     {Separation, Grouped{}},
	} {
		expect.Error(t, (&Thresholds{Criterion: c.criterion, Positive: 1}).Fit(c.s), want)
	}
	of := &Thresholds{Criterion: Independence, Positive: 1}
	expect.NoError(t, of.Fit(none))
	if _, known := of.Decide([]float32{0, 0}, 7); known {
		t.Error("a group without a rule has a decision")
	}
	text, _ := json.Marshal(Head{Thresholds: of})
	var back Head
	if err := json.Unmarshal(text, &back); err != nil || back.Check(2) != nil || back.Check(1) == nil {
		t.Errorf("%v, %v", err, back.Check(2))
	}
}

package posthoc

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"tessera/config/part"
	"tessera/internal/vectors"
)

// The names of the criteria of this package. Among the rules that satisfy a criterion on the samples, [Thresholds.Fit] chooses those with
// the largest accuracy.
const (
	Separation   = "separation"
	Opportunity  = "opportunity"
	Independence = "independence"
	Accuracy     = "accuracy"
)

// Criterion is a criterion of fairness: it says which rate all groups share.
type Criterion interface {
	// Rule returns the rule of a group for the rate x in [0,1] that all groups share, the best one if there are several. all has the curves of
	// all groups. The number of correct decisions must be a concave function of x.
	Rule(group *ROC, all []*ROC, x float64) Mix
	// Needs returns whether groups are compared, and whether each of them must have samples of both classes. Without a comparison every
	// group has the x that is best for it.
	Needs() (groups, classes bool)
}

// Fairness contains the criteria.
var Fairness = part.New[Criterion]("criterion")

func init() {
	Fairness.Register(Separation, "the false positive rate and the true positive rate are equal in all groups", func() Criterion { return &separation{} })
	Fairness.Register(Opportunity, "the true positive rate is equal in all groups", func() Criterion { return &opportunity{} })
	Fairness.Register(Independence, "the rate of positive decisions is equal in all groups", func() Criterion { return &independence{} })
	Fairness.Register(Accuracy, "no rate need be equal: every group has its most accurate threshold", func() Criterion { return &accuracy{} })
}

type separation struct{}

func (*separation) Rule(group *ROC, all []*ROC, x float64) Mix {
	common := 1.0
	for _, other := range all {
		common = min(common, other.AtFPR(x).TPR)
	}
	return group.AtFPR(x).lowered(x, common)
}

func (*separation) Needs() (groups, classes bool) { return true, true }

type opportunity struct{}

func (*opportunity) Rule(group *ROC, _ []*ROC, x float64) Mix { return group.AtTPR(x) }
func (*opportunity) Needs() (groups, classes bool)            { return true, true }

type independence struct{}

func (*independence) Rule(group *ROC, _ []*ROC, x float64) Mix { return group.AtSelection(x) }
func (*independence) Needs() (groups, classes bool)            { return true, false }

type accuracy struct{}

// Rule returns the best single threshold, not a mixture of two that are equally good.
func (*accuracy) Rule(group *ROC, _ []*ROC, _ float64) Mix {
	best := group.AtSelection(0)
	for _, x := range group.selects {
		if m := group.AtSelection(x); group.right(m) > group.right(best)+1e-6 {
			best = m
		}
	}
	return best
}

func (*accuracy) Needs() (groups, classes bool) { return false, false }

// Criteria lists the criteria, with the default first.
func Criteria() []string { return first(Fairness, Separation) }

// Grouped contains samples with their groups, for [Thresholds.Fit].
type Grouped struct {
	Logits []float32 // one row for each sample
	Labels []int     // classes; a negative class is unknown
	Groups []int     // groups; a negative group is unknown
}

// Fit fits a rule for each group, so that the decisions for the class t.Positive satisfy t.Criterion on the samples. It
// sets t.Samples and t.Groups. Samples of an unknown class or group are left out.
//
// For separation, a point (false positive rate, true positive rate) can be reached by all groups if it lies under the
// convex hulls of all their ROC curves. Fit chooses the reachable point with the largest accuracy. The decisions of a
// group that could do better are randomised. The other criteria randomise between two thresholds of each group.
//
// Fit returns an error if there is a single group, or if a class that the criterion needs is missing in a group.
//
// Source: Hardt, Price, Srebro, Equality of opportunity in supervised learning, NeurIPS 2016.
func (t *Thresholds) Fit(s Grouped) (err error) {
	e, ok := Fairness.Lookup(t.Criterion)
	if !ok {
		return fmt.Errorf("posthoc: unknown criterion %q, want one of %s", t.Criterion, strings.Join(Criteria(), ", "))
	}
	if t.Groups, err = Rules(e.New(), s, t.Positive); err != nil {
		return fmt.Errorf("%s: %w", t.Criterion, err)
	}
	for _, rule := range t.Groups {
		t.Samples += rule.Samples
	}
	return t.check(len(s.Logits) / len(s.Labels))
}

// Rules returns the rule of each group, by its number, for decisions about the class positive.
func Rules(by Criterion, s Grouped, positive int) (map[string]Rule, error) {
	n := len(s.Labels)
	if n == 0 || len(s.Groups) != n || len(s.Logits)%n != 0 || positive < 0 || positive >= len(s.Logits)/n {
		return nil, fmt.Errorf("posthoc: got %d logits, %d labels and %d groups for the class %d", len(s.Logits), n, len(s.Groups), positive)
	}
	curves := map[int]*ROC{}
	p := make([]float64, len(s.Logits)/n)
	for i, class := range s.Labels {
		g := s.Groups[i]
		if class < 0 || g < 0 {
			continue
		}
		if curves[g] == nil {
			curves[g] = &ROC{}
		}
		vectors.Softmax(p, s.Logits[i*len(p):(i+1)*len(p)])
		curves[g].add(p[positive], class == positive)
	}
	groups := slices.Sorted(maps.Keys(curves))
	compared, classes := by.Needs()
	if len(groups) < 2 && compared {
		return nil, fmt.Errorf("the samples are of %d groups, want at least 2 to compare", len(groups))
	}
	var all []*ROC
	for _, g := range groups {
		c := curves[g]
		if missing := c.missing(); missing != "" && classes {
			return nil, fmt.Errorf("group %d has %d samples, none of them %s of the positive class: its rates are unknown", g, len(c.samples), missing)
		}
		c.finish()
		all = append(all, c)
	}
	// best returns the x for which most decisions of some groups are correct.
	best := func(some []*ROC) float64 {
		return highest(func(x float64) (right float64) {
			for _, c := range some {
				right += c.right(by.Rule(c, all, x))
			}
			return right
		})
	}
	x := best(all)
	rules := map[string]Rule{}
	for i, g := range groups {
		if !compared {
			x = best(all[i : i+1])
		}
		rules[fmt.Sprint(g)] = Rule{Samples: len(all[i].samples), Steps: by.Rule(all[i], all, x).steps()}
	}
	return rules, nil
}

// highest returns the argument at which a concave function on [0,1] is largest.
func highest(f func(x float64) float64) float64 {
	low, high := 0.0, 1.0
	for range 100 {
		a, b := low+(high-low)/3, high-(high-low)/3
		if f(a) < f(b) {
			low = a
		} else {
			high = b
		}
	}
	return (low + high) / 2
}

// ROC is the convex hull of the ROC curve of a group. Its corners range from positive decisions for no sample to
// positive decisions for all samples.
type ROC struct {
	samples           []scored
	positives         float64
	corners           []corner
	selects, tps, fps []float64 // rates at the corners: of positive decisions, true positives and false positives
}

type scored struct {
	score    float64
	positive bool
}

// corner is the threshold with positive decisions for all samples of at least that score. fp and tp are numbers of
// samples.
type corner struct{ threshold, fp, tp float64 }

func (c *ROC) add(score float64, positive bool) {
	c.samples = append(c.samples, scored{score, positive})
	if positive {
		c.positives++
	}
}

// missing returns which class has no samples in the group, as a part of a message. It returns "" if both classes have
// samples.
func (c *ROC) missing() string {
	switch c.positives {
	case 0:
		return "is"
	case float64(len(c.samples)):
		return "is not"
	}
	return ""
}

// never is a threshold above every score, so that no decision is positive.
const never = 2

// finish computes the corners and their rates from the samples.
func (c *ROC) finish() {
	slices.SortStableFunc(c.samples, func(a, b scored) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return 0
	})
	now := corner{threshold: never}
	points := []corner{now}
	for i, s := range c.samples {
		if s.positive {
			now.tp++
		} else {
			now.fp++
		}
		if now.threshold = s.score; i+1 == len(c.samples) {
			now.threshold = 0
		} else if c.samples[i+1].score == s.score {
			continue
		}
		points = append(points, now)
	}
	for _, p := range points {
		for n := len(c.corners); n > 1 && !turnsDown(c.corners[n-2], c.corners[n-1], p); n = len(c.corners) {
			c.corners = c.corners[:n-1]
		}
		c.corners = append(c.corners, p)
	}
	n := float64(len(c.samples))
	for _, p := range c.corners {
		c.selects = append(c.selects, (p.fp+p.tp)/n)
		c.tps = append(c.tps, p.tp/max(1, c.positives))
		c.fps = append(c.fps, p.fp/max(1, n-c.positives))
	}
}

// turnsDown reports whether the path from a over b to c turns to the right.
func turnsDown(a, b, c corner) bool {
	return (b.fp-a.fp)*(c.tp-a.tp)-(b.tp-a.tp)*(c.fp-a.fp) < 0
}

// AtSelection returns the best rule with the rate x of positive decisions.
func (c *ROC) AtSelection(x float64) Mix { return c.at(c.selects, x) }

// AtTPR returns the best rule with the true positive rate x.
func (c *ROC) AtTPR(x float64) Mix { return c.at(c.tps, x) }

// AtFPR returns the best rule with the false positive rate x.
func (c *ROC) AtFPR(x float64) Mix { return c.at(c.fps, x) }

// Mix is a randomised rule. With probability share it uses a threshold: first with probability 1 - weight, or second,
// which is smaller, with probability weight. Otherwise the decision is positive with probability coin.
type Mix struct {
	first, second, weight, share, coin float64
	FPR, TPR                           float64 // false and true positive rate of the decisions
}

// at returns the point of the hull at which a rate has the value x. If there are several, it returns the one with the
// largest true positive rate.
func (c *ROC) at(rates []float64, x float64) Mix {
	i := sort.Search(len(rates), func(i int) bool { return rates[i] > x }) // the first corner with a larger rate
	if i == len(rates) {
		i--
	}
	i = max(i, 1)
	weight := 0.0
	if d := rates[i] - rates[i-1]; d > 0 {
		weight = min(max((x-rates[i-1])/d, 0), 1)
	} else {
		weight = 1
	}
	return Mix{c.corners[i-1].threshold, c.corners[i].threshold, weight, 1, 0,
		(1-weight)*c.fps[i-1] + weight*c.fps[i], (1-weight)*c.tps[i-1] + weight*c.tps[i]}
}

// lowered reduces the true positive rate to tpr and keeps the false positive rate x. It replaces a part of the
// decisions by random decisions that are positive with probability x.
func (m Mix) lowered(x, tpr float64) Mix {
	if m.TPR > x {
		m.share = min(max((tpr-x)/(m.TPR-x), 0), 1)
	}
	m.coin = x
	m.FPR, m.TPR = m.share*m.FPR+(1-m.share)*x, m.share*m.TPR+(1-m.share)*x
	return m
}

// right returns the expected number of correct decisions of a rule.
func (c *ROC) right(m Mix) float64 {
	return c.positives*m.TPR + (float64(len(c.samples))-c.positives)*(1-m.FPR)
}

// steps returns the rule as steps with ascending thresholds.
func (m Mix) steps() (steps []Step) {
	for _, s := range []Step{{0, (1 - m.share) * m.coin}, {m.second, m.share * m.weight}, {m.first, m.share * (1 - m.weight)}} {
		if s.Probability > 1e-9 && s.Threshold < never {
			steps = append(steps, s)
		}
	}
	return steps
}

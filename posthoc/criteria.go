package posthoc

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"tessera/internal/vectors"
)

// The criteria of [Thresholds.Fit]. Among the rules that satisfy a criterion on the samples, Fit chooses those with the
// largest accuracy.
const (
	Separation   = "separation"   // the false positive rate and the true positive rate are equal in all groups
	Opportunity  = "opportunity"  // the true positive rate is equal in all groups
	Independence = "independence" // the rate of positive decisions is equal in all groups
	Accuracy     = "accuracy"     // no rate need be equal: every group has its most accurate threshold
)

// Criteria lists the criteria, with the default first.
func Criteria() []string { return []string{Separation, Opportunity, Independence, Accuracy} }

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
func (t *Thresholds) Fit(s Grouped) error {
	if !slices.Contains(Criteria(), t.Criterion) {
		return fmt.Errorf("posthoc: unknown criterion %q, want one of %s", t.Criterion, strings.Join(Criteria(), ", "))
	}
	n := len(s.Labels)
	if n == 0 || len(s.Groups) != n || len(s.Logits)%n != 0 || t.Positive < 0 || t.Positive >= len(s.Logits)/n {
		return fmt.Errorf("posthoc: got %d logits, %d labels and %d groups for the class %d", len(s.Logits), n, len(s.Groups), t.Positive)
	}
	curves := map[int]*roc{}
	p := make([]float64, len(s.Logits)/n)
	for i, class := range s.Labels {
		g := s.Groups[i]
		if class < 0 || g < 0 {
			continue
		}
		if curves[g] == nil {
			curves[g] = &roc{}
		}
		vectors.Softmax(p, s.Logits[i*len(p):(i+1)*len(p)])
		curves[g].add(p[t.Positive], class == t.Positive)
		t.Samples++
	}
	var groups []int
	for g := range curves {
		groups = append(groups, g)
	}
	slices.Sort(groups)
	if len(groups) < 2 && t.Criterion != Accuracy {
		return fmt.Errorf("%s: the samples are of %d groups, want at least 2 to compare", t.Criterion, len(groups))
	}
	var all []*roc
	for _, g := range groups {
		c := curves[g]
		if missing := c.missing(); missing != "" && t.Criterion != Accuracy && t.Criterion != Independence {
			return fmt.Errorf("%s: group %d has %d samples, none of them %s of the positive class: its rates are unknown", t.Criterion, g, len(c.samples), missing)
		}
		c.finish()
		all = append(all, c)
	}
	t.Groups = map[string]Rule{}
	steps := bestRules(t.Criterion, all)
	for i, g := range groups {
		t.Groups[fmt.Sprint(g)] = Rule{Samples: len(all[i].samples), Steps: steps[i]}
	}
	return t.check(len(p))
}

// bestRules returns the steps of the rule of each group.
func bestRules(criterion string, all []*roc) [][]Step {
	place := func(c *roc, x float64) mix { return c.at(c.selection, x) }
	switch criterion {
	case Opportunity:
		place = func(c *roc, x float64) mix { return c.at(c.tpr, x) }
	case Separation:
		place = func(c *roc, x float64) mix {
			common := 1.0
			for _, other := range all {
				common = min(common, other.at(other.fpr, x).tpr)
			}
			return c.at(c.fpr, x).lowered(x, common)
		}
	case Accuracy:
		var steps [][]Step
		for _, c := range all {
			x := highest(func(x float64) float64 { return c.right(c.at(c.selection, x)) })
			steps = append(steps, c.at(c.selection, x).steps())
		}
		return steps
	}
	// The number of correct decisions is a concave function of the rate that all groups share.
	x := highest(func(x float64) (right float64) {
		for _, c := range all {
			right += c.right(place(c, x))
		}
		return right
	})
	var steps [][]Step
	for _, c := range all {
		steps = append(steps, place(c, x).steps())
	}
	return steps
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

// roc is the convex hull of the ROC curve of a group. Its corners range from positive decisions for no sample to
// positive decisions for all samples.
type roc struct {
	samples           []scored
	positives         float64
	corners           []corner
	selects, tps, fps []float64 // rates at the corners: of positive decisions, true positives and false positives
}

// scored is one sample.
type scored struct {
	score    float64
	positive bool
}

// corner is the threshold with positive decisions for all samples of at least that score. fp and tp are numbers of
// samples.
type corner struct{ threshold, fp, tp float64 }

func (c *roc) add(score float64, positive bool) {
	c.samples = append(c.samples, scored{score, positive})
	if positive {
		c.positives++
	}
}

// missing returns which class has no samples in the group, as a part of a message. It returns "" if both classes have
// samples.
func (c *roc) missing() string {
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
func (c *roc) finish() {
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

// selection, tpr and fpr return the rates at the corners.
func (c *roc) selection() []float64 { return c.selects }
func (c *roc) tpr() []float64       { return c.tps }
func (c *roc) fpr() []float64       { return c.fps }

// mix is a randomised rule. With probability share it uses a threshold: first with probability 1 - weight, or second,
// which is smaller, with probability weight. Otherwise the decision is positive with probability coin.
type mix struct {
	first, second, weight, share, coin float64
	fpr, tpr                           float64
}

// at returns the point of the hull at which rate has the value x. If there are several, it returns the one with the
// largest true positive rate.
func (c *roc) at(rate func() []float64, x float64) mix {
	rates := rate()
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
	return mix{c.corners[i-1].threshold, c.corners[i].threshold, weight, 1, 0,
		(1-weight)*c.fps[i-1] + weight*c.fps[i], (1-weight)*c.tps[i-1] + weight*c.tps[i]}
}

// lowered reduces the true positive rate to tpr and keeps the false positive rate x. It replaces a part of the
// decisions by random decisions that are positive with probability x.
func (m mix) lowered(x, tpr float64) mix {
	if m.tpr > x {
		m.share = min(max((tpr-x)/(m.tpr-x), 0), 1)
	}
	m.coin = x
	m.fpr, m.tpr = m.share*m.fpr+(1-m.share)*x, m.share*m.tpr+(1-m.share)*x
	return m
}

// right returns the expected number of correct decisions of a rule.
func (c *roc) right(m mix) float64 {
	return c.positives*m.tpr + (float64(len(c.samples))-c.positives)*(1-m.fpr)
}

// steps returns the rule as steps with ascending thresholds.
func (m mix) steps() (steps []Step) {
	for _, s := range []Step{{0, (1 - m.share) * m.coin}, {m.second, m.share * m.weight}, {m.first, m.share * (1 - m.weight)}} {
		if s.Probability > 1e-9 && s.Threshold < never {
			steps = append(steps, s)
		}
	}
	return steps
}

package posthoc

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"tessera/internal/vectors"
)

// Thresholds make decisions for one class of a head that depend on the group of the sample. The score of a sample is
// its probability of the class Positive, the softmax of the logits. Each group has a rule: steps with thresholds t and
// probabilities q that add up to at most 1. For a sample with score s the decision is positive with probability
//
//	sum of q over the steps with t <= s
//
// One step of probability 1 is an ordinary threshold; t = 0 gives positive decisions for all samples. A decision
// depends only on the logits of the sample, its group and Seed, so the same sample always gets the same decision.
type Thresholds struct {
	Criterion string          `json:"criterion"`
	Column    string          `json:"column"`          // column of the groups
	Names     []string        `json:"names,omitempty"` // names of the groups, if the column has names
	Positive  int             `json:"positive"`
	Seed      uint64          `json:"seed"`
	Split     string          `json:"split,omitempty"` // split of the samples to which the rules were fitted
	Samples   int             `json:"samples"`
	Groups    map[string]Rule `json:"groups"` // rules by the number of the group
}

// Rule is the rule of one group. Its thresholds are in ascending order.
type Rule struct {
	Samples int    `json:"samples"` // number of samples of the group
	Steps   []Step `json:"steps"`
}

// Step is a threshold with its probability.
type Step struct {
	Threshold   float64 `json:"threshold"`
	Probability float64 `json:"probability"`
}

// Probability returns the probability of a positive decision for a sample with the given score.
func (r Rule) Probability(score float64) (sum float64) {
	for _, s := range r.Steps {
		if s.Threshold <= score {
			sum += s.Probability
		}
	}
	return sum
}

// Decide reports whether the decision for a sample with the given logits and group is positive. known is false if the
// group has no rule.
func (t *Thresholds) Decide(logits []float32, group int) (decided, known bool) {
	rule, known := t.Groups[fmt.Sprint(group)]
	if !known {
		return false, false
	}
	p := make([]float64, len(logits))
	vectors.Softmax(p, logits)
	switch q := rule.Probability(p[t.Positive]); {
	case q <= 0:
		return false, true
	case q >= 1-1e-12: // 1, up to the rounding of the probabilities
		return true, true
	default:
		return t.uniform(logits) < q, true
	}
}

// uniform returns a number in [0,1) that depends on the logits and the seed.
func (t *Thresholds) uniform(logits []float32) float64 {
	b := binary.LittleEndian.AppendUint64(nil, t.Seed)
	for _, z := range logits {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(z))
	}
	sum := sha256.Sum256(b)
	return float64(binary.LittleEndian.Uint64(sum[:])>>11) / (1 << 53)
}

// String describes the thresholds, as in "separation by group".
func (t *Thresholds) String() string { return t.Criterion + " by " + t.Column }

// check returns an error for values that Fit never produces.
func (t *Thresholds) check(classes int) error {
	if t.Positive < 0 || t.Positive >= classes {
		return fmt.Errorf("class %d, the head has %d", t.Positive, classes)
	}
	if len(t.Groups) == 0 || !slices.Contains(Criteria(), t.Criterion) {
		return fmt.Errorf("criterion %q of %d groups", t.Criterion, len(t.Groups))
	}
	for name, r := range t.Groups {
		sum := 0.0
		for _, s := range r.Steps {
			if !(s.Probability >= 0) || !(s.Threshold >= 0 && s.Threshold <= 1) {
				return fmt.Errorf("group %s: got the threshold %g with probability %g", name, s.Threshold, s.Probability)
			}
			sum += s.Probability
		}
		if !(sum <= 1+1e-9) {
			return fmt.Errorf("group %s: its probabilities add up to %g", name, sum)
		}
	}
	return nil
}

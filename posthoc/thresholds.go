package posthoc

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// Thresholds decide for a class of a head by the group of a sample. The score of a sample is the probability of the class Positive, the softmax of the logits. Each group has a rule: steps of
// thresholds t with probabilities q, which add up to at most 1. A sample of score s is decided for with probability
//
//	sum of q over the steps with t <= s
//
// One step of probability 1 is an ordinary threshold; t = 0 decides for every sample. Whether a sample is decided for depends on its logits and Seed alone: the same
// sample gets the same decision every time.
type Thresholds struct {
	Criterion string          `json:"criterion"`
	Column    string          `json:"column"`          // of the groups
	Names     []string        `json:"names,omitempty"` // of the groups, where the column has names
	Positive  int             `json:"positive"`
	Seed      uint64          `json:"seed"`
	Split     string          `json:"split,omitempty"` // of the samples that the rules were fitted to
	Samples   int             `json:"samples"`
	Groups    map[string]Rule `json:"groups"` // by the number of the group
}

// Rule is the rule of one group, its thresholds ascending.
type Rule struct {
	Samples int    `json:"samples"` // of the group
	Steps   []Step `json:"steps"`
}

// Step is a threshold with its probability.
type Step struct {
	Threshold   float64 `json:"threshold"`
	Probability float64 `json:"probability"`
}

// probability is that of deciding for a sample of that score.
func (r Rule) probability(score float64) (sum float64) {
	for _, s := range r.Steps {
		if s.Threshold <= score {
			sum += s.Probability
		}
	}
	return sum
}

// Decide reports whether a sample with these logits, of that group, is decided for; known is false for a group without a rule.
func (t *Thresholds) Decide(logits []float32, group int) (decided, known bool) {
	rule, known := t.Groups[fmt.Sprint(group)]
	if !known {
		return false, false
	}
	p := make([]float64, len(logits))
	Softmax(p, logits)
	switch q := rule.probability(p[t.Positive]); {
	case q <= 0:
		return false, true
	case q >= 1-1e-12: // a sum of rounded probabilities
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

// check returns an error for values that no fit gives.
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

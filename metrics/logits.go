package metrics

import (
	"fmt"
	"math"
	"slices"
)

// noLabels is the reason why a mean over labelled images is not applicable: there are none.
const noLabels = "the class of no sample is known"

// EachLabelled calls f with the logits and the class of every image of a known class, in order. A class without a logit is an
// error.
func (b *Batch) EachLabelled(f func(logits []float32, class int)) error {
	if len(b.Labels) == 0 {
		return nil
	}
	classes := len(b.Logits) / len(b.Labels)
	for i, class := range b.Labels {
		switch {
		case class < 0:
		case class >= classes:
			return fmt.Errorf("metrics: the head has %d logits, a sample has the class %d", classes, class)
		default:
			f(b.Logits[i*classes:(i+1)*classes], class)
		}
	}
	return nil
}

// classMean returns the meter for a mean over the images of a known class. The meter calls add for each of these images and
// divides the result of sum by their number.
func classMean(add func(logits []float32, class int), sum func() float64) Meter {
	n := 0
	return meter{func(b *Batch) error {
		return b.EachLabelled(func(logits []float32, class int) {
			n++
			add(logits, class)
		})
	}, func() []Value {
		if n == 0 {
			return []Value{NotApplicable(noLabels)}
		}
		return []Value{Number(sum() / float64(n))}
	}}
}

// logProbability returns the logarithm of the softmax probability of a class, computed without overflow.
func logProbability(logits []float32, class int) float64 {
	most, sum := float64(slices.Max(logits)), 0.0
	for _, x := range logits {
		sum += math.Exp(float64(x) - most)
	}
	return float64(logits[class]) - most - math.Log(sum)
}

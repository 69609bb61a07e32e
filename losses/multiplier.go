package losses

import (
	"fmt"

	"tessera/config/part"
)

// Adaptive is a weight that adapts to the values of its term during training with mini-batches. The weight of the first step is
// At(0).
type Adaptive interface {
	Weight
	// Next returns the weight of the next step from the weight of a step and the unweighted value of the term at that step.
	Next(weight, value float64) float64
}

// Multiplier is the Lagrange multiplier of the constraint term <= limit, found by dual ascent. After every step,
//
//	weight <- min(max(weight + rate (value - limit), least, 1e-9), most)
//
// with the value of the term on the batch. The weight rises while the term is above the limit and falls while it is below.
// The term thus converges to the limit, or stays below the limit if it does so without the penalty. The noise of single
// batches averages out, which it does not for a penalty with a large weight. The rate should be so small that the weight
// needs an epoch or more to converge; with a larger rate it oscillates.
//
// The weight stays between `least` and `most`. With a limit that the model cannot reach, the weight would otherwise rise
// until the term dominates the objective, and the sparsest code is an empty one. The training reports a term that ends above
// its limit with its weight at `most`. With `least` > 0 the term keeps some weight while it is below its limit.
//
// Evaluations outside of training use From. Sources: Arrow, Hurwicz and Uzawa, Studies in Linear and Non-linear
// Programming, 1958; Platt and Barr, Constrained Differential Optimization, NIPS 1987.
type Multiplier struct {
	From  float64 `toml:"from" want:"> 0" doc:"weight at the beginning"`
	Limit float64 `toml:"limit" required:"true" doc:"upper limit of the term, without its weight"`
	Rate  float64 `toml:"rate" want:"> 0" required:"true" doc:"change of the weight per step and unit of the term above the limit"`
	Least float64 `toml:"least" want:">= 0" doc:"lower bound of the weight"`
	Most  float64 `toml:"most" want:">= 0" doc:"upper bound of the weight; 0 for none"`
}

func init() {
	Weights.Register("multiplier", "Lagrange multiplier: rises while the term is above a limit, falls while it is below", func() Weight {
		return &Multiplier{From: 1e-6}
	})
}

// Check returns an error for bounds that exclude each other or the weight at the beginning.
func (m *Multiplier) Check() error {
	switch {
	case m.Most > 0 && m.Least > m.Most:
		return part.KeyErrorf("least", "got %v, want at most the upper bound %v (most)", m.Least, m.Most)
	case m.Most > 0 && m.From > m.Most:
		return part.KeyErrorf("from", "got %v, want at most the upper bound %v (most)", m.From, m.Most)
	}
	return nil
}

// At implements [Weight]: the initial weight, because later weights depend on the images.
func (m *Multiplier) At(float64) float64 { return m.From }

func (m *Multiplier) Next(weight, value float64) float64 {
	next := max(weight+m.Rate*(value-m.Limit), smallest, m.Least)
	if m.Most > 0 {
		next = min(next, m.Most)
	}
	return next
}

// Diagnosing is implemented by adaptive weights that may miss their goal.
type Diagnosing interface {
	// Diagnose explains which goal was missed, by how much, and what to change; "" if the goal is reached. weight is the
	// weight at the end of the training, value the mean unweighted value of the term over the last epoch, in which a step counts
	// as much as its weight, and dead the fraction of the units that are dead.
	Diagnose(weight, value, dead float64) string
}

// overLimit is the accepted excess of a term over its limit at the end of a training, as a fraction of the limit: the term
// varies from batch to batch.
const overLimit = 0.02

// farBelow is the fraction of its limit below which a term with most units dead counts as overshot.
const farBelow = 0.1

func (m *Multiplier) Diagnose(weight, value, dead float64) string {
	switch {
	case value < farBelow*m.Limit && dead > 0.5:
		return fmt.Sprintf("asked for <= %g, reached %.4g, with %.0f %% of the units dead: the weight rose too far and switched them off; "+
			"lower rate, set most, or raise limit", m.Limit, value, 100*dead)
	case !(value > m.Limit+overLimit*max(m.Limit, -m.Limit)), weight <= max(smallest, m.Least):
		return "" // a weight at its lower bound fell to it: the term has been below the limit
	case m.Most > 0 && weight >= m.Most*(1-1e-6):
		return fmt.Sprintf("asked for <= %g, reached %.4g, with the weight at its upper bound of %g: these data do not reach the limit at that price; "+
			"raise limit, or raise most and accept a larger error", m.Limit, value, m.Most)
	}
	return fmt.Sprintf("asked for <= %g, reached %.4g, with the weight still rising at %.3g; train longer, or raise rate or limit", m.Limit, value, weight)
}

// smallest keeps the weight positive, because the value of a term is its contribution to the loss divided by the weight.
const smallest = 1e-9

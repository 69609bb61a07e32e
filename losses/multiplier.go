package losses

import "fmt"

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
// with the value of the term on the batch. The weight rises while the term is above the limit and falls while it is below. The
// term thus converges to the limit, or stays below it if it is below without the weight. The noise of single batches averages
// out, unlike for a penalty with a large weight. The rate should be so small that the weight needs an epoch or more to
// converge; with a larger rate it oscillates.
//
// The weight stays between `least` and `most`. A limit that the model cannot reach would otherwise let the weight rise until the term
// is all that counts, and the sparsest code is an empty one. A term that is still above its limit at the end, with its weight at
// `most`, is reported. With `least` the term keeps some weight where it is below its limit.
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

// At implements [Weight]: the first weight, because later ones depend on the images.
func (m *Multiplier) At(float64) float64 { return m.From }

// Next implements [Adaptive].
func (m *Multiplier) Next(weight, value float64) float64 {
	next := max(weight+m.Rate*(value-m.Limit), smallest, m.Least)
	if m.Most > 0 {
		next = min(next, m.Most)
	}
	return next
}

// Diagnosing is implemented by adaptive weights that may fail to reach what they are declared for.
type Diagnosing interface {
	// Diagnose says what was asked, what was reached and what to change, "" if nothing is wrong. It gets the weight at the end of a
	// training and the mean value of the term, without its weight, over the last epoch.
	Diagnose(weight, value float64) string
}

// overLimit is how far above its limit a term may be at the end, as a fraction of the limit: it varies from batch to batch.
const overLimit = 0.02

// Diagnose implements [Diagnosing].
func (m *Multiplier) Diagnose(weight, value float64) string {
	switch {
	case !(value > m.Limit+overLimit*max(m.Limit, -m.Limit)):
		return ""
	case m.Most > 0 && weight >= m.Most*(1-1e-6):
		return fmt.Sprintf("asked for <= %g, reached %.4g, with the weight at its upper bound of %g: these data do not reach the limit at that price; "+
			"raise limit, or raise most and accept a larger error", m.Limit, value, m.Most)
	}
	return fmt.Sprintf("asked for <= %g, reached %.4g, with the weight still rising at %.3g; train longer, or raise rate or limit", m.Limit, value, weight)
}

// smallest keeps the weight positive, because the value of a term is its contribution to the loss divided by the weight.
const smallest = 1e-9

package losses

// Adaptive is a weight that adapts to the values of its term during training with mini-batches. The weight of the first step is
// At(0).
type Adaptive interface {
	Weight
	// Next returns the weight of the next step from the weight of a step and the unweighted value of the term at that step.
	Next(weight, value float64) float64
}

// Multiplier is the Lagrange multiplier of the constraint term <= limit, found by dual ascent. After every step,
//
//	weight <- max(weight + rate (value - limit), 1e-9)
//
// with the value of the term on the batch. The weight rises while the term is above the limit and falls while it is below. The
// term thus converges to the limit, or stays below it if it is below without the weight. The noise of single batches averages
// out, unlike for a penalty with a large weight. The rate should be so small that the weight needs an epoch or more to
// converge; with a larger rate it oscillates.
//
// Evaluations outside of training use From. Sources: Arrow, Hurwicz and Uzawa, Studies in Linear and Non-linear
// Programming, 1958; Platt and Barr, Constrained Differential Optimization, NIPS 1987.
type Multiplier struct {
	From  float64 `toml:"from" want:"> 0" doc:"weight at the beginning"`
	Limit float64 `toml:"limit" required:"true" doc:"upper limit of the term, without its weight"`
	Rate  float64 `toml:"rate" want:"> 0" required:"true" doc:"change of the weight per step and unit of the term above the limit"`
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
	return max(weight+m.Rate*(value-m.Limit), smallest)
}

// smallest keeps the weight positive, because the value of a term is its contribution to the loss divided by the weight.
const smallest = 1e-9

package train

import (
	"math"

	"tessera/losses"
)

// adaptive is a weight that follows the values of its term.
type adaptive struct {
	losses.Adaptive
	term, input int // of the model and of the program
	unweighted  int // tap of the term without its weight
}

// weigh sets the adaptive weights of a step.
func (n *network) weigh(p *program, values [][]float32) {
	if len(p.adaptive) > 0 && n.progress.Weights == nil { // the first step of the run
		n.progress.Weights = make([]float64, len(n.spec.Losses))
		for _, a := range p.adaptive {
			n.progress.Weights[a.term] = a.At(0)
		}
	}
	for _, a := range p.adaptive {
		values[a.input][0] = float32(n.progress.Weights[a.term])
	}
}

// adapt computes the adaptive weights of the next step from the terms of this one. It returns a weight that is not finite.
func (n *network) adapt(p *program) (b bad) {
	for _, a := range p.adaptive {
		weight := n.progress.Weights[a.term]
		value := p.scalar(p.terms[a.term]) / float64(float32(weight))
		if float32(weight) == 0 {
			value = p.scalar(a.unweighted)
		}
		next := a.Next(weight, value)
		if b.tensor == "" && (math.IsNaN(next) || math.IsInf(next, 0)) {
			b = bad{"weight of loss." + n.spec.TermName(a.term), next}
		}
		n.progress.Weights[a.term] = next
	}
	return b
}

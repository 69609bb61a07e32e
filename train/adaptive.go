package train

import "tessera/losses"

// adaptive is a weight that follows the values of its term.
type adaptive struct {
	losses.Adaptive
	term, input int // of the model and of the program
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

// adapt computes the adaptive weights of the next step from the terms of this one.
func (n *network) adapt(p *program) {
	for _, a := range p.adaptive {
		weight := n.progress.Weights[a.term]
		n.progress.Weights[a.term] = a.Next(weight, p.scalar(p.terms[a.term])/float64(float32(weight)))
	}
}

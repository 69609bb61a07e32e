package laws

import "tessera/gradcheck"

// gradients holds a layer to the gradient gate, which compiles separate runs, on Gorgonia's machine: another law holds the
// engine to that.
func (t layerTrial) gradients() error { return t.gate(gradcheck.Scalar) }

// curvature holds the derivatives of a layer to the gate: penalties of a code's Jacobian differentiate them again.
func (t layerTrial) curvature() error { return t.gate(gradcheck.SquaredGradient) }

// gate holds what scalar makes of a layer to the gradient gate.
func (t layerTrial) gate(scalar func(gradcheck.Expression[float64]) gradcheck.Expression[float64]) error {
	if t.on != onTape {
		return nil
	}
	return gradcheck.Check(scalar(layerOn[float64](t, t.fresh())))
}

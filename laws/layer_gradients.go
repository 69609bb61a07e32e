package laws

import "tessera/laws/gradcheck"

// gradients applies the gradient check, which compiles separate programs for Gorgonia's tape machine, to a layer. Another
// law compares the engine with the tape machine.
func (t layerTrial) gradients() error { return t.gate(gradcheck.Scalar) }

// curvature applies the gradient check to the derivatives of a layer: penalties of a code's Jacobian differentiate them
// again.
func (t layerTrial) curvature() error { return t.gate(gradcheck.SquaredGradient) }

// gate applies the gradient check to scalar of a layer.
func (t layerTrial) gate(scalar func(gradcheck.Expression[float64]) gradcheck.Expression[float64]) error {
	if t.on != onTape {
		return nil
	}
	return gradcheck.Check(scalar(layerOn[float64](t, t.fresh())))
}

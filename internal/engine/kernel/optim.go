package kernel

import "math"

// The optimizer steps make one pass over equally long slices: a parameter w, its gradient g and its state, which starts
// at 0. w and the state change in place, g does not. The formulas are PyTorch's, element by element. As in PyTorch,
// hyperparameters are float64; 1-beta and similar terms are computed in float64 and rounded to float32 once per call.
// The steps use the length of the shortest slice. Goroutines may update parts of a parameter concurrently. In assembly,
// numbers below 1.2e-38 (denormals) count as 0. Decaying states would otherwise stay denormal, and slow.

// SGDParams are the settings of [SGD].
type SGDParams struct {
	LR, Momentum, WeightDecay float64
	Nesterov                  bool
}

// SGD makes one step of stochastic gradient descent. d = g + WeightDecay*w. If Momentum != 0, buf = Momentum*buf + d;
// then d = d + Momentum*buf if Nesterov, else d = buf. Finally w -= LR*d. buf may be nil if Momentum is 0.
func SGD(w, g, buf []float32, p SGDParams) { steps().runSGD(w, g, buf, p) }

// AdamParams are the settings of [Adam] and [AdamW] at step t, counted from 1.
type AdamParams struct {
	LR, Beta1, Beta2, Eps, WeightDecay float64
	// Correction1 is 1-Beta1^t, Correction2 is 1-Beta2^t.
	Correction1, Correction2 float64
}

// Adam makes one step of Adam (Kingma and Ba 2015): d = g + WeightDecay*w; m = Beta1*m + (1-Beta1)*d; v = Beta2*v +
// (1-Beta2)*d*d; w -= LR/Correction1 * m / (sqrt(v)/sqrt(Correction2) + Eps).
func Adam(w, g, m, v []float32, p AdamParams) { steps().runAdam(w, g, m, v, p, false) }

// AdamW makes one step of [Adam] with decoupled weight decay (Loshchilov and Hutter 2019): first w -= LR*WeightDecay*w,
// then the step with d = g.
func AdamW(w, g, m, v []float32, p AdamParams) { steps().runAdam(w, g, m, v, p, true) }

// AdadeltaParams are the settings of [Adadelta].
type AdadeltaParams struct {
	LR, Rho, Eps, WeightDecay float64
}

// Adadelta makes one step of Adadelta (Zeiler 2012): d = g + WeightDecay*w; sq = Rho*sq + (1-Rho)*d*d; u = d *
// sqrt(acc+Eps)/sqrt(sq+Eps); w -= LR*u; acc = Rho*acc + (1-Rho)*u*u.
func Adadelta(w, g, sq, acc []float32, p AdadeltaParams) { steps().runAdadelta(w, g, sq, acc, p) }

// AdagradParams are the settings of [Adagrad].
type AdagradParams struct {
	LR, Eps, WeightDecay float64
}

// Adagrad makes one step of Adagrad (Duchi, Hazan and Singer 2011): d = g + WeightDecay*w; sum += d*d; w -=
// LR*d/(sqrt(sum)+Eps).
func Adagrad(w, g, sum []float32, p AdagradParams) { steps().runAdagrad(w, g, sum, p) }

// RMSPropParams are the settings of [RMSProp].
type RMSPropParams struct {
	LR, Alpha, Eps, Momentum, WeightDecay float64
}

// RMSProp makes one step of RMSProp (Hinton 2012): d = g + WeightDecay*w; sq = Alpha*sq + (1-Alpha)*d*d; u =
// d/(sqrt(sq)+Eps). If Momentum != 0, buf = Momentum*buf + u; then u = buf. Finally w -= LR*u. buf may be nil if
// Momentum is 0.
func RMSProp(w, g, sq, buf []float32, p RMSPropParams) { steps().runRMSProp(w, g, sq, buf, p) }

// Clamp projects every element of w onto [lo, hi]; NaN stays NaN. Clamp(w, 0, +Inf) enforces non-negativity.
func Clamp(w []float32, lo, hi float32) { elementwise32().Clamp(w, w, lo, hi) }

// stepSet contains the optimizer steps of one back end. The scalar arguments are already rounded to float32. rest,
// rest1 and rest2 are 1 minus the factor before them.
type stepSet struct {
	name string
	sgd  func(w, g []float32, lr, decay float32)
	// sgdMomentum subtracts lr*(own*d + buffered*buf) from w.
	sgdMomentum func(w, g, buf []float32, lr, momentum, decay, own, buffered float32)
	// adam subtracts step * m / (sqrt(v)*scale + eps) from w; adamW multiplies w by keep first.
	adam            func(w, g, m, v []float32, beta1, rest1, beta2, rest2, step, scale, eps, decay float32)
	adamW           func(w, g, m, v []float32, beta1, rest1, beta2, rest2, step, scale, eps, keep float32)
	adadelta        func(w, g, sq, acc []float32, lr, rho, rest, eps, decay float32)
	adagrad         func(w, g, sum []float32, lr, eps, decay float32)
	rmsProp         func(w, g, sq []float32, lr, alpha, rest, eps, decay float32)
	rmsPropMomentum func(w, g, sq, buf []float32, lr, alpha, rest, eps, decay, momentum float32)
}

func (s *stepSet) runSGD(w, g, buf []float32, p SGDParams) {
	lr, momentum, decay := float32(p.LR), float32(p.Momentum), float32(p.WeightDecay)
	switch {
	case p.Momentum == 0:
		s.sgd(w, g, lr, decay)
	case p.Nesterov:
		s.sgdMomentum(w, g, buf, lr, momentum, decay, 1, momentum)
	default:
		s.sgdMomentum(w, g, buf, lr, momentum, decay, 0, 1)
	}
}

func (s *stepSet) runAdam(w, g, m, v []float32, p AdamParams, decoupled bool) {
	step, last := s.adam, p.WeightDecay
	if decoupled {
		step, last = s.adamW, 1-p.LR*p.WeightDecay
	}
	step(w, g, m, v, float32(p.Beta1), float32(1-p.Beta1), float32(p.Beta2), float32(1-p.Beta2),
		float32(p.LR/p.Correction1), float32(1/math.Sqrt(p.Correction2)), float32(p.Eps), float32(last))
}

func (s *stepSet) runAdadelta(w, g, sq, acc []float32, p AdadeltaParams) {
	s.adadelta(w, g, sq, acc, float32(p.LR), float32(p.Rho), float32(1-p.Rho), float32(p.Eps), float32(p.WeightDecay))
}

func (s *stepSet) runAdagrad(w, g, sum []float32, p AdagradParams) {
	s.adagrad(w, g, sum, float32(p.LR), float32(p.Eps), float32(p.WeightDecay))
}

func (s *stepSet) runRMSProp(w, g, sq, buf []float32, p RMSPropParams) {
	lr, alpha, rest, eps, decay := float32(p.LR), float32(p.Alpha), float32(1-p.Alpha), float32(p.Eps), float32(p.WeightDecay)
	if p.Momentum == 0 {
		s.rmsProp(w, g, sq, lr, alpha, rest, eps, decay)
		return
	}
	s.rmsPropMomentum(w, g, sq, buf, lr, alpha, rest, eps, decay, float32(p.Momentum))
}

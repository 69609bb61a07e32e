package optim

// Rate returns the learning rate of a step, counted from 1 over the whole run of epochs epochs of stepsPerEpoch steps:
// the base rate, times the schedule's factor at the beginning of the step, times the warm-up.
//
// The warm-up rises linearly, step/(warmupEpochs*stepsPerEpoch), to 1 at its last step; its first step is not 0, since
// that would be a step for nothing. 0 epochs have none. The schedule runs from the first step, beneath the warm-up.
func Rate(base float64, s Schedule, warmupEpochs float64, step, stepsPerEpoch, epochs int) float64 {
	rate := base * s.Factor(float64(step-1)/float64(stepsPerEpoch), float64(epochs))
	if steps := warmupEpochs * float64(stepsPerEpoch); float64(step) < steps {
		rate *= float64(step) / steps
	}
	return rate
}

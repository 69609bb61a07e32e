package losses

import "math"

// Likelihood is implemented by terms that equal the negative log-likelihood of the images, for a distribution around the
// output, up to a positive factor and a constant.
type Likelihood interface {
	Loss
	// Noise reports whether the distribution has a noise variance, and whether it is defined with these settings.
	Noise() (has, defined bool)
	// LogLikelihood returns log p(target | output), the sum over the values of one sample, in nats. variance is the noise
	// variance, for a distribution that has one.
	LogLikelihood(output, target []float32, variance float64) float64
}

func (BCE) Noise() (has, defined bool) { return false, true }

// LogLikelihood implements [Likelihood]: Bernoulli distributions of the values. Targets between 0 and 1 give the weighted mean
// of the log probabilities of 0 and 1, as is usual for grey images.
func (BCE) LogLikelihood(output, target []float32, _ float64) (sum float64) {
	for i, y := range output {
		p := min(max(float64(y), epsilon), 1-epsilon)
		switch x := float64(target[i]); x {
		case 0:
			sum += math.Log1p(-p)
		case 1:
			sum += math.Log(p)
		default:
			sum += x*math.Log(p) + (1-x)*math.Log1p(-p)
		}
	}
	return sum
}

func (l *MSE) Noise() (has, defined bool) { return true, !l.Relative && !l.Censored }

// LogLikelihood implements [Likelihood]: normal distributions of the values, N(output, variance).
func (l *MSE) LogLikelihood(output, target []float32, variance float64) float64 {
	squares := 0.0
	for i, y := range output {
		d := float64(target[i]) - float64(y)
		squares += d * d
	}
	return -squares/(2*variance) - float64(len(output))/2*math.Log(2*math.Pi*variance)
}

package metrics

import (
	"context"
	"math"
)

// Density is a [Coder] with a probability density, or a discrete distribution, of images.
type Density interface {
	Coder
	// LogLikelihood returns the log density of each image, in nats.
	LogLikelihood(images []float32) ([]float64, error)
	// Freedom returns the number of free parameters.
	Freedom() int
}

// Sources: G. Schwarz, Estimating the dimension of a model, Annals of Statistics 6(2), 1978; H. Akaike, A new look at the
// statistical model identification, IEEE Trans. Automatic Control 19(6), 1974.
func init() {
	const where = ". For models that are densities: gmm, bmm, factor_analysis"
	const fitted = ". Meant for the samples that the model was fitted to (`--split train`)" + where
	ofDensity("log_likelihood", "log-likelihood of the samples", func(sum, q, n float64) []Value { return []Value{Number(sum / n)} },
		Measure{Name: "log_likelihood", Unit: "nats", Better: Higher, Doc: "mean over the samples of log p(x)" + where})
	ofDensity("information", "information criteria of the samples: BIC and AIC",
		func(sum, q, n float64) []Value { return []Value{Number(q*math.Log(n) - 2*sum), Number(2*q - 2*sum)} },
		Measure{Name: "bic", Better: Lower, Fitted: true, Doc: "Bayesian information criterion of the measured samples, q log n - 2 Σ log p(x), q the number of free parameters" + fitted},
		Measure{Name: "aic", Better: Lower, Fitted: true, Doc: "Akaike's information criterion of the measured samples, 2 q - 2 Σ log p(x), q the number of free parameters" + fitted})
}

// ofDensity registers a metric of the sum of the log densities of n samples and the number q of free parameters.
func ofDensity(name, doc string, values func(sum, q, n float64) []Value, measures ...Measure) {
	register(name, doc, Description{Measures: measures, Reads: ReadsImages, Partial: true, OnRequest: true}, func(s *Subject) (Meter, error) {
		density, ok := As[Density](s.Coder)
		if !ok {
			return Fixed(NotApplicable("the model is not a density")), nil
		}
		return &likelihoodMeter{density: density, values: values}, nil
	})
}

type likelihoodMeter struct {
	density Density
	values  func(sum, q, n float64) []Value
	sum     float64
	n       int
}

func (m *likelihoodMeter) Add(b *Batch) error {
	values, err := m.density.LogLikelihood(b.Images)
	for _, v := range values {
		m.sum += v
	}
	m.n += len(values)
	return err
}

func (m *likelihoodMeter) Values(context.Context) ([]Value, error) {
	if m.n == 0 {
		return []Value{NotApplicable(noImages)}, nil
	}
	return m.values(m.sum, float64(m.density.Freedom()), float64(m.n)), nil
}

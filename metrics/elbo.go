package metrics

import (
	"cmp"
	"context"
	"errors"
	"math"

	"tessera/internal/lists"
)

// Latent is a [Coder] that gives each image x a distribution q(z|x) of codes, and has a prior p(z) and a likelihood p(x|z).
type Latent interface {
	Coder
	// Posterior draws codes for each image of a batch. noise is the standard deviation of the likelihood; 0 means that of the
	// training objective. first is the index of the first image: the random numbers of an image depend only on the seed and its
	// index, and more codes continue fewer ones. The error is [ErrNoPosterior] for a model without such distributions.
	Posterior(b *Batch, samples int, noise float64, seed uint64, first int) (*Posterior, error)
}

// ErrNoPosterior is the error for a model without a distribution of codes or without a likelihood.
var ErrNoPosterior = errors.New("the model is not variational")

// Posterior contains log densities in nats for n images with k drawn codes z each.
type Posterior struct {
	Likelihood []float64 // n x k: log p(x|z)
	Ratio      []float64 // n x k: log p(z) - log q(z|x)
	Divergence []float64 // n: KL(q(z|x) || p(z))
}

func init() {
	Registry.Register("elbo", "evidence lower bound of a variational auto-encoder", func() Metric { return &ELBO{Samples: 1, Seed: 1} })
	Registry.Register("iwae", "importance-weighted bound of a variational auto-encoder", func() Metric { return &IWAE{Samples: 50, Seed: 1} })
}

// ELBO is the evidence lower bound of the log-likelihood of an image,
//
//	log p(x) >= E_q[log p(x|z)] - KL(q(z|x) || p(z)),
//
// with the mean of Samples codes as expectation, and the divergence in closed form. The likelihood is that of the first term of
// the objective that compares the output with the images: bce gives Bernoulli distributions, mse normal distributions. The
// variance of these is noise²; without noise it is the one that the objective implies: w_kl pixels / (2 w_mse) for the final
// weights of the two terms. A weight of the divergence other than 1 does not change the bound. Values are scaled as in the
// training. There is no bound for images with missing or hidden entries, and none if the output does not depend on the codes, or
// also reads what it is compared with. Source: Kingma and Welling, Auto-encoding variational Bayes, 2014.
type ELBO struct {
	Samples int     `toml:"samples" want:"in [1,10000]" doc:"number of codes that are drawn for each sample"`
	Noise   float64 `toml:"noise" want:">= 0" doc:"standard deviation of the noise of mse; 0 means that of the objective"`
	Seed    uint64  `toml:"seed" doc:"seed of the codes"`
}

func (*ELBO) Describe() Description {
	const where = ". For variational auto-encoders, trained by `bce` or `mse`"
	return Description{
		Measures: []Measure{
			{Name: "elbo", Unit: "nats", Better: Higher, Doc: "lower bound of the mean log-likelihood of a sample, E_q[log p(x\\|z)] - KL(q(z\\|x) \\|\\| p(z)), from 1 code for each sample (Kingma and Welling 2014). " +
				"`--with samples=N` draws more, `--with noise=S` sets the standard deviation of `mse`" + where},
			{Name: "elbo_likelihood", Unit: "nats", Better: Higher, Doc: "its first part, the mean of log p(x\\|z)" + where},
			{Name: "elbo_divergence", Unit: "nats", Better: Neither, Doc: "its second part, the mean divergence of the codes from the prior" + where},
		},
		Reads: ReadsImages, Ordered: true, Partial: true,
	}
}

func (m *ELBO) Start(s *Subject) (Meter, error) {
	return &boundMeter{latent: s.Coder, samples: m.Samples, noise: m.Noise, seed: m.Seed, sums: make([]float64, 3), add: func(p *Posterior, sums []float64) {
		for i, divergence := range p.Divergence {
			mean := 0.0
			for _, l := range p.Likelihood[i*m.Samples : (i+1)*m.Samples] {
				mean += l / float64(m.Samples)
			}
			sums[0] += mean - divergence
			sums[1] += mean
			sums[2] += divergence
		}
	}}, nil
}

// IWAE is the importance-weighted lower bound of the log-likelihood of an image,
//
//	log p(x) >= E[log 1/k sum over the k codes z drawn from q of p(x|z) p(z) / q(z|x)],
//
// which grows with k and tends to log p(x). With k = 1 it has the expectation of the elbo. Likelihoods are those of [ELBO].
// Source: Burda, Grosse and Salakhutdinov, Importance weighted autoencoders, 2016.
type IWAE struct {
	Samples int     `toml:"samples" want:"in [1,10000]" doc:"number of codes k that are drawn for each sample"`
	Noise   float64 `toml:"noise" want:">= 0" doc:"standard deviation of the noise of mse; 0 means that of the objective"`
	Seed    uint64  `toml:"seed" doc:"seed of the codes"`
}

func (*IWAE) Describe() Description {
	return Description{
		Measures: []Measure{{Name: "iwae", Unit: "nats", Better: Higher, Doc: "importance-weighted lower bound of the mean log-likelihood of a sample, from 50 codes for each (Burda et al. 2016). " +
			"`--with samples=N` draws another number: the bound grows with it. For variational auto-encoders, trained by `bce` or `mse`"}},
		Reads: ReadsImages, Ordered: true, Partial: true, OnRequest: true,
	}
}

func (m *IWAE) Start(s *Subject) (Meter, error) {
	return &boundMeter{latent: s.Coder, samples: m.Samples, noise: m.Noise, seed: m.Seed, sums: make([]float64, 1), add: func(p *Posterior, sums []float64) {
		weights := make([]float64, m.Samples)
		for i := range p.Divergence {
			most := math.Inf(-1)
			for k := range weights {
				weights[k] = p.Likelihood[i*m.Samples+k] + p.Ratio[i*m.Samples+k]
				most = max(most, weights[k])
			}
			sum := 0.0
			for _, w := range weights {
				sum += math.Exp(w - most)
			}
			sums[0] += most + math.Log(sum/float64(m.Samples))
		}
	}}, nil
}

// boundMeter adds the bounds of single images.
type boundMeter struct {
	latent  Coder
	samples int
	noise   float64
	seed    uint64
	add     func(p *Posterior, sums []float64)

	sums    []float64
	n       int
	missing string // why the metric is not applicable; "" if it is
}

func (m *boundMeter) Add(b *Batch) error {
	latent, ok := As[Latent](m.latent)
	if !ok {
		m.missing = ErrNoPosterior.Error()
	}
	if m.missing != "" {
		return nil
	}
	p, err := latent.Posterior(b, m.samples, m.noise, m.seed, m.n)
	if errors.Is(err, ErrNoPosterior) {
		m.missing = err.Error()
		return nil
	} else if err != nil {
		return err
	}
	m.add(p, m.sums)
	m.n += len(p.Divergence)
	return nil
}

func (m *boundMeter) Values(context.Context) ([]Value, error) {
	if m.missing != "" || m.n == 0 {
		return []Value{NotApplicable(cmp.Or(m.missing, noImages))}, nil
	}
	values := lists.Map(m.sums, func(sum float64) Value { return Number(sum / float64(m.n)) })
	return values, nil
}

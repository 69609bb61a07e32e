package metrics

import (
	"context"
	"errors"

	"tessera/internal/boltzmann"
	"tessera/internal/lists"
	"tessera/internal/parallel/team"
	"tessera/internal/random"
)

// DeepBelief is a [Coder] that may be a deep belief net.
type DeepBelief interface {
	Coder
	// DeepBelief returns the machines from the images upwards, at least two. The error is [ErrNoDeepBelief] for another model.
	DeepBelief() ([]*boltzmann.Machine, error)
}

// ErrNoDeepBelief is the error for a model that is not a deep belief net.
var ErrNoDeepBelief = errors.New("the model is not a deep belief net: its encoder is not two or more layers rbm, one on the other, of which the first reads the samples alone")

func init() {
	Registry.Register("dbn_bound", "lower bound of the log-likelihood of a deep belief net, estimated", func() Metric {
		return &DBNBound{Chains: 100, Temperatures: 10000, Seed: 1}
	})
}

// DBNBound is an estimate of a lower bound of the mean log-likelihood of the images under a deep belief net. With q(h | v) of
// the machines below the last one, and the free energy F and the partition function Z of the last one,
//
//	log p(v) >= E_q [log p(v | h) - log q(h | v) - F(h)] - log Z
//
// with one draw of h for every image, and Z by annealed importance sampling as in [RBMAIS]. The chains begin at a machine without
// weights, with the mean of the drawn h. The bound is tight if q is the posterior of the net.
//
// Sources: Hinton, Osindero and Teh, A fast learning algorithm for deep belief nets, 2006; Salakhutdinov and Murray, On the
// quantitative analysis of deep belief networks, 2008.
type DBNBound struct {
	Chains       int    `toml:"chains" want:"in [2,100000]" doc:"number of independent chains"`
	Temperatures int    `toml:"temperatures" want:"in [1,10000000]" doc:"number of steps of a chain"`
	Seed         uint64 `toml:"seed" doc:"seed of the chains, of the binary samples and of the hidden units"`
}

func (*DBNBound) Describe() Description {
	return Description{
		Measures: []Measure{
			{Name: "dbn_bound", Unit: "nats", Better: Higher, Doc: "mean over the samples of a lower bound of log p(x) under a deep belief net (Hinton et al. 2006), with one draw of the hidden units " +
				"for every sample and the partition function of the last machine as in `rbm_ais`. For models whose encoder is two or more layers `rbm`. Values between 0 and 1 are " +
				"probabilities: every sample is drawn as a binary one, by `--with seed=N`, if the visible units are binary"},
			{Name: "dbn_bound_log_z", Unit: "nats", Better: Neither, Doc: "the estimated logarithm of the partition function of the last machine"},
			{Name: "dbn_bound_error", Unit: "nats", Better: Lower, Doc: "its standard error, from the spread of the weights of the chains"},
		},
		Reads: ReadsImages, Ordered: true, Partial: true, OnRequest: true,
	}
}

func (m *DBNBound) Start(s *Subject) (Meter, error) {
	meter := &beliefMeter{DBNBound: *m}
	err := ErrNoDeepBelief
	if c, ok := As[DeepBelief](s.Coder); ok {
		meter.machines, err = c.DeepBelief()
	}
	if err != nil {
		return Fixed(NotApplicable(err.Error())), nil
	}
	meter.net = boltzmann.NewNet(meter.machines)
	return meter, nil
}

// beliefMeter sums the bounds of images, without log Z.
type beliefMeter struct {
	DBNBound
	machines []*boltzmann.Machine
	net      *boltzmann.Net

	bound float64
	top   []float64 // sums of the visible units of the last machine
	n     int
}

func (m *beliefMeter) Add(b *Batch) error {
	pixels := len(m.machines[0].VisibleBias)
	images := append([]float32(nil), b.Images...)
	n := len(images) / pixels
	bounds, tops := make([]float64, n), make([][]float32, n)
	const grain = 16
	team.For(n, grain, func(from, to int) {
		for i := from; i < to; i++ {
			v := images[i*pixels : (i+1)*pixels]
			if m.machines[0].Deviation == 0 {
				drawBinary(v, m.Seed, m.n+i)
			}
			bounds[i], tops[i] = m.net.Bound(v, random.Stream(m.Seed, "hidden", uint64(m.n+i)))
		}
	})
	if m.top == nil {
		m.top = make([]float64, len(m.machines[len(m.machines)-1].VisibleBias))
	}
	for i, top := range tops {
		m.bound += bounds[i]
		for j, h := range top {
			m.top[j] += float64(h)
		}
	}
	m.n += n
	return nil
}

func (m *beliefMeter) Values(ctx context.Context) ([]Value, error) {
	if m.n == 0 {
		return []Value{NotApplicable(noImages)}, nil
	}
	mean := lists.Map(m.top, func(s float64) float64 { return s / float64(m.n) })
	z, err := annealed(ctx, m.machines[len(m.machines)-1], mean, m.Chains, m.Temperatures, m.Seed)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return []Value{NotApplicable(err.Error())}, nil
	}
	return []Value{Number(m.bound/float64(m.n) - z.LogZ), Number(z.LogZ), Number(z.Error)}, nil
}

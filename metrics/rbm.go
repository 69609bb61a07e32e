package metrics

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"

	"tessera/internal/boltzmann"
	"tessera/internal/lists"
	"tessera/internal/parallel/team"
	"tessera/internal/random"
)

// Boltzmann is a [Coder] that may be a restricted Boltzmann machine.
type Boltzmann interface {
	Coder
	// Boltzmann returns the machine, whose visible units are the images. The error is [ErrNoBoltzmann] for another model.
	Boltzmann() (*boltzmann.Machine, error)
}

// ErrNoBoltzmann is the error for a model that is not a restricted Boltzmann machine.
var ErrNoBoltzmann = errors.New("the model is not a restricted Boltzmann machine: its encoder is not a layer rbm alone that reads the samples alone")

func init() {
	Registry.Register("rbm_exact", "log-likelihood of a small restricted Boltzmann machine, exactly", func() Metric { return &RBMExact{Seed: 1} })
	Registry.Register("rbm_ais", "log-likelihood of a restricted Boltzmann machine, estimated", func() Metric {
		return &RBMAIS{Chains: 100, Temperatures: 10000, Seed: 1}
	})
}

// binaryImages says what both metrics do with binary units.
const binaryImages = ". For models whose encoder is a layer `rbm` alone. Values between 0 and 1 are probabilities: every sample is drawn as a binary one, " +
	"by `--with seed=N`, if the visible units are binary"

// RBMExact is the mean log-likelihood under a restricted Boltzmann machine, log p(v) = -F(v) - log Z, with Z by enumeration.
type RBMExact struct {
	Seed uint64 `toml:"seed" doc:"seed of the binary samples"`
}

func (*RBMExact) Describe() Description {
	return Description{
		Measures: []Measure{
			{Name: "rbm_exact", Unit: "nats", Better: Higher, Doc: "mean over the samples of log p(x), with the partition function by enumeration; at most 22 visible or hidden units" + binaryImages},
			{Name: "rbm_exact_log_z", Unit: "nats", Better: Neither, Doc: "logarithm of the partition function, by enumeration"},
		},
		Reads: ReadsImages, Ordered: true, Partial: true, OnRequest: true,
	}
}

func (m *RBMExact) Start(s *Subject) (Meter, error) {
	return newBoltzmannMeter(s, m.Seed, func(ctx context.Context, machine *boltzmann.Machine, _ []float64, energy float64) []Value {
		z, err := machine.LogZ(ctx.Err)
		if err != nil {
			return []Value{NotApplicable(err.Error())}
		}
		return []Value{Number(-energy - z), Number(z)}
	}), nil
}

// RBMAIS is that of [RBMExact] with Z by annealed importance sampling. The chains begin at a machine without weights, with the mean of
// the measured samples. An estimate of Z from few chains or temperatures is usually too small, and the log-likelihood too large.
// Source: Salakhutdinov and Murray, On the quantitative analysis of deep belief networks, 2008.
type RBMAIS struct {
	Chains       int    `toml:"chains" want:"in [2,100000]" doc:"number of independent chains"`
	Temperatures int    `toml:"temperatures" want:"in [1,10000000]" doc:"number of steps of a chain"`
	Seed         uint64 `toml:"seed" doc:"seed of the chains and of the binary samples"`
}

func (*RBMAIS) Describe() Description {
	return Description{
		Measures: []Measure{
			{Name: "rbm_ais", Unit: "nats", Better: Higher, Doc: "mean over the samples of log p(x), with the partition function by annealed importance sampling: 100 chains of 10,000 temperatures " +
				"(Salakhutdinov and Murray 2008). `--with temperatures=N` and `--with chains=N` give others" + binaryImages},
			{Name: "rbm_ais_log_z", Unit: "nats", Better: Neither, Doc: "the estimated logarithm of the partition function"},
			{Name: "rbm_ais_error", Unit: "nats", Better: Lower, Doc: "its standard error, from the spread of the weights of the chains: also that of `rbm_ais`"},
		},
		Reads: ReadsImages, Ordered: true, Partial: true, OnRequest: true,
	}
}

func (m *RBMAIS) Start(s *Subject) (Meter, error) {
	return newBoltzmannMeter(s, m.Seed, func(ctx context.Context, machine *boltzmann.Machine, mean []float64, energy float64) []Value {
		z, err := annealed(ctx, machine, mean, m.Chains, m.Temperatures, m.Seed)
		if err != nil {
			return []Value{NotApplicable(err.Error())}
		}
		return []Value{Number(-energy - z.LogZ), Number(z.LogZ), Number(z.Error)}
	}), nil
}

// annealed estimates log Z of a machine by annealed importance sampling. mean is that of its visible units.
func annealed(ctx context.Context, machine *boltzmann.Machine, mean []float64, chains, temperatures int, seed uint64) (boltzmann.Annealing, error) {
	return machine.LogZByAnnealing(baseOf(machine, mean), chains, temperatures,
		func(chain int) *rand.Rand { return random.Stream(seed, "annealing", uint64(chain)) },
		func(n int, do func(int)) {
			team.For(n, 1, func(from, to int) {
				for i := from; i < to; i++ {
					do(i)
				}
			})
		}, ctx.Err)
}

// baseOf returns the visible bias of the base machine: that of independent units with the mean of the images. Means of binary
// units are kept away from 0 and 1.
func baseOf(m *boltzmann.Machine, mean []float64) []float32 {
	base := make([]float32, len(mean))
	for i, p := range mean {
		if base[i] = float32(p); m.Deviation == 0 {
			p = min(max(p, 0.001), 0.999)
			base[i] = float32(math.Log(p / (1 - p)))
		}
	}
	return base
}

// boltzmannMeter sums the free energies of images.
type boltzmannMeter struct {
	machine *boltzmann.Machine
	seed    uint64
	values  func(ctx context.Context, m *boltzmann.Machine, mean []float64, energy float64) []Value

	sums   []float64 // of the images, by pixel
	energy float64
	n      int
}

// newBoltzmannMeter returns a meter whose values are computed from the means of the pixels and of the free energy.
func newBoltzmannMeter(s *Subject, seed uint64, values func(context.Context, *boltzmann.Machine, []float64, float64) []Value) Meter {
	m, err := (*boltzmann.Machine)(nil), ErrNoBoltzmann
	if c, ok := As[Boltzmann](s.Coder); ok {
		m, err = c.Boltzmann()
	}
	if err != nil {
		return Fixed(NotApplicable(err.Error()))
	}
	return &boltzmannMeter{machine: m, seed: seed, values: values}
}

func (m *boltzmannMeter) Add(b *Batch) error {
	pixels := len(m.machine.VisibleBias)
	if m.sums == nil {
		m.sums = make([]float64, pixels)
	}
	images := append([]float32(nil), b.Images...)
	n := len(images) / pixels
	for i := range n {
		v := images[i*pixels : (i+1)*pixels]
		if m.machine.Deviation == 0 {
			drawBinary(v, m.seed, m.n+i)
		}
		for j, x := range v {
			m.sums[j] += float64(x)
		}
	}
	energies := make([]float64, n)
	const grain = 16
	team.For(n, grain, func(from, to int) {
		for i := from; i < to; i++ {
			energies[i] = m.machine.FreeEnergy(images[i*pixels : (i+1)*pixels])
		}
	})
	for _, e := range energies {
		m.energy += e
	}
	m.n += n
	return nil
}

// drawBinary draws an image as a binary one, given its index. The pixels are probabilities.
func drawBinary(v []float32, seed uint64, image int) {
	r := random.Stream(seed, "binary", uint64(image))
	for j, x := range v {
		if v[j] = 0; r.Float32() < x {
			v[j] = 1
		}
	}
}

func (m *boltzmannMeter) Values(ctx context.Context) ([]Value, error) {
	if m.n == 0 {
		return []Value{NotApplicable(noImages)}, nil
	}
	mean := lists.Map(m.sums, func(s float64) float64 { return s / float64(m.n) })
	values := m.values(ctx, m.machine, mean, m.energy/float64(m.n))
	return values, ctx.Err()
}

package classical

import (
	"context"
	"math"

	"tessera/internal/engine/ir"
	"tessera/internal/engine/kernel"
	"tessera/internal/fit"
	"tessera/internal/parallel/team"
)

// NNSAE is the non-negative sparse auto-encoder: an auto-encoder with tied weights W that learns online, without gradients
// through its encoder. For each image x, in an order that is shuffled again in every iteration:
//
//	g = W x,  h = 1 / (1 + exp(-a g - b)),  y = h W
//	W <- W + eta h (x - y)',  eta = learning_rate / (regularisation + |h|^2)
//	w <- (1 - decay_positive) w where w > 0,  w <- (1 - decay_negative) w where w < 0
//	d = plasticity_rate (1 - (2 + 1/mean) h + h^2 / mean),  b <- b + d,  a <- a + plasticity_rate / a + g d
//
// The last line, intrinsic plasticity, adapts slope a and offset b of each unit so that the distribution of its activations
// approaches an exponential distribution with mean `mean`. decay_negative = 1 keeps all weights non-negative. The initial
// values are W uniform in (0.0125, 0.0625), a = 1, b = -3. An iteration is one pass over the images; the reported objective is
// the mean squared error over the pass; each image is measured before it changes the weights.
//
// Sources: A. Lemme, R. F. Reinhart, J. J. Steil, Online learning and generalization of parts-based image representations by
// non-negative sparse autoencoders, Neural Networks 33, 2012; for the plasticity, J. Triesch, ICANN 2005.
type NNSAE struct {
	Components     int     `toml:"components" want:"> 0" doc:"units, each with an atom"`
	Iterations     int     `toml:"iterations" want:"> 0" doc:"passes over the samples"`
	LearningRate   float64 `toml:"learning_rate" want:"> 0" doc:"learning rate of the weights"`
	Regularisation float64 `toml:"regularisation" want:"> 0" doc:"bounds the learning rate for small codes"`
	DecayPositive  float64 `toml:"decay_positive" want:"in [0,1]" doc:"fraction by which a positive weight shrinks per sample"`
	DecayNegative  float64 `toml:"decay_negative" want:"in [0,1]" doc:"fraction by which a negative weight shrinks per sample; 1 makes it 0"`
	PlasticityRate float64 `toml:"plasticity_rate" want:">= 0" doc:"learning rate of the units' slopes and offsets"`
	Mean           float64 `toml:"mean" want:"in (0,1)" doc:"target mean activation of every unit"`
}

func init() {
	Registry.Register("nnsae", "non-negative sparse auto-encoder that learns online, with intrinsic plasticity", func() Method {
		return &NNSAE{Components: 100, Iterations: 500, LearningRate: 0.01, Regularisation: 2e-4, DecayNegative: 1,
			PlasticityRate: 0.001, Mean: 0.2}
	})
}

// Describe implements [Method]. A rising error does not end the fit.
func (s *NNSAE) Describe() Fitting {
	return Fitting{Name: "nnsae", Units: s.Components, Iterations: s.Iterations, Tolerance: math.Inf(-1), Signed: true, Absolute: true,
		Sizes: func(_, pixels int) error { return Bounded(s.Components, "atoms", pixels) }}
}

func (s *NNSAE) New(shape []int, seed uint64) (Model, error) {
	return NewModel(s, shape, seed, func(b Base) Algorithm {
		return &nnsae{Base: b, passes: passes{batch: onlineBatch}, settings: *s}
	})
}

type nnsae struct {
	Base
	passes
	settings NNSAE
	slopes   []float32 // a, one value per unit
	offsets  []float32 // b, one value per unit

	drive, code, left []float32 // g, h and x - y for one image
}

// Names of the saved values other than the atoms.
const (
	slopesName  = "slopes"
	offsetsName = "offsets"
)

// onlineBatch is the number of images that are read together. The context is checked between batches.
const onlineBatch = 128

func (m *nnsae) Start(images Images) error {
	m.images = images
	m.drive, m.code, m.left = make([]float32, m.units), make([]float32, m.units), make([]float32, m.pixels)
	m.shuffle(&m.Base)
	if m.atoms == nil {
		m.start()
	}
	return nil
}

// start sets the initial weights, slopes and offsets.
func (m *nnsae) start() {
	rng := m.Random("init/" + atomsName)
	m.atoms = make([]float32, m.units*m.pixels)
	for i := range m.atoms {
		m.atoms[i] = float32(0.0125 + 0.05*rng.Float64())
	}
	m.slopes, m.offsets = make([]float32, m.units), make([]float32, m.units)
	for j := range m.units {
		m.slopes[j], m.offsets[j] = 1, -3
	}
	m.objective = math.MaxFloat64
}

// Improve implements [Algorithm]: one pass over the images.
func (m *nnsae) Improve(ctx context.Context) (float64, error) {
	return m.run(ctx, &m.Base, func(x []float32) error {
		for ; len(x) > 0; x = x[m.pixels:] {
			m.errors += m.learn(x[:m.pixels])
		}
		return nil
	})
}

// learn updates the model by one image and returns its squared error.
func (m *nnsae) learn(x []float32) float64 {
	ops, s, left := kernel.Float32(), &m.settings, m.left
	for j := range m.units {
		m.drive[j] = ops.Dot(m.atom(j), x)
	}
	ops.MulAdd(m.code, m.slopes, m.drive, m.offsets)
	ops.Sigmoid(m.code, m.code)
	copy(left, x)
	for j, h := range m.code {
		ops.AddScaled(left, left, m.atom(j), -h)
	}
	rate := float32(s.LearningRate / (s.Regularisation + float64(ops.SumSquares(m.code))))
	for j, h := range m.code {
		w := m.atom(j)
		ops.AddScaled(w, w, left, rate*h)
		m.decay(w)
	}
	m.adapt()
	return float64(ops.SumSquares(left))
}

// decay shrinks the weights of one unit.
func (m *nnsae) decay(w []float32) {
	positive, negative := float32(1-m.settings.DecayPositive), float32(1-m.settings.DecayNegative)
	if positive == 1 && negative == 0 {
		kernel.Float32().MaxScalar(w, w, 0)
		return
	}
	for i, v := range w {
		if v > 0 {
			w[i] = positive * v
		} else {
			w[i] = negative * v
		}
	}
}

// adapt applies intrinsic plasticity to all units.
func (m *nnsae) adapt() {
	rate, mean := float32(m.settings.PlasticityRate), float32(m.settings.Mean)
	for j, h := range m.code {
		d := rate * (1 - (2+1/mean)*h + h*h/mean)
		m.offsets[j] += d
		m.slopes[j] += rate/m.slopes[j] + m.drive[j]*d
	}
}

// Infer implements [Algorithm]: 1 / (1 + exp(-a W x - b)).
func (m *nnsae) Infer(images []float32) ([]float32, error) {
	n := len(images) / m.pixels
	codes := make([]float32, n*m.units)
	multiply(false, true, n, m.units, m.pixels, images, m.atoms, codes)
	ops := kernel.Float32()
	team.For(n, fit.BlockSize, func(from, to int) {
		for i := from; i < to; i++ {
			code := codes[i*m.units : (i+1)*m.units]
			ops.MulAdd(code, m.slopes, code, m.offsets)
			ops.Sigmoid(code, code)
		}
	})
	return codes, nil
}

func (m *nnsae) expression(p *ir.Module, x *ir.Value) *ir.Value {
	g := m.projected(p, x)
	scaled := ir.Point(ir.Mul, g.Shape, g, row(p, slopesName, m.slopes))
	return ir.Point(ir.Sigmoid, g.Shape, ir.Point(ir.Add, g.Shape, scaled, row(p, offsetsName, m.offsets)))
}

func (m *nnsae) Keep(k *Kept) {
	m.Base.Keep(k)
	m.passes.keep(k)
	k.Tensor(slopesName, &m.slopes, m.units)
	k.Tensor(offsetsName, &m.offsets, m.units)
}

// Package boltzmann computes with restricted Boltzmann machines without a graph: Gibbs sampling, free energies, and the
// partition function, exactly or by annealed importance sampling.
package boltzmann

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Machine is a restricted Boltzmann machine with visible units v and binary hidden units h. Its energy is
//
//	E(v, h) = -a·v - b·h - v W h                        for binary v
//	E(v, h) = |v - a|² / 2σ² - b·h - v W h / σ²         for real v, with Deviation σ > 0
//
// and p(v, h) = exp(-E(v, h)) / Z. A Machine is not changed by its methods.
type Machine struct {
	Weight      []float32 // W, (visible, hidden), row-major
	Bias        []float32 // b, (hidden)
	VisibleBias []float32 // a, (visible)
	Deviation   float64   // σ of real visible units; 0 for binary ones
}

// factor returns the factor of v W in the activation of the hidden units: 1, or 1/σ².
func (m *Machine) factor() float64 {
	if m.Deviation > 0 {
		return 1 / (m.Deviation * m.Deviation)
	}
	return 1
}

// hidden sets z to b + v W, or b + v W / σ², in nats. Visible units with the value 0 cost nothing.
func (m *Machine) hidden(z, v []float32) {
	clear(z)
	for i, x := range v {
		if x != 0 {
			addScaled(z, m.Weight[i*len(z):(i+1)*len(z)], x)
		}
	}
	factor := float32(m.factor())
	for j, b := range m.Bias {
		z[j] = b + factor*z[j]
	}
}

// addScaled adds s times x to dst; for s = 1 without a product.
func addScaled(dst, x []float32, s float32) {
	x = x[:len(dst)]
	if s == 1 {
		for j := range dst {
			dst[j] += x[j]
		}
		return
	}
	for j := range dst {
		dst[j] += s * x[j]
	}
}

// FreeEnergy returns F(v) = -log sum over h of exp(-E(v, h)), in nats: log p(v) = -F(v) - log Z.
func (m *Machine) FreeEnergy(v []float32) float64 {
	z := make([]float32, len(m.Bias))
	m.hidden(z, v)
	f := 0.0
	for i, a := range m.VisibleBias {
		if x := float64(v[i]); m.Deviation > 0 {
			f += (x - float64(a)) * (x - float64(a)) * m.factor() / 2
		} else {
			f -= float64(a) * x
		}
	}
	for _, z := range z {
		f -= softplus(float64(z))
	}
	return f
}

// softplus is log(1 + exp(x)).
func softplus(x float64) float64 { return math.Max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// logSumExp returns the logarithm of the sum of the exponentials of x.
func logSumExp(x []float64) float64 {
	most, sum := math.Inf(-1), 0.0
	for _, v := range x {
		most = math.Max(most, v)
	}
	for _, v := range x {
		sum += math.Exp(v - most)
	}
	return most + math.Log(sum)
}

// Chain is a Gibbs chain of a machine, with room for its units. It samples p(v, h) at an inverse temperature β between a base
// machine without weights, at 0, and the machine itself, at 1: see [Machine.LogZByAnnealing].
type Chain struct {
	machine *Machine
	base    []float32 // visible bias of the base machine
	byUnit  []float32 // weights of one hidden unit after the other: the transpose of Weight

	Visible, Hidden []float32 // units; the caller may set Visible
	z               []float32 // b + v W / σ² for the current Visible
}

// NewChain returns a chain; all its units are 0.
func (m *Machine) NewChain() *Chain { return m.chains(1, m.VisibleBias)[0] }

// chains returns n chains that share the transpose of the weights.
func (m *Machine) chains(n int, base []float32) []*Chain {
	visible, hidden := len(m.VisibleBias), len(m.Bias)
	byUnit := make([]float32, len(m.Weight))
	for i := range visible {
		for j := range hidden {
			byUnit[j*visible+i] = m.Weight[i*hidden+j]
		}
	}
	all := make([]*Chain, n)
	for i := range all {
		all[i] = &Chain{machine: m, base: base, byUnit: byUnit,
			Visible: make([]float32, visible), Hidden: make([]float32, hidden), z: make([]float32, hidden)}
	}
	return all
}

// DrawHidden draws the hidden units for the visible ones.
func (c *Chain) DrawHidden(r *rand.Rand) {
	c.machine.hidden(c.z, c.Visible)
	c.drawHidden(1, r)
}

// drawHidden draws the hidden units at an inverse temperature; z must be current.
func (c *Chain) drawHidden(beta float64, r *rand.Rand) {
	for j, z := range c.z {
		if c.Hidden[j] = 0; r.Float64() < sigmoid(beta*float64(z)) {
			c.Hidden[j] = 1
		}
	}
}

// DrawVisible draws the visible units for the hidden ones.
func (c *Chain) DrawVisible(r *rand.Rand) { c.drawVisible(1, r) }

func (c *Chain) drawVisible(beta float64, r *rand.Rand) {
	c.means(float32(beta))
	for i, v := range c.Visible {
		switch {
		case c.machine.Deviation > 0:
			c.Visible[i] = v + float32(c.machine.Deviation*r.NormFloat64())
		case r.Float64() < sigmoid(float64(v)):
			c.Visible[i] = 1
		default:
			c.Visible[i] = 0
		}
	}
}

// Means sets the visible units to their expectations for the hidden ones: probabilities of binary units.
func (c *Chain) Means() {
	c.means(1)
	if c.machine.Deviation == 0 {
		for i, v := range c.Visible {
			c.Visible[i] = float32(sigmoid(float64(v)))
		}
	}
}

// means sets Visible to (1-β) base + β (a + W h).
func (c *Chain) means(beta float32) {
	n := len(c.Visible)
	clear(c.Visible)
	for j, h := range c.Hidden {
		if h != 0 {
			addScaled(c.Visible, c.byUnit[j*n:(j+1)*n], h)
		}
	}
	for i, a := range c.machine.VisibleBias {
		c.Visible[i] = (1-beta)*c.base[i] + beta*(a+c.Visible[i])
	}
}

// MaxEnumerated is the maximum number of units whose states [Machine.LogZ] enumerates.
const MaxEnumerated = 22

// asked is the number of states between two questions whether the enumeration is cancelled.
const asked = 1024

// LogZ returns log Z, in nats, by enumeration of all states of the hidden units, or of the visible ones if these are binary and
// fewer. More than [MaxEnumerated] such units are an error. LogZ calls cancelled after every [asked] states and ends with its error, if
// any.
func (m *Machine) LogZ(cancelled func() error) (float64, error) {
	visible, hidden := len(m.VisibleBias), len(m.Bias)
	overHidden := hidden <= visible || m.Deviation > 0
	n := visible
	if overHidden {
		n = hidden
	}
	if n > MaxEnumerated && m.Deviation > 0 {
		return 0, fmt.Errorf("the machine has %d hidden units, want at most %d to enumerate their states: those of gaussian visible units are no list", hidden, MaxEnumerated)
	}
	if n > MaxEnumerated {
		return 0, fmt.Errorf("the machine has %d visible and %d hidden units, want at most %d on one side to enumerate its states", visible, hidden, MaxEnumerated)
	}
	logs, h, v := make([]float64, 1<<n), make([]float64, hidden), make([]float32, visible)
	for state := range logs {
		if state%asked == 0 {
			if err := cancelled(); err != nil {
				return 0, err
			}
		}
		if !overHidden {
			for i := range v {
				v[i] = float32(state >> i & 1)
			}
			logs[state] = -m.FreeEnergy(v)
			continue
		}
		for j := range h {
			h[j] = float64(state >> j & 1)
			logs[state] += h[j] * float64(m.Bias[j])
		}
		for i, a := range m.VisibleBias {
			sum := 0.0
			for j, h := range h {
				sum += h * float64(m.Weight[i*hidden+j])
			}
			if a := float64(a); m.Deviation > 0 { // the integral over v of exp(-(v-a)²/2σ² + v sum/σ²)
				logs[state] += math.Log(2*math.Pi/m.factor())/2 + m.factor()*(sum*sum/2+a*sum)
			} else {
				logs[state] += softplus(a + sum)
			}
		}
	}
	return logSumExp(logs), nil
}

// Annealing is an estimate of log Z.
type Annealing struct {
	LogZ float64 // logarithm of the mean weight of the chains, which estimates Z without bias

	// Error is the standard error of the mean weight, relative to it: for small values the standard error of LogZ, in nats. It
	// is NaN for one chain. It is measured on the weights themselves: if no chain found an important mode, it is too small.
	Error float64
}

// LogZByAnnealing estimates log Z by annealed importance sampling, with independent chains. A chain begins with a sample of a
// base machine that has no weights, no hidden biases and the visible bias base, and passes through machines at the inverse
// temperatures β_1 < ... < β_K = 1, with one Gibbs step each. At β the unnormalised probability of v is
//
//	p_β(v) = p_0(v)^(1-β) p_1(v)^β times the product over j of 1 + exp(β z_j(v)),    z = b + v W, or b + v W / σ²,
//
// where p_0 and p_1 are the factors exp(a·v), or exp(-|v - a|²/2σ²), of both machines. The weight of a chain is the product over
// its steps of p_β_k(v) / p_β_k-1(v); the temperatures are those of [Betas]. each calls do for every chain, at once or in any
// order; r returns the random stream of a chain. An error of cancelled, which is asked between steps, ends the sampling.
//
// Source: Salakhutdinov and Murray, On the quantitative analysis of deep belief networks, 2008.
func (m *Machine) LogZByAnnealing(base []float32, chains, temperatures int, r func(chain int) *rand.Rand, each func(n int, do func(i int)), cancelled func() error) (Annealing, error) {
	weights, errs := make([]float64, chains), make([]error, chains)
	all, betas := m.chains(chains, base), Betas(temperatures)
	start := m.logZOfBase(base)
	each(chains, func(i int) { weights[i], errs[i] = all[i].anneal(betas, r(i), cancelled) })
	for _, err := range errs {
		if err != nil {
			return Annealing{}, err
		}
	}
	mean := logSumExp(weights) - math.Log(float64(chains))
	variance := 0.0
	for _, w := range weights {
		d := math.Exp(w-mean) - 1
		variance += d * d / float64(chains-1)
	}
	return Annealing{LogZ: start + mean, Error: math.Sqrt(variance / float64(chains))}, nil
}

// logZOfBase returns log Z of the machine without weights and hidden biases.
func (m *Machine) logZOfBase(base []float32) float64 {
	z := float64(len(m.Bias)) * math.Ln2 // two states of every hidden unit
	for _, a := range base {
		if m.Deviation > 0 {
			z += math.Log(2*math.Pi/m.factor()) / 2
		} else {
			z += softplus(float64(a))
		}
	}
	return z
}

// Betas returns n inverse temperatures, from above 0 to 1. As in Salakhutdinov and Murray, most are near 1, where the
// distributions change most: 1/29 of them are spread over (0, 0.5], 8/29 over (0.5, 0.9] and 20/29 over (0.9, 1].
func Betas(n int) []float64 {
	betas := make([]float64, 0, n)
	first, second := n/29, n*8/29
	low := 0.0
	for _, part := range []struct {
		n    int
		high float64
	}{{first, 0.5}, {second, 0.9}, {n - first - second, 1}} {
		for i := range part.n {
			betas = append(betas, low+(part.high-low)*float64(i+1)/float64(part.n))
		}
		if part.n > 0 {
			low = part.high
		}
	}
	return betas
}

// anneal returns the logarithm of the weight of the chain.
func (c *Chain) anneal(betas []float64, r *rand.Rand, cancelled func() error) (log float64, err error) {
	c.drawVisible(0, r)
	before := 0.0
	for k, beta := range betas {
		if err := cancelled(); err != nil {
			return 0, err
		}
		c.machine.hidden(c.z, c.Visible)
		log += (beta - before) * c.tilt()
		for _, z := range c.z {
			log += softplus(beta*float64(z)) - softplus(before*float64(z))
		}
		before = beta
		if k < len(betas)-1 {
			c.drawHidden(beta, r)
			c.drawVisible(beta, r)
		}
	}
	return log, nil
}

// tilt returns the derivative with respect to β of log p_β(v) without its hidden units.
func (c *Chain) tilt() (sum float64) {
	factor := c.machine.factor() / 2
	for i, v := range c.Visible {
		a, base, x := float64(c.machine.VisibleBias[i]), float64(c.base[i]), float64(v)
		if c.machine.Deviation > 0 {
			sum += factor * ((x-base)*(x-base) - (x-a)*(x-a))
		} else {
			sum += x * (a - base)
		}
	}
	return sum
}

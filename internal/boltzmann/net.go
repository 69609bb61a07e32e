package boltzmann

import (
	"math"
	"math/rand/v2"
)

// Net is a deep belief net. The visible units of every machine after the first are the hidden units of the machine before it. The
// last machine is the distribution of its visible units, and the others generate downwards, by p(v | h). A Net is not changed by
// its methods.
type Net struct {
	machines []*Machine
	chains   []*Chain // one per machine, for the transposes of the weights
}

// NewNet returns the net of the given machines, at least one, from the images upwards.
func NewNet(machines []*Machine) *Net {
	n := &Net{machines: machines}
	for _, m := range machines {
		n.chains = append(n.chains, m.NewChain())
	}
	return n
}

// Bound returns an unbiased estimate of a lower bound of log p(v) + log Z, with Z of the last machine, in nats. It also returns
// the visible units of the last machine, which it draws. With h drawn from the factorial q(h | v) of each machine in turn, the
// estimate for two machines is
//
//	log p(v | h) - log q(h | v) - F(h)
//
// with the free energy F of the last one; for more machines the first two terms are summed. Its expectation is at most
// log p(v) + log Z, as the logarithm is concave.
//
// Sources: Hinton, Osindero and Teh, A fast learning algorithm for deep belief nets, 2006; Salakhutdinov and Murray, On the
// quantitative analysis of deep belief networks, 2008.
func (n *Net) Bound(v []float32, r *rand.Rand) (bound float64, top []float32) {
	last := len(n.machines) - 1
	for l, m := range n.machines[:last] {
		hidden := len(m.Bias)
		c := &Chain{machine: m, base: m.VisibleBias, byUnit: n.chains[l].byUnit,
			Visible: make([]float32, len(v)), Hidden: make([]float32, hidden), z: make([]float32, hidden)}
		m.hidden(c.z, v)
		c.drawHidden(1, r)
		for j, z := range c.z {
			bound += softplus(float64(z)) - float64(c.Hidden[j])*float64(z) // -log q(h | v)
		}
		c.means(1)
		bound += m.logVisible(v, c.Visible)
		v = c.Hidden
	}
	return bound - n.machines[last].FreeEnergy(v), v
}

// logVisible returns log p(v | h), in nats. means is a + W h: the logits of binary units, the means of real ones.
func (m *Machine) logVisible(v, means []float32) (sum float64) {
	for i, mean := range means {
		x, z := float64(v[i]), float64(mean)
		if m.Deviation > 0 {
			d := (x - z) / m.Deviation
			sum -= d*d/2 + math.Log(m.Deviation) + math.Log(2*math.Pi)/2
		} else {
			sum += x*z - softplus(z)
		}
	}
	return sum
}

package layers

import (
	"math"
	"math/rand/v2"

	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
	"tessera/internal/boltzmann"
	"tessera/internal/volume"
)

var _ Sized = (*RBM)(nil)

// RBM is a restricted Boltzmann machine: a distribution of its flattened input v of n values and of `units` binary hidden units h,
// p(v, h) = exp(-E(v, h)) / Z. With the weight W (n, units), the bias b (units), the visible_bias a (n), and the standard deviation
// σ of gaussian visible units, its energy E, its free energy F(v) = -log sum over h of exp(-E(v, h)) and its conditional
// distributions are
//
//	binary    E = -a·v - b·h - v W h                   F = -a·v - sum_j softplus(z_j),              z = b + v W
//	gaussian  E = |v-a|²/2σ² - b·h - v W h / σ²        F = |v-a|²/2σ² - sum_j softplus(z_j),        z = b + v W / σ²
//	          P(h_j = 1 | v) = sigmoid(z_j),    v | h: P(v_i = 1) = sigmoid(a_i + (W h)_i), or N(a + W h, σ²)
//
// The output is P(h = 1 | v), in training and at inference. The layer publishes energy, F of every input, and sample_energy, F of
// samples of the machine, both of one number, in nats. The loss contrastive_divergence, the difference of their means, trains the
// machine: samples are constants, so that its gradient is that of contrastive divergence (CD-k). A decoder that computes the mean
// of v for the hidden units is { kind = "tied", weight = "encoder.0.weight", bias_of = "encoder.0.visible_bias", activation =
// "sigmoid" }, for gaussian units without the activation.
//
// In training, a chain of samples begins at each input, or, if `chains` > 0, that many persistent chains continue from step to step
// (the state chain, of shape (chains, n)). Every step draws h and then v, `steps` times; sample_energy is that of the input's own
// sample, or the mean over the persistent chains. A binary visible value x of an input is a probability: with `binarise`, energies
// and chains use 1 with probability x and 0 otherwise, drawn in every step. At inference nothing is drawn: inputs are used as they
// are, all units of a chain that begins at an input have their means, and persistent chains stay.
//
// The model is generative: `tessera sample` runs a new chain of `sample_steps` steps for every image, from a random persistent chain
// or from noise, and decodes its last hidden units.
//
// Parameters: weight, bias and visible_bias, both initially 0. State: chain. Gradients leave out how samples depend on parameters
// and inputs.
//
// Sources: Hinton, Training products of experts by minimizing contrastive divergence, 2002; Tieleman, Training restricted
// Boltzmann machines using approximations to the likelihood gradient, 2008 (persistent chains); Hinton, A practical guide to
// training restricted Boltzmann machines, 2010; Lee, Ekanadham and Ng, Sparse deep belief net model for visual area V2, 2008
// (gaussian units, with the sparsity target of the loss l2).
type RBM struct {
	Units       int     `toml:"units" want:"> 0" doc:"number of hidden units"`
	Visible     string  `toml:"visible" oneof:"binary gaussian" doc:"distribution of the visible units"`
	Deviation   float64 `toml:"deviation" want:"> 0" doc:"σ, standard deviation of gaussian visible units; 1 for binary ones"`
	Steps       int     `toml:"steps" want:"in [1,1000]" doc:"k, number of steps of the chains in a training step"`
	Chains      int     `toml:"chains" want:"in [0,100000]" doc:"number of persistent chains; 0 begins chains at the inputs"`
	Binarise    bool    `toml:"binarise" doc:"draw binary visible units from inputs between 0 and 1, in training"`
	SampleSteps int     `toml:"sample_steps" want:"> 0" doc:"number of steps of the chain of a new image"`
	Init        Init    `toml:"init" doc:"initial values of the weights"`
}

func init() {
	Registry.Register("rbm", "restricted Boltzmann machine, y = P(h=1|x), with energies of inputs and of samples", func() Layer {
		return &RBM{Visible: "binary", Deviation: 1, Steps: 1, Binarise: true, SampleSteps: 1000, Init: &Normal{Stddev: 0.01}}
	})
}

// Names of the values that [RBM] publishes.
const (
	Energy       = "energy"
	SampleEnergy = "sample_energy"
)

// gaussian reports whether the visible units are real numbers.
func (m *RBM) gaussian() bool { return m.Visible == "gaussian" }

// Check returns an error for a deviation of binary units.
func (m *RBM) Check() error {
	if !m.gaussian() && m.Deviation != 1 {
		return part.KeyErrorf("deviation", "got %g, want 1 for binary visible units: give visible = \"gaussian\"", m.Deviation)
	}
	return nil
}

func (m *RBM) OutputUnits() int     { return m.Units }
func (m *RBM) SetOutputUnits(n int) { m.Units = n }

func (m *RBM) OutputShape([]int) ([]int, error) {
	if m.Units < 1 {
		return nil, part.KeyErrorf("units", "got %d, want > 0", m.Units)
	}
	return []int{m.Units}, m.Check()
}

func (m *RBM) Parameters(in []int) []Parameter {
	n := volume.Of(in)
	list := []Parameter{
		{Name: "weight", Shape: []int{n, m.Units}, Init: m.Init, FanIn: n, FanOut: m.Units},
		{Name: "bias", Shape: []int{m.Units}, Init: &Zeros{}, FanIn: n, FanOut: m.Units},
		{Name: "visible_bias", Shape: []int{n}, Init: &Zeros{}, FanIn: m.Units, FanOut: n},
	}
	if m.Chains > 0 {
		var start Init = &Uniform{Low: 0, High: 1}
		if m.gaussian() {
			start = &Normal{Stddev: m.Deviation}
		}
		list = append(list, Parameter{Name: "chain", Shape: []int{m.Chains, n}, Init: start, FanIn: n, FanOut: m.Units, State: true})
	}
	return list
}

func (*RBM) Publishes([]int) []Value {
	return []Value{{Name: Energy, Shape: []int{1}}, {Name: SampleEnergy, Shape: []int{1}}}
}

func (*RBM) Noisy() bool { return true }

// Estimates implements [Estimated]: samples are constants.
func (*RBM) Estimates() []string { return []string{"weight", "bias", "visible_bias", EstimatedInput} }

// OutputRange implements [Ranged]: probabilities.
func (*RBM) OutputRange(Interval) Interval { return Interval{0, 1} }

func (m *RBM) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	g := rbmGraph{RBM: m, scope: s, chain: &c, batch: x.Shape()[0]}
	x = c.Flatten(x)
	z := g.activation(x)
	y := c.Do("sigmoid", func() (*gorgonia.Node, error) { return gorgonia.Sigmoid(z) })
	inputs := x
	if s.Training() && m.Binarise && !m.gaussian() {
		inputs = c.Stop(g.draw(x, 1, x.Shape()[1]))
		z = g.activation(inputs)
	}
	energy := g.energy(inputs, z)
	samples := g.energyOfSamples(inputs)
	if err := c.Err(); err != nil {
		return nil, err
	}
	s.Publish(Energy, energy)
	s.Publish(SampleEnergy, samples)
	return y, nil
}

// rbmGraph is an [RBM] that is being added to a graph.
type rbmGraph struct {
	*RBM
	scope Scope
	chain *ops.Chain
	batch int
}

// activation returns z for visible units v (rows, n).
func (g *rbmGraph) activation(v *gorgonia.Node) *gorgonia.Node {
	c := g.chain
	z := c.Scale(c.MatMul(v, g.scope.Parameter("weight")), 1/(g.Deviation*g.Deviation))
	return c.AddRow(z, g.scope.Parameter("bias"))
}

// energy returns F(v) as (rows, 1), from z for v.
func (g *rbmGraph) energy(v, z *gorgonia.Node) *gorgonia.Node {
	c, a := g.chain, g.scope.Parameter("visible_bias")
	var own *gorgonia.Node
	if g.gaussian() {
		own = c.Scale(c.Sum(c.Square(c.SubRow(v, a)), 1), 0.5/(g.Deviation*g.Deviation))
	} else {
		own = c.Neg(c.Sum(c.MulRow(v, a), 1))
	}
	f := c.Sub(own, c.Sum(c.Softplus(z), 1))
	if c.Err() != nil {
		return nil
	}
	return c.Reshape(f, v.Shape()[0], 1)
}

// energyOfSamples returns F of samples, (batch, 1), and moves persistent chains.
func (g *rbmGraph) energyOfSamples(inputs *gorgonia.Node) *gorgonia.Node {
	c := g.chain
	v, rows := inputs, g.batch
	if g.Chains > 0 {
		if v, rows = g.scope.Parameter("chain"), g.Chains; g.scope.Training() {
			v = g.sample(v, rows)
			if c.Err() == nil {
				g.scope.Update("chain", v)
			}
		}
	} else {
		v = g.sample(v, rows)
	}
	if c.Err() != nil {
		return nil
	}
	energy := g.energy(v, g.activation(v))
	if g.Chains > 0 {
		energy = c.Reshape(c.Tile(c.Reshape(c.Mean(energy, 0), 1), g.batch), g.batch, 1)
	}
	return energy
}

// sample returns samples (rows, n) of chains that begin at v.
func (g *rbmGraph) sample(v *gorgonia.Node, rows int) *gorgonia.Node {
	c, per := g.chain, (rows+g.batch-1)/g.batch // number of chains for each image
	for range g.Steps {
		if c.Err() != nil {
			return nil
		}
		z := g.activation(v)
		h := g.draw(c.Do("sigmoid", func() (*gorgonia.Node, error) { return gorgonia.Sigmoid(z) }), per, g.Units)
		n := v.Shape()[1]
		mean := c.AddRow(c.MatMul(h, c.Transpose(g.scope.Parameter("weight"))), g.scope.Parameter("visible_bias"))
		switch {
		case !g.gaussian():
			v = g.draw(c.Do("sigmoid", func() (*gorgonia.Node, error) { return gorgonia.Sigmoid(mean) }), per, n)
		case g.scope.Training() && c.Err() == nil:
			v = c.Add(mean, g.noise(normalSampler{stddev: g.Deviation}, rows, per, n))
		default:
			v = mean
		}
	}
	return c.Stop(v)
}

// draw returns 1 with the probabilities p (rows, n), else 0. At inference it returns p.
func (g *rbmGraph) draw(p *gorgonia.Node, per, n int) *gorgonia.Node {
	c := g.chain
	if c.Err() != nil || !g.scope.Training() {
		return p
	}
	return c.Lt(c.Sub(g.noise(uniformSampler{}, p.Shape()[0], per, n), p), 0)
}

// noise returns (rows, n) random numbers. They are drawn for every image, `per` rows each, and the surplus is left out.
func (g *rbmGraph) noise(s ops.Sampler, rows, per, n int) *gorgonia.Node {
	c := g.chain
	drawn := g.scope.Noise(s, g.batch, per*n)
	return c.Rows(c.Reshape(drawn, g.batch*per, n), 0, rows)
}

// Boltzmann is implemented by layers that are Boltzmann machines.
type Boltzmann interface {
	Generator
	// Machine returns the machine for the values of the layer's parameters, by name.
	Machine(parameter func(name string) []float32) *boltzmann.Machine
}

func (m *RBM) Machine(parameter func(name string) []float32) *boltzmann.Machine {
	of := &boltzmann.Machine{Weight: parameter("weight"), Bias: parameter("bias"), VisibleBias: parameter("visible_bias")}
	if m.gaussian() {
		of.Deviation = m.Deviation
	}
	return of
}

func (m *RBM) Generate(g Generation) ([]float32, error) {
	machine, chains := m.Machine(g.Parameter), g.Parameter("chain")
	n := len(machine.VisibleBias)
	chain := machine.NewChain()
	var codes, means []float32
	for _, r := range g.Streams() {
		m.begin(chain.Visible, chains, r)
		chain.DrawHidden(r)
		for range m.SampleSteps {
			if err := g.Err(); err != nil {
				return nil, err
			}
			chain.DrawVisible(r)
			chain.DrawHidden(r)
		}
		codes = append(codes, chain.Hidden...)
		chain.Means()
		means = append(means, chain.Visible...)
	}
	if g.Size("output") == 0 && n > 0 { // without a decoder
		return means, nil
	}
	return g.Value("output", map[string][]float32{g.Path(): codes})
}

// begin sets v to the visible units with which the chain of a new image begins.
func (m *RBM) begin(v, chains []float32, r *rand.Rand) {
	switch {
	case len(chains) > 0:
		copy(v, chains[r.IntN(len(chains)/len(v))*len(v):])
	case m.gaussian():
		for i := range v {
			v[i] = float32(m.Deviation * r.NormFloat64())
		}
	default:
		for i := range v {
			v[i] = float32(math.Round(r.Float64()))
		}
	}
}

func (m *RBM) Stepped(steps int, eta float64) (Generator, error) {
	other := *m
	if eta >= 0 {
		return nil, part.KeyErrorf("eta", "got %v, but the chains of the layer rbm have no such setting", eta)
	}
	if steps < 0 {
		return nil, part.KeyErrorf("steps", "got %d, want > 0", steps)
	} else if steps > 0 {
		other.SampleSteps = steps
	}
	return &other, nil
}

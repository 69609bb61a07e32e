package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// Commitment keeps the inputs z of a vq layer near the entries e_k of its code book that replace them: the mean over values and
// images of
//
//	(z - e_k)²
//
// The code book has no gradient, so the term changes only z. `on` names the output of the layer; the default is the encoder's
// last layer. A usual weight is 0.25, with mse. Source: van den Oord, Vinyals and Kavukcuoglu, Neural discrete representation
// learning, 2017, where the term is summed over the values.
type Commitment struct{}

func init() {
	Registry.Register("commitment", "squared distance of the inputs of the layer vq from its code book", func() Loss { return &Commitment{} })
}

func (*Commitment) On() string { return Code }

func (*Commitment) Reads() Reads {
	return Reads{Published: []string{"encoded", "quantised"}, PublishedBy: "vq"}
}

func (*Commitment) Build(v Values) (*gorgonia.Node, error) {
	var c ops.Chain
	published := func(name string) *gorgonia.Node {
		return c.Do(name, func() (*gorgonia.Node, error) { return v.Published(name) })
	}
	return c.Mean(c.Square(c.Sub(published("encoded"), published("quantised")))), c.Err()
}

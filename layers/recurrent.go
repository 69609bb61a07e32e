package layers

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
	"tessera/internal/lists"
)

var (
	_ Reader   = (*Recurrent)(nil)
	_ Stepping = (*Recurrent)(nil)
)

// Recurrent reads a sequence token by token. Its output for a token is the hidden state h behind it, computed from the token x and
// the hidden state h' behind the token before, which is 0 before the first one. σ is the sigmoid and * the product of elements:
//
//	gru:   r = σ(x W_r + b_r + h' U_r + d_r),   z = σ(x W_z + b_z + h' U_z + d_z)
//	       n = tanh(x W_n + b_n + r * (h' U_n + d_n)),   h = (1 - z) * n + z * h'
//	lstm:  i = σ(x W_i + b_i + h' U_i + d_i),  f and o alike,   g = tanh(x W_g + b_g + h' U_g + d_g)
//	       c = f * c' + i * g,   h = o * tanh(c)
//
// These are the formulas of PyTorch's nn.GRU and nn.LSTM. Tokens lie along the input's last axis, and the last axis of the output has
// length units. Parameters: weight W (features, gates units), bias b (gates units), recurrent_weight U (units, gates units) and
// recurrent_bias d (gates units), whose columns are ordered r, z, n or i, f, g, o: the transposes of PyTorch's weight_ih_l0 and
// weight_hh_l0. Biases start at 0. Cho et al., Learning phrase representations using RNN encoder-decoder, 2014; Hochreiter and
// Schmidhuber, Long short-term memory, 1997.
//
// A token reads those before it only: padding behind the last token needs no mask. With mask = "VALUE", which contains one number for each
// token, a token whose number is 0 leaves the state as it is, so that the last output is the state behind the last token that
// counts. reverse = true begins with the last token. A bidirectional layer is two layers, one reversed, and both names in the key from
// of the next layer.
type Recurrent struct {
	Units   int    `toml:"units" want:"> 0" doc:"number of hidden units" required:"true"`
	Cell    string `toml:"cell" oneof:"gru lstm" doc:"gated recurrent unit, or long short-term memory"`
	Mask    string `toml:"mask" optional:"true" doc:"name of the value that is 1 for the tokens to read and 0 for others; empty: all"`
	Reverse bool   `toml:"reverse" optional:"true" doc:"read the sequence from its end"`
	Init    Init   `toml:"init" doc:"initial values of the weights"`

	mask []int // shape of the value that mask names
}

func init() {
	Registry.Register("recurrent", "a recurrent network (GRU or LSTM) over tokens", func() Layer {
		return &Recurrent{Cell: "gru", Init: &GlorotUniform{}}
	})
}

func (r *Recurrent) Reads() []Reading { return maskRead("mask", r.Mask, r.mask) }

func (r *Recurrent) Receive(shapes [][]int) {
	if r.Mask != "" {
		r.mask = shapes[0]
	}
}

// network returns the network for tokens of shape in.
func (r *Recurrent) network(in []int) ops.Recurrent {
	tokens, features := tokensOf(in)
	return ops.Recurrent{LSTM: r.Cell == "lstm", Tokens: tokens, Features: features, Units: r.Units, Reverse: r.Reverse, Masked: r.Mask != ""}
}

func (r *Recurrent) OutputShape(in []int) ([]int, error) {
	if len(in) < 2 {
		return nil, fmt.Errorf("got an input of shape %v, want tokens (tokens, features)", in)
	}
	if r.Units < 1 {
		return nil, part.KeyErrorf("units", "got %d, want > 0", r.Units)
	}
	out := append(in[:len(in)-1:len(in)-1], r.Units)
	if tokens, _ := tokensOf(in); r.Mask != "" {
		return out, fitsTokens("mask", r.Mask, r.mask, tokens)
	}
	return out, nil
}

// recurrentNames are the names of the parameters, in the order in which [ops.Recurrent] takes them.
var recurrentNames = []string{"weight", "bias", "recurrent_weight", "recurrent_bias"}

func (r *Recurrent) Parameters(in []int) []Parameter {
	n := r.network(in)
	gates := n.Gates()
	return lists.Of(len(recurrentNames), func(i int) Parameter {
		p := Parameter{Name: recurrentNames[i], Shape: []int{gates}, Init: &Zeros{}, FanIn: n.Features, FanOut: r.Units}
		if i >= 2 {
			p.FanIn = r.Units
		}
		if i%2 == 0 {
			p.Shape, p.Init = []int{p.FanIn, gates}, r.Init
		}
		return p
	})
}

// Steps implements [Stepping].
func (r *Recurrent) Steps(in []int) bool { return !r.Reverse && r.Mask == "" && len(in) == 2 }

// Largest implements [Expanding]: the gates and states of all tokens.
func (r *Recurrent) Largest(in []int) int {
	n := r.network(in)
	return n.Tokens * (4*r.Units + n.State())
}

func (r *Recurrent) Expands(in []int) (what, advice string) {
	n := r.network(in)
	return fmt.Sprintf("%d x %d gates and states", n.Tokens, 4*r.Units+n.State()), "take shorter sequences, fewer units"
}

func (r *Recurrent) OutputRange(Interval) Interval { return Interval{-1, 1} }

func (r *Recurrent) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	in := x.Shape()[1:]
	n := r.network(in)
	var c ops.Chain
	batch := x.Shape()[0]
	weights := lists.Map(recurrentNames, s.Parameter)
	tokens := c.Reshape(x, batch, n.Tokens, n.Features)
	if place := s.Place(); place != nil {
		past, keep := s.Past(n.State())
		h, state, err := n.Next(tokens, past, place, weights...)
		if err == nil {
			keep(state)
		}
		return h, err
	}
	var mask *gorgonia.Node
	if r.Mask != "" {
		mask = c.Reshape(s.Value(r.Mask), batch, n.Tokens)
	}
	h := c.Do("recurrent", func() (*gorgonia.Node, error) { return n.Apply(tokens, mask, weights...) })
	out := append(x.Shape()[:len(x.Shape())-1:len(x.Shape())-1], r.Units)
	return c.Reshape(h, out...), c.Err()
}

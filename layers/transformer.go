package layers

import (
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
)

var (
	_ Reader    = (*Transformer)(nil)
	_ Expanding = (*Transformer)(nil)
)

// Transformer is a transformer block with pre-normalisation, on tokens along the input's last axis:
//
//	h = x + dropout(attention(layer_norm(x))),    y = h + dropout(W_2 dropout(activation(W_1 layer_norm(h))))
//
// W_1 maps the features of each token to `ratio` times as many, and W_2 maps them back; both have biases. The output has the
// input's shape. With keys = "VALUE" the block also reads the tokens of another value of the model: after the self-attention
// it computes h + dropout(cross-attention(layer_norm(h))), with keys and values from the unnormalised tokens of VALUE. The
// layer publishes the attention weights as attention, (heads, tokens, tokens), and with keys also cross_attention, (heads,
// tokens, other tokens). Its parameters are those of the layers norm1, attention, with keys also norm_cross and cross, then
// norm2, hidden and output, such as attention.query and hidden.weight; see [Attention], [LayerNorm] and [TokenDense].
// Attention has biases. Xiong et al., On layer normalization in the transformer architecture, 2020.
//
// The keys mask and keys_mask name values with one number for each token, 1 for the tokens that give keys and values. mask
// applies to the tokens of the input, keys_mask to those of the value that keys names (see [FirstTokens]). causal = true and
// position = "rotary" are those of [Attention].
type Transformer struct {
	Heads      int            `toml:"heads" want:"> 0" doc:"number of attention heads"`
	Ratio      float64        `toml:"ratio" want:"> 0" doc:"hidden units of a token for each of its features"`
	Activation ActivationName `toml:"activation" doc:"activation function of the hidden units"`
	Dropout    float64        `toml:"dropout" want:"in [0,1)" doc:"probability that a value of a branch is dropped in training"`
	Epsilon    float64        `toml:"epsilon" want:"> 0" doc:"added to the variance by the normalisations"`
	Keys       string         `toml:"keys" doc:"name of the value whose tokens are read by cross-attention; empty: none"`
	Mask       string         `toml:"mask" optional:"true" doc:"name of the value that is 1 for the tokens to attend to and 0 for others; empty: all"`
	KeysMask   string         `toml:"keys_mask" optional:"true" doc:"the same for the tokens that keys names"`
	Causal     bool           `toml:"causal" optional:"true" doc:"a token attends to itself and the tokens before it only"`
	Position   string         `toml:"position" oneof:"none rotary" doc:"rotary: queries and keys of the self-attention are turned by the place of their token"`
	Init       Init           `toml:"init" doc:"initial values of the weights"`

	other, mask, keysMask []int // shapes of the values that keys, mask and keys_mask name
}

func init() {
	Registry.Register("transformer", "a pre-norm block of a transformer: attention and two dense layers for every token", func() Layer {
		return &Transformer{Heads: 4, Ratio: 4, Activation: "gelu", Epsilon: 1e-5, Position: "none", Init: &GlorotUniform{}}
	})
}

// member is one layer of the block; name is the prefix of its parameters.
type member struct {
	name string
	Layer
}

// branch is a chain of layers whose output, after dropout, is added to its input.
type branch []member

// branches lists the branches of the block, in order, for inputs of shape in.
func (t *Transformer) branches(in []int) []branch {
	_, features := tokensOf(in)
	norm := func(name string) member { return member{name, &LayerNorm{Epsilon: t.Epsilon}} }
	list := []branch{{norm("norm1"), {"attention", &Attention{Heads: t.Heads, Bias: true, Mask: t.Mask, Causal: t.Causal, Position: t.Position, Init: t.Init, mask: t.mask}}}}
	if t.Keys != "" {
		list = append(list, branch{norm("norm_cross"), {"cross", &Attention{Heads: t.Heads, Bias: true, Keys: t.Keys, Mask: t.KeysMask, Init: t.Init, other: t.other, mask: t.keysMask}}})
	}
	return append(list, branch{norm("norm2"),
		{"hidden", &TokenDense{Units: t.hidden(features), Activation: t.Activation, Bias: true, Init: t.Init}},
		{"dropout", &Dropout{Rate: t.Dropout}},
		{"output", &TokenDense{Units: features, Activation: "linear", Bias: true, Init: t.Init}}})
}

// hidden returns the number of hidden units of a token.
func (t *Transformer) hidden(features int) int { return max(1, int(t.Ratio*float64(features)+0.5)) }

func (t *Transformer) Reads() []Reading {
	return slices.Concat(tokensRead(t.Keys, t.other), maskRead("mask", t.Mask, t.mask), maskRead("keys_mask", t.KeysMask, t.keysMask))
}

func (t *Transformer) Receive(shapes [][]int) {
	for i, r := range t.Reads() {
		switch r.Key {
		case "keys":
			t.other = shapes[i]
		case "mask":
			t.mask = shapes[i]
		default:
			t.keysMask = shapes[i]
		}
	}
}

// Check returns an error for a keys_mask without keys.
func (t *Transformer) Check() error {
	if t.KeysMask != "" && t.Keys == "" {
		return part.KeyErrorf("keys_mask", "is given without keys")
	}
	if t.Causal && t.Mask != "" {
		return part.KeyErrorf("causal", "reads the tokens of the input before a token: leave out mask")
	}
	return nil
}

func (t *Transformer) OutputShape(in []int) ([]int, error) {
	if len(in) < 2 {
		return nil, fmt.Errorf("got an input of shape %v, want tokens (tokens, features)", in)
	}
	if !(t.Ratio > 0) {
		return nil, part.KeyErrorf("ratio", "got %v, want > 0", t.Ratio)
	}
	for _, b := range t.branches(in) {
		shape := in
		for _, l := range b {
			var err error
			if shape, err = l.OutputShape(shape); err != nil {
				return nil, err
			}
		}
	}
	return slices.Clone(in), nil
}

func (t *Transformer) Parameters(in []int) (list []Parameter) {
	for _, b := range t.branches(in) {
		shape := in
		for _, l := range b {
			for _, p := range l.Parameters(shape) {
				p.Name = l.name + "." + p.Name
				list = append(list, p)
			}
			var err error
			if shape, err = l.OutputShape(shape); err != nil {
				return nil // OutputShape returns the error
			}
		}
	}
	return list
}

func (t *Transformer) Publishes(in []int) (list []Value) {
	for _, b := range t.branches(in) {
		if a, ok := b[1].Layer.(*Attention); ok {
			v := a.Publishes(in)[0]
			v.Name = mapNames[b[1].name]
			list = append(list, v)
		}
	}
	return list
}

// mapNames maps the attention layers of the block to the names under which the block publishes their weights.
var mapNames = map[string]string{"attention": "attention", "cross": "cross_attention"}

func (t *Transformer) Noisy() bool { return t.Dropout != 0 }

func (t *Transformer) Largest(in []int) int {
	tokens, features := tokensOf(in)
	largest := tokens * t.hidden(features)
	for _, b := range t.branches(in) {
		if a, ok := b[1].Layer.(*Attention); ok {
			largest = max(largest, a.Largest(in))
		}
	}
	return largest
}

func (t *Transformer) Expands(in []int) (what, advice string) {
	tokens, features := tokensOf(in)
	if n := tokens * t.hidden(features); t.Largest(in) == n {
		return fmt.Sprintf("%d x %d hidden units", tokens, t.hidden(features)), "make larger patches, lower ratio"
	}
	return (&Attention{Heads: t.Heads, Keys: t.Keys, other: t.other}).Expands(in)
}

// publishing is the scope of an attention layer in the block. It publishes the attention weights under a name of the block.
type publishing struct {
	Scope
	block Scope
	name  string
}

func (p publishing) Publish(_ string, value *gorgonia.Node) { p.block.Publish(p.name, value) }

func (t *Transformer) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	for _, b := range t.branches(x.Shape()[1:]) {
		y := x
		for _, l := range append(slices.Clip(b), member{"dropout", &Dropout{Rate: t.Dropout}}) {
			scope := named(s, l.name, l.Layer, y.Shape()[1:])
			if name := mapNames[l.name]; name != "" {
				scope = publishing{scope, s, name}
			}
			y = c.Do(l.name, func() (*gorgonia.Node, error) { return l.Apply(scope, y) })
			if c.Err() != nil {
				return nil, c.Err()
			}
		}
		x = c.Add(x, y)
	}
	return x, c.Err()
}

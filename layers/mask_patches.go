package layers

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
)

var _ Reader = (*MaskTokens)(nil)

// MaskPatches hides a fraction of the tokens of its input (tokens, features) in training: the output contains only the
// remaining tokens, in order, so that the following layers skip the hidden ones. round(ratio tokens) tokens are hidden, but at
// least one remains. The hidden tokens are drawn again for every image and step. At inference nothing is hidden: the output is
// the input. The layer publishes the value mask, of shape (tokens): 1 for hidden tokens, 0 for others. [MaskTokens] puts the
// tokens back in their places; a loss term with mask = "..." measures only the hidden tokens. Add the position embedding
// before this layer. He et al., Masked autoencoders are scalable vision learners, 2022.
type MaskPatches struct {
	Ratio float64 `toml:"ratio" want:"in [0,1)" doc:"share of the tokens that are hidden"`
}

func init() {
	Registry.Register("mask_patches", "hides tokens at random in training: the output has the others only", func() Layer {
		return &MaskPatches{Ratio: 0.75}
	})
}

// hidden returns the number of hidden tokens.
func (m *MaskPatches) hidden(tokens int) int {
	return min(tokens-1, int(math.Round(m.Ratio*float64(tokens))))
}

func (*MaskPatches) Rearranges() {}

func (*MaskPatches) OutputShape(in []int) ([]int, error) {
	_, _, err := sequenceOf(in)
	return in, err
}

func (m *MaskPatches) TrainingShape(in []int) []int { return []int{in[0] - m.hidden(in[0]), in[1]} }
func (*MaskPatches) Parameters([]int) []Parameter   { return nil }
func (m *MaskPatches) Noisy() bool                  { return m.Ratio > 0 }

// Mask is the name of the value that [MaskPatches] publishes.
const Mask = "mask"

func (*MaskPatches) Publishes(in []int) []Value {
	return []Value{{Name: Mask, Shape: []int{in[0]}}}
}

func (*MaskPatches) Draws() []string { return []string{Mask} }

func (m *MaskPatches) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	tokens, features, err := sequenceOf(x.Shape()[1:])
	if err != nil {
		return nil, fmt.Errorf("mask_patches: %w", err)
	}
	var c ops.Chain
	batch := x.Shape()[0]
	if !s.Training() || !m.Noisy() {
		s.Publish(Mask, nothingOf(&c, x, batch, tokens))
		return x, c.Err()
	}
	sampler := hiddenSampler{m.hidden(tokens), tokens}
	mask := s.Noise(sampler, batch, tokens)
	s.Publish(Mask, mask)
	visible, geometry := visibleOf(&c, mask, tokens-sampler.hidden, features)
	return c.Do("gather", func() (*gorgonia.Node, error) { return geometry.Mix(visible, x) }), c.Err()
}

func (*MaskPatches) OutputRange(in Interval) Interval { return in }

// visibleOf returns the weights (batch, 1, visible, tokens) that select the tokens that a mask does not hide, and the
// geometry for applying them.
func visibleOf(c *ops.Chain, mask *gorgonia.Node, visible, features int) (*gorgonia.Node, ops.Attention) {
	batch, tokens := mask.Shape()[0], mask.Shape()[1]
	weights := c.Do("select", func() (*gorgonia.Node, error) { return ops.Select(mask, visible) })
	return c.Reshape(weights, batch, 1, visible, tokens), ops.Attention{Tokens: visible, Features: features, Heads: 1, Others: tokens}
}

// nothingOf returns zeros (batch, tokens). Its result depends only on the shape of x.
func nothingOf(c *ops.Chain, x *gorgonia.Node, batch, tokens int) *gorgonia.Node {
	first := c.Columns(c.Reshape(x, batch*tokens, x.Shape().TotalSize()/(batch*tokens)), 0, 1)
	return c.Reshape(c.Lt(first, -math.MaxFloat32), batch, tokens)
}

// hiddenSampler draws the hidden tokens of every row of tokens.
type hiddenSampler struct{ hidden, tokens int }

func (h hiddenSampler) Sample(dst []float32, r *rand.Rand) {
	for from := 0; from+h.tokens <= len(dst); from += h.tokens {
		row, left := dst[from:from+h.tokens], h.hidden
		for i := range row { // each of the rest with the same probability
			if row[i] = 0; r.IntN(len(row)-i) < left {
				row[i] = 1
				left--
			}
		}
	}
}

// MaskTokens undoes [MaskPatches]: it puts each token of its input back in its place, and a learned token in the places of
// the hidden ones. Its output has the shape (tokens, features) in training and at inference; at inference the input already
// contains all tokens. Parameter: token, of shape (features).
type MaskTokens struct {
	Mask string `toml:"mask" required:"true" doc:"name of the published mask, such as \"encoder.3.mask\""`
	Init Init   `toml:"init" doc:"initial values of the token"`

	of []int // shape of the mask
}

func init() {
	Registry.Register("mask_tokens", "puts tokens back to their places, a learned one at those that were hidden", func() Layer {
		return &MaskTokens{Init: &Normal{Stddev: 0.02}}
	})
}

func (m *MaskTokens) Reads() []Reading       { return []Reading{{Key: "mask", Name: m.Mask, Shape: m.of}} }
func (m *MaskTokens) Receive(shapes [][]int) { m.of = shapes[0] }

func (m *MaskTokens) OutputShape(in []int) ([]int, error) {
	tokens, _, err := sequenceOf(in)
	if err == nil && (len(m.of) != 1 || m.of[0] != tokens) {
		err = part.KeyErrorf("mask", "%q has the shape %v, but the input has %d tokens", m.Mask, m.of, tokens)
	}
	return in, err
}

// TrainingShape implements [Shortening]: all tokens.
func (m *MaskTokens) TrainingShape(in []int) []int { return []int{m.of[0], in[1]} }

func (m *MaskTokens) Parameters(in []int) []Parameter {
	n := in[len(in)-1]
	return []Parameter{{Name: "token", Shape: []int{n}, Init: m.Init, FanIn: n, FanOut: n}}
}

func (m *MaskTokens) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	given, features, err := sequenceOf(x.Shape()[1:])
	if err != nil {
		return nil, fmt.Errorf("mask_tokens: %w", err)
	}
	var c ops.Chain
	batch, mask := x.Shape()[0], c.Flatten(s.Value(m.Mask))
	tokens := mask.Shape()[1]
	if given != tokens {
		visible, geometry := visibleOf(&c, mask, given, features)
		x = c.Do("put back", func() (*gorgonia.Node, error) { return geometry.MixTransposed(visible, x) })
	}
	hidden := c.MatMul(c.Reshape(mask, batch*tokens, 1), c.Reshape(s.Parameter("token"), 1, features))
	return c.Add(x, c.Reshape(hidden, batch, tokens, features)), c.Err()
}

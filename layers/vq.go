package layers

import (
	"math/rand/v2"
	"slices"

	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
)

// VQ is vector quantisation, the code layer of a VQ-VAE. It replaces every token z of its input by the nearest of the `entries`
// rows of a code book,
//
//	k = argmin over j of |z - e_j|²,    y = e_k
//
// where the last axis of the input holds the values of a token: the channels of a pixel, or all units of a vector. The first of
// equally near entries is taken. The gradient of y with respect to z is the straight-through estimate, the identity; the
// derivative itself is 0.
//
// The code book has no gradient. In every training step it follows the tokens by moving averages. With m tokens in the batch,
// of which n_j with the sum s_j are nearest to e_j, and K entries,
//
//	usage_j <- decay usage_j + (1-decay) n_j K/m
//	e_j     <- e_j + (1-decay) (s_j - n_j e_j) K/m / usage_j
//
// For batches of equal size these are the averages N and m of van den Oord et al., with the counts in units of the mean m/K.
// usage starts at 0, so that the first step moves every used entry to the mean of its tokens. An entry whose usage is then less
// than `revive` is dead: it is replaced by a random token of the batch, a different one for each dead entry if there are enough,
// and its usage becomes 1, the mean. The first step thus takes most entries from the images.
//
// The layer publishes index, k for each token; encoded, its input z; and quantised, y. The loss commitment keeps z near y.
// State: book of shape (entries, values of a token), and usage of shape (entries).
//
// Sources: van den Oord, Vinyals and Kavukcuoglu, Neural discrete representation learning, 2017, with the moving averages of its
// appendix; Dhariwal et al., Jukebox, 2020, for random restarts of dead entries.
type VQ struct {
	Entries int     `toml:"entries" want:"> 0" doc:"K, number of rows of the code book"`
	Decay   float64 `toml:"decay" want:"in [0,1)" doc:"decay of the moving averages of the code book"`
	Revive  float64 `toml:"revive" want:"in [0,1)" doc:"usage below which an entry is replaced by a random token, 1 is the mean; 0 for never"`
	Init    Init    `toml:"init" doc:"initial values of the code book"`
}

func init() {
	Registry.Register("vq", "the nearest row of a code book for every token, y = e_k", func() Layer {
		return &VQ{Entries: 128, Decay: 0.99, Revive: 0.1, Init: &Normal{Stddev: 1}}
	})
}

// Names of the values that [VQ] publishes.
const (
	Index     = "index"
	Encoded   = "encoded"
	Quantised = "quantised"
)

// leastUsage is a divisor in place of smaller usages. Only entries that no token has used have smaller ones; these do not move.
const leastUsage = 1e-12

func (q *VQ) OutputShape(in []int) ([]int, error) {
	if q.Entries < 1 {
		return nil, part.KeyErrorf("entries", "got %d, want > 0", q.Entries)
	}
	return slices.Clone(in), nil
}

func (q *VQ) Parameters(in []int) []Parameter {
	_, features := tokensOf(in)
	return []Parameter{
		{Name: "book", Shape: []int{q.Entries, features}, Init: q.Init, FanIn: q.Entries, FanOut: features, State: true},
		{Name: "usage", Shape: []int{q.Entries}, Init: &Zeros{}, FanIn: q.Entries, FanOut: features, State: true},
	}
}

func (q *VQ) Publishes(in []int) []Value {
	tokens, _ := tokensOf(in)
	return []Value{{Name: Index, Shape: []int{tokens}, Entries: q.Entries}, {Name: Encoded, Shape: slices.Clone(in)}, {Name: Quantised, Shape: slices.Clone(in)}}
}

// Estimates implements [Estimated]: the straight-through gradient of the input.
func (*VQ) Estimates() []string { return []string{EstimatedInput} }

// Noisy implements [Noisy]: the tokens that replace dead entries are drawn.
func (q *VQ) Noisy() bool { return q.Revive > 0 }

func (q *VQ) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	batch, book := x.Shape()[0], s.Parameter("book")
	tokens, features := tokensOf(x.Shape()[1:])
	z := c.Reshape(x, batch*tokens, features)
	// |z - e|² is least where z e - |e|²/2 is largest.
	near := c.SubRow(c.MatMul(z, c.Transpose(book)), c.Scale(c.Sum(c.Square(book), 1), 0.5))
	near = c.Reshape(near, batch, tokens, q.Entries)
	index := c.Do("arg max", func() (*gorgonia.Node, error) { return ops.ArgMax(near) })
	quantised := c.Reshape(c.Gather(book, index), x.Shape()...)
	y := c.Do("straight-through", func() (*gorgonia.Node, error) { return ops.Straight(x, quantised) })
	if s.Training() {
		q.follow(&c, s, z, index)
	}
	if err := c.Err(); err != nil {
		return nil, err
	}
	s.Publish(Index, index)
	s.Publish(Encoded, x)
	s.Publish(Quantised, quantised)
	return y, nil
}

// follow moves the code book towards the tokens z (tokens of the batch, features). index (batch, tokens) holds their entries.
func (q *VQ) follow(c *ops.Chain, s Scope, z, index *gorgonia.Node) {
	book, n := s.Parameter("book"), z.Shape()[0]
	share := float64(q.Entries) / float64(n)
	flat := c.Reshape(index, n)
	count := c.Scale(c.Sum(c.OneHot(flat, q.Entries), 0), share)
	usage := c.Add(c.Scale(s.Parameter("usage"), q.Decay), c.Scale(count, 1-q.Decay))
	sums := c.Scale(c.Do("scatter", func() (*gorgonia.Node, error) { return ops.Scatter(flat, z, q.Entries) }), share)
	old := c.Transpose(book) // one column for each entry
	away := c.Sub(c.Transpose(sums), c.MulRow(old, count))
	rate := c.Do("rate", func() (*gorgonia.Node, error) {
		return gorgonia.HadamardDiv(ops.Scalar(usage, 1-q.Decay), c.Clip(usage, leastUsage, float64(n)*share))
	})
	moved := c.Transpose(c.Add(old, c.MulRow(away, rate)))
	if q.Revive > 0 && c.Err() == nil {
		keys := s.Noise(uniformSampler{}, index.Shape()...)
		dead := c.Lt(usage, q.Revive)
		moved = c.Do("refill", func() (*gorgonia.Node, error) { return ops.Refill(moved, dead, z, c.Reshape(keys, n)) })
		usage = c.Add(c.Mul(usage, c.From(1, dead)), dead)
	}
	if c.Err() == nil {
		s.Update("book", moved)
		s.Update("usage", usage)
	}
}

// uniformSampler draws from U(0, 1), without 1: a unit with the probability 1 is then always drawn as 1.
type uniformSampler struct{}

func (uniformSampler) Sample(dst []float32, r *rand.Rand) {
	fillUniform(dst, 0, 1, r)
	const belowOne = 1 - 1.0/(1<<24)
	for i, v := range dst { // the largest 2^-25 of the draws of float64 are rounded to 1
		dst[i] = min(v, belowOne)
	}
}

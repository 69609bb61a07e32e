package ops_test

import (
	"cmp"
	"fmt"
	"testing"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/random"
	"tessera/laws/gradcheck"
	"tessera/layers"
)

var attentions = []ops.Attention{
	{Tokens: 3, Features: 4, Heads: 2}, {Tokens: 1, Features: 6, Heads: 3}, {Tokens: 5, Features: 1, Heads: 1}, {Tokens: 4, Features: 6, Heads: 1},
	{Tokens: 3, Features: 4, Heads: 2, Others: 5}, {Tokens: 4, Features: 6, Heads: 1, Others: 1},
}

// others returns the number of tokens of the second sequence of a.
func others(a ops.Attention) int { return cmp.Or(a.Others, a.Tokens) }

// drawn returns n random values; the stream is named name.
func drawn(n int, name string) []float64 {
	return gradcheck.Values[float64](n, layers.Everything, random.Stream(1, name, 0))
}

// attended contains the tensors of one attention: two sequences x and y, and the weights p between their tokens.
type attended struct{ x, y, p []float64 }

func newAttended(a ops.Attention, batch int) attended {
	return attended{drawn(batch*a.Tokens*a.Features, "x"), drawn(batch*others(a)*a.Features, "y"), drawn(batch*a.Heads*a.Tokens*others(a), "p")}
}

// expressions returns the expressions of the three ops applied to the tensors of d.
func (d attended) expressions(a ops.Attention, batch int) map[string]gradcheck.Expression[float64] {
	sequence := func(b *gradcheck.Builder[float64], name string, values []float64) *gorgonia.Node {
		return b.Leaf(name, []int{batch, len(values) / (batch * a.Features), a.Features}, values, false)
	}
	weights := func(b *gradcheck.Builder[float64]) *gorgonia.Node {
		return b.Leaf("p", []int{batch, a.Heads, a.Tokens, others(a)}, d.p, false)
	}
	return map[string]gradcheck.Expression[float64]{
		"scores": func(b *gradcheck.Builder[float64]) (*gorgonia.Node, error) {
			return a.Scores(sequence(b, "x", d.x), sequence(b, "y", d.y))
		},
		"mix": func(b *gradcheck.Builder[float64]) (*gorgonia.Node, error) {
			return a.Mix(weights(b), sequence(b, "y", d.y))
		},
		"mix transposed": func(b *gradcheck.Builder[float64]) (*gorgonia.Node, error) {
			return a.MixTransposed(weights(b), sequence(b, "x", d.x))
		},
	}
}

// plain computes the expected results of the three ops by plain loops.
func (d attended) plain(a ops.Attention, batch int) map[string][]float64 {
	scores, mixed, transposed := make([]float64, len(d.p)), make([]float64, len(d.x)), make([]float64, len(d.y))
	for b := range batch {
		for i := range a.Tokens {
			for j := range others(a) {
				for f := range a.Features {
					h := f / (a.Features / a.Heads)
					pair := ((b*a.Heads+h)*a.Tokens+i)*others(a) + j
					at, other := (b*a.Tokens+i)*a.Features+f, (b*others(a)+j)*a.Features+f
					scores[pair] += d.x[at] * d.y[other]
					mixed[at] += d.p[pair] * d.y[other]
					transposed[other] += d.p[pair] * d.x[at]
				}
			}
		}
	}
	return map[string][]float64{"scores": scores, "mix": mixed, "mix transposed": transposed}
}

func TestAttentionEqualsPlainLoops(t *testing.T) {
	for _, a := range attentions {
		for _, batch := range []int{1, 5} {
			d := newAttended(a, batch)
			for name, want := range d.plain(a, batch) {
				testConvolution(t, fmt.Sprintf("%s %+v", name, a), d.expressions(a, batch)[name], want, 1e-13)
			}
		}
	}
}

// The derivatives of each op are the other two ops. If the first derivatives of all three are right, so are the
// derivatives of every order.
func TestDerivativesOfAttentionAreRight(t *testing.T) {
	for _, a := range attentions {
		for name, e := range newAttended(a, 2).expressions(a, 2) {
			expect.NoError(t, gradcheck.Check(gradcheck.Scalar(e)), name, a)
		}
	}
}

func TestAttentionOfOtherShapesIsRefused(t *testing.T) {
	a := attentions[0]
	for _, other := range []ops.Attention{{Tokens: 3, Features: 4, Heads: 3}, {Tokens: 3, Features: 4}, {Tokens: 4, Features: 4, Heads: 2}, {Tokens: 3, Features: 2, Heads: 2}, {Tokens: 3, Features: 4, Heads: 2, Others: 2}} {
		for name, e := range newAttended(a, 2).expressions(a, 2) {
			expect.AnyError(t, expect.Err(gradcheck.Compile(func(b *gradcheck.Builder[float64]) (*gorgonia.Node, error) {
				fatal.If(t, expect.Err(e(b)))
				if name == "scores" {
					return other.Scores(b.Node(0), b.Node(1))
				}
				return other.Mix(b.Node(0), b.Node(1))
			}, false)), name, other, "is accepted for the shapes of", a)
		}
	}
}

var patchings = []ops.Patching{
	{Height: 4, Width: 6, Channels: 1, Size: 2}, {Height: 6, Width: 3, Channels: 2, Size: 3}, {Height: 2, Width: 3, Channels: 4, Size: 1},
}

func TestPatchesLieSideBySide(t *testing.T) {
	const batch = 3
	for _, p := range patchings {
		image := p.Height * p.Width * p.Channels
		x, want := drawn(batch*image, "x"), make([]float64, batch*image)
		for b := range batch {
			for i := range p.Height {
				for j := range p.Width {
					for c := range p.Channels {
						token := i/p.Size*(p.Width/p.Size) + j/p.Size
						feature := (i%p.Size*p.Size+j%p.Size)*p.Channels + c
						want[b*image+token*p.Features()+feature] = x[((b*p.Height+i)*p.Width+j)*p.Channels+c]
					}
				}
			}
		}
		for name, e := range patched(p, batch, x, want) {
			expected := map[string][]float64{"cut": want, "join": x}[name]
			testConvolution(t, fmt.Sprintf("%s %+v", name, p), e, expected, 0)
			expect.NoError(t, gradcheck.Check(gradcheck.Scalar(e)), name, p)
		}
	}
}

// patched returns the expressions of Cut on images and of Join on tokens.
func patched(p ops.Patching, batch int, images, tokens []float64) map[string]gradcheck.Expression[float64] {
	return map[string]gradcheck.Expression[float64]{
		"cut": func(b *gradcheck.Builder[float64]) (*gorgonia.Node, error) {
			return p.Cut(b.Leaf("x", []int{batch, p.Height, p.Width * p.Channels}, images, false))
		},
		"join": func(b *gradcheck.Builder[float64]) (*gorgonia.Node, error) {
			return p.Join(b.Leaf("x", []int{batch, p.Tokens(), p.Features()}, tokens, false))
		},
	}
}

func TestPatchesThatDoNotDivideAreRefused(t *testing.T) {
	for _, p := range []ops.Patching{{4, 6, 1, 3}, {4, 6, 1, 4}, {4, 6, 1, 0}, {2, 6, 1, 2}} {
		_, err := gradcheck.Compile(func(b *gradcheck.Builder[float64]) (*gorgonia.Node, error) {
			return p.Cut(b.Leaf("x", []int{1, 4, 6}, drawn(24, "x"), false))
		}, false)
		expect.AnyError(t, err, p, "is accepted for images of 4 x 6")
	}
}

func init() {
	for _, a := range attentions {
		for name, e := range newAttended(a, 4).expressions(a, 4) {
			parallels[fmt.Sprintf("%s %+v", name, a)] = e
		}
	}
	for _, p := range patchings {
		n := 4 * p.Height * p.Width * p.Channels
		for name, e := range patched(p, 4, drawn(n, "images"), drawn(n, "tokens")) {
			parallels[fmt.Sprintf("%s %+v", name, p)] = e
		}
	}
}

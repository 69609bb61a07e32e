package ops

import (
	"cmp"
	"errors"
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/internal/engine/ir"
	vector "tessera/internal/engine/kernel"
)

// Attention describes multi-head attention between two sequences of tokens, (batch, Tokens, Features) and (batch,
// Others, Features), or within one sequence. The features are split equally among the heads. [Attention.Scores] and
// [Attention.Mix] compute one matrix product for each sample and head. Both are linear in each input, and each is the
// derivative of the other, so they can be differentiated any number of times.
type Attention struct {
	Tokens   int
	Features int
	Heads    int
	Others   int  // number of tokens of the other sequence; 0 means Tokens
	Causal   bool // weights of later tokens are 0: most products with them are left out, and such scores are any finite numbers
}

// others returns the number of tokens of the other sequence.
func (a Attention) others() int { return cmp.Or(a.Others, a.Tokens) }

// AttentionScoresOp is the spec of [Attention.Scores], AttentionMixOp of [Attention.Mix] and [Attention.MixTransposed].
type (
	AttentionScoresOp Attention
	AttentionMixOp    struct {
		Attention
		Transposed bool
	}
)

// Check returns an error for an invalid geometry.
func (a Attention) Check() error {
	if a.Tokens < 1 || a.Features < 1 || a.Heads < 1 || a.Others < 0 {
		return fmt.Errorf("attention: %+v: every size must be > 0", a)
	}
	if a.Features%a.Heads != 0 {
		return fmt.Errorf("attention: %d heads do not divide %d features", a.Heads, a.Features)
	}
	if a.Causal && a.others() != a.Tokens {
		return fmt.Errorf("attention: causal, of %d and %d tokens: want equal numbers", a.Tokens, a.others())
	}
	return nil
}

// Scores returns the inner products (batch, Heads, Tokens, Others) of every token of x (batch, Tokens, Features) with
// every token of y (batch, Others, Features), for every head h:
//
//	s(b,h,i,j) = sum over the features d of head h of x(b,i,d) y(b,j,d)
func (a Attention) Scores(x, y *gorgonia.Node) (*gorgonia.Node, error) {
	if err := errors.Join(a.Check(), a.fits(x, a.sequence()), a.fits(y, a.other())); err != nil {
		return nil, err
	}
	batch := x.Shape()[0]
	o := &Unitwise{
		Spec:     AttentionScoresOp(a),
		Out:      append(tensor.Shape{batch}, a.pairs()...),
		Units:    batch,
		ByUnit:   []bool{true, true},
		Division: ir.ByUnits,
		Work:     a.work(batch),
		Float32:  attentionScores(a, vector.Float32),
		Float64:  attentionScores(a, vector.Float64),
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return both(a.Mix(grad, in[1]))(a.MixTransposed(grad, in[0]))
		},
	}
	return o.Apply(x, y)
}

// Mix returns weighted sums (batch, Tokens, Features) of the tokens of x (batch, Others, Features). The weights are p
// (batch, Heads, Tokens, Others). For every feature d of head h:
//
//	z(b,i,d) = sum over j of p(b,h,i,j) x(b,j,d)
func (a Attention) Mix(p, x *gorgonia.Node) (*gorgonia.Node, error) {
	return a.mix(p, x, false)
}

// MixTransposed is like [Attention.Mix] with the weights transposed, p(b,h,j,i) instead of p(b,h,i,j). It maps x
// (batch, Tokens, Features) to (batch, Others, Features).
func (a Attention) MixTransposed(p, x *gorgonia.Node) (*gorgonia.Node, error) {
	return a.mix(p, x, true)
}

func (a Attention) mix(p, x *gorgonia.Node, transposed bool) (*gorgonia.Node, error) {
	from, to := a.other(), a.sequence()
	if transposed {
		from, to = to, from
	}
	if err := errors.Join(a.Check(), a.fits(p, a.pairs()), a.fits(x, from)); err != nil {
		return nil, err
	}
	batch := x.Shape()[0]
	o := &Unitwise{
		Spec:     AttentionMixOp{a, transposed},
		Out:      append(tensor.Shape{batch}, to...),
		Units:    batch,
		ByUnit:   []bool{true, true},
		Division: ir.ByUnits,
		Work:     a.work(batch),
		Float32:  attentionMix(a, transposed, vector.Float32),
		Float64:  attentionMix(a, transposed, vector.Float64),
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			to, from := grad, in[1] // p(i,j) is the weight of token j of x in token i of the output
			if transposed {
				to, from = from, to
			}
			return both(a.Scores(to, from))(a.mix(in[0], grad, !transposed))
		},
	}
	return o.Apply(p, x)
}

// sequence, other and pairs return the shapes for one sample: of its tokens, of the tokens of the other sequence, and
// of the weights between them.
func (a Attention) sequence() tensor.Shape { return tensor.Shape{a.Tokens, a.Features} }
func (a Attention) other() tensor.Shape    { return tensor.Shape{a.others(), a.Features} }
func (a Attention) pairs() tensor.Shape    { return tensor.Shape{a.Heads, a.Tokens, a.others()} }

// fits returns an error unless x has a batch axis followed by the axes in want.
func (a Attention) fits(x *gorgonia.Node, want tensor.Shape) error {
	if s := x.Shape(); len(s) != len(want)+1 || !s[1:].Eq(want) {
		return fmt.Errorf("attention: got shape %v, want (batch) and %v", s, want)
	}
	return nil
}

// work returns the number of multiplications and additions for a batch of the given size.
func (a Attention) work(batch int) float64 {
	return 2 * float64(batch*a.Tokens*a.others()) * float64(a.Features)
}

// causalRows is the number of tokens whose products leave out the same later tokens.
const causalRows = 64

// groups calls do for groups of tokens [from, to): all of them, or with Causal a few.
func (a Attention) groups(tokens int, do func(from, to int)) {
	size := tokens
	if a.Causal {
		size = causalRows
	}
	for from := 0; from < tokens; from += size {
		do(from, min(from+size, tokens))
	}
}

// attentionScores returns the kernel that computes the scores of sequences [from, to).
func attentionScores[T Float](a Attention, kernels func() *vector.Set[T]) units[T] {
	t, o, f, d := a.Tokens, a.others(), a.Features, a.Features/a.Heads
	return func(dst []T, in [][]T, _ []T, from, to int) {
		k := kernels()
		for b := from; b < to; b++ {
			x, y := in[0][b*t*f:(b+1)*t*f], in[1][b*o*f:(b+1)*o*f]
			for h := range a.Heads {
				s := dst[(b*a.Heads+h)*t*o:][:t*o]
				a.groups(t, func(first, last int) {
					n := o
					if a.Causal {
						n = last
					}
					k.Gemm(false, true, last-first, n, d, 1, x[first*f+h*d:], f, y[h*d:], f, 0, s[first*o:], o)
					for i := first; n < o && i < last; i++ {
						clear(s[i*o+n : (i+1)*o])
					}
				})
			}
		}
	}
}

// attentionMix returns the kernel that computes the weighted sums of sequences [from, to).
func attentionMix[T Float](a Attention, transposed bool, kernels func() *vector.Set[T]) units[T] {
	t, o, f, d := a.Tokens, a.others(), a.Features, a.Features/a.Heads
	rows, others, step := t, o, o // of the output, of x, and from a row of the output to the next in the weights
	if transposed {
		rows, others, step = others, rows, 1
	}
	return func(dst []T, in [][]T, _ []T, from, to int) {
		k := kernels()
		for b := from; b < to; b++ {
			x, z := in[1][b*others*f:(b+1)*others*f], dst[b*rows*f:(b+1)*rows*f]
			for h := range a.Heads {
				p := in[0][(b*a.Heads+h)*t*o:][:t*o]
				a.groups(rows, func(first, last int) {
					begin, end := 0, others // of the tokens of x that have a weight
					switch {
					case a.Causal && transposed:
						begin = first
					case a.Causal:
						end = last
					}
					k.Gemm(transposed, false, last-first, d, end-begin, 1, p[first*step+begin*o:], o, x[begin*f+h*d:], f, 0, z[first*f+h*d:], f)
				})
			}
		}
	}
}

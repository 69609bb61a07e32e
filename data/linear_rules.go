package data

import (
	"context"
	"math"

	"tessera/internal/random"
)

// Names of the columns of [LinearRules].
const (
	ruleAnswers = "answers"
	ruleAsked   = "asked"
)

func init() {
	Registry.Register("linear_rules", "generated sequences x, y, x, y, ... of which each has a linear rule of its own, to be found from the examples",
		func() Source {
			return &LinearRules{Examples: 8, Values: 3, Count: 20_000, Tests: 2000, Noise: 0.2, Seed: 1}
		})
}

// LinearRules is a generated data set for learning in context: every sample is a sequence of examples of a linear rule that no other
// sample has. For each of the examples k it has two tokens of d values, x_k and (y_k, 0, ..., 0), with
//
//	y_k = w·x_k / sqrt(d) + noise,    x_k and w normal
//
// so that the variance of an answer without noise is 1. A model that predicts y_k from the tokens up to x_k has to find w from the k examples
// before. The column `answers` has a value for each token, y_k for the token x_k and 0 for others; `asked` is 1 for the tokens x_k and 0 for others: the
// mask of a loss. Equal keys give equal samples; a larger set begins with those of a smaller one.
//
// Source: Garg, Tsipras, Liang and Valiant, What can transformers learn in-context? A case study of simple function classes, 2022.
type LinearRules struct {
	Examples int     `toml:"examples" want:"in [1,10000]" doc:"number of examples of a sample"`
	Values   int     `toml:"values" want:"in [1,10000]" doc:"number of values of an x, the dimensions"`
	Count    int     `toml:"count" want:"in [1,10000000]" doc:"number of training samples"`
	Tests    int     `toml:"tests" want:"in [0,10000000]" doc:"number of test samples; 0 for none"`
	Noise    float64 `toml:"noise" want:">= 0" doc:"standard deviation of the normal noise of an answer"`
	Seed     uint64  `toml:"seed" doc:"seed of the samples; independent of the run's seed"`
}

func (s *LinearRules) HasTest() bool { return s.Tests > 0 }

func (s *LinearRules) Shape(Dirs) ([]int, bool) { return []int{2 * s.Examples, s.Values}, true }

// DescribeColumns implements [Columned].
func (s *LinearRules) DescribeColumns(Dirs) []Column {
	shape := []int{2 * s.Examples}
	return []Column{{Name: ruleAnswers, Shape: shape, Type: Float32}, {Name: ruleAsked, Shape: shape, Type: Float32}}
}

func (s *LinearRules) Load(ctx context.Context, _ Dirs, need Need) (*Set, error) {
	set := &Set{Name: "linear_rules", Shape: []int{2 * s.Examples, s.Values}, HasTest: s.HasTest()}
	var err error
	if need.Train {
		if set.Train, err = s.samples(ctx, "linear rules", s.Count); err != nil {
			return nil, err
		}
	}
	if need.Test && s.HasTest() {
		set.Test, err = s.samples(ctx, "linear rules of tests", s.Tests)
	}
	return set, err
}

func (s *LinearRules) samples(ctx context.Context, stream string, count int) (*Images, error) {
	tokens, d := 2*s.Examples, s.Values
	size, err := generatedSize("linear_rules", count, tokens, d+2)
	if err != nil {
		return nil, err
	}
	values, answers, asked := make([]float32, size/(d+2)*d), make([]float32, count*tokens), make([]float32, count*tokens)
	w := make([]float64, d)
	for i := range count {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r := random.Stream(s.Seed, stream, uint64(i))
		for j := range w {
			w[j] = r.NormFloat64() / math.Sqrt(float64(d))
		}
		for at := i * tokens; at < (i+1)*tokens; at += 2 {
			y := 0.0
			for j := range w {
				x := r.NormFloat64()
				values[at*d+j] = float32(x)
				y += w[j] * x
			}
			answer := float32(y + s.Noise*r.NormFloat64())
			values[(at+1)*d], answers[at], asked[at] = answer, answer, 1
		}
	}
	images, err := NewFloats([]int{tokens, d}, values, nil)
	if err != nil {
		return nil, err
	}
	columns := s.DescribeColumns(Dirs{})
	return images.WithColumns(&Values{Column: columns[0], floats: answers}, &Values{Column: columns[1], floats: asked})
}

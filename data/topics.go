package data

import (
	"context"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distmv"
	"tessera/internal/random"
)

func init() {
	Registry.Register("topics", "generated counts of words in texts that mix known topics, the true parts",
		func() Source {
			return &Topics{Topics: 10, Words: 200, Count: 1000, Length: 100, Mixture: 0.2, Sparsity: 0.05, Seed: 1}
		})
}

// Topics is a generated data set of texts, by the model of latent Dirichlet allocation. A topic is a distribution over the words,
// drawn from the symmetric Dirichlet distribution with the parameter `sparsity`; the topics are the true parts. A text is a vector
// with the count of every word:
//
//	shares ~ Dirichlet(mixture)           of the topics in the text
//	length times:  topic ~ shares,  word ~ topic
//
// Small parameters give texts of few topics, and topics of few words. Equal keys give equal texts. Each topic and each text has
// its own random stream, so that a larger set begins with the texts of a smaller one.
//
// Source: D. Blei, A. Ng, M. Jordan, Latent Dirichlet allocation, JMLR 3, 2003.
type Topics struct {
	Topics   int     `toml:"topics" want:"in [1,1000]" doc:"number of topics, the true parts"`
	Words    int     `toml:"words" want:"in [2,100000]" doc:"number of different words, the values of a sample"`
	Count    int     `toml:"texts" want:"in [1,1000000]" doc:"number of texts"`
	Length   int     `toml:"length" want:"in [1,100000]" doc:"number of words in a text"`
	Mixture  float64 `toml:"mixture" want:"> 0" doc:"parameter of the Dirichlet distribution of the topics in a text"`
	Sparsity float64 `toml:"sparsity" want:"> 0" doc:"parameter of the Dirichlet distribution of the words in a topic"`
	Scale    Scale   `toml:"scale" single:"true" bare:"factor.by" optional:"true" doc:"how the counts are scaled: a scaling (tessera list scalings), a number as factor, or several scalings in order; by default they are not scaled"`
	Seed     uint64  `toml:"seed" doc:"seed of topics and texts; independent of the run's seed, so that all runs see the same texts"`
}

func (s *Topics) Check() error { return s.Scale.OfValues() }

func (s *Topics) FitsScale() bool          { return s.Scale.Fitted() }
func (s *Topics) Shape(Dirs) ([]int, bool) { return []int{s.Words}, true }

func (s *Topics) Load(ctx context.Context, _ Dirs, _ Need) (*Set, error) {
	size, err := generatedSize("topics", s.Count, s.Words)
	if err != nil {
		return nil, err
	}
	parts, kinds := make([][]float32, s.Topics), make([]string, s.Topics)
	words := make([][]float64, s.Topics)
	for k := range parts {
		words[k] = dirichlet(s.Words, s.Sparsity, random.Stream(s.Seed, "topics", uint64(k)))
		parts[k], kinds[k] = make([]float32, s.Words), "topic"
		for i, v := range words[k] {
			parts[k][i] = float32(v)
		}
	}
	counts := make([]float32, size)
	for i := range s.Count {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r := random.Stream(s.Seed, "texts", uint64(i))
		shares := dirichlet(s.Topics, s.Mixture, r)
		for range s.Length {
			counts[i*s.Words+drawn(words[drawn(shares, r)], r)]++
		}
	}
	set, err := known("topics", []int{s.Words}, counts, parts, kinds)
	if err != nil {
		return nil, err
	}
	set.Scale = s.Scale
	return set, nil
}

// dirichlet returns n shares from the symmetric Dirichlet distribution. If the parameter is so small that all of its gamma variables
// are 0 in float64, one share is 1: the limit of the distribution.
func dirichlet(n int, parameter float64, r *rand.Rand) []float64 {
	if n == 1 {
		return []float64{1}
	}
	alpha := slices.Repeat([]float64{parameter}, n)
	shares := distmv.NewDirichlet(alpha, r).Rand(nil)
	if shares[0] != shares[0] { // 0/0
		clear(shares)
		shares[r.IntN(n)] = 1
	}
	return shares
}

// drawn returns an index, drawn with these probabilities.
func drawn(probabilities []float64, r *rand.Rand) int {
	u := r.Float64()
	for i, p := range probabilities {
		if u -= p; u < 0 {
			return i
		}
	}
	return len(probabilities) - 1 // by rounding
}

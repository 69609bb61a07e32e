package classical

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"

	"tessera/internal/engine/ir"
	"tessera/internal/vectors"
)

// BMM is a mixture of Bernoulli distributions of values in [0,1], for example of binary images,
//
//	p(x) = sum over k of w_k  product over pixels of p_kd^x_d (1 - p_kd)^(1 - x_d)
//
// fitted by expectation maximisation. Atoms are the means p_k, codes the responsibilities. A mean stays within [floor, 1 - floor], so that no image has probability 0.
//
// Source: C. Bishop, Pattern recognition and machine learning, section 9.3.3, Springer 2006.
type BMM struct {
	Components int     `toml:"components" want:"> 0" doc:"components of the mixture"`
	Init       string  `toml:"init" oneof:"kmeans random" doc:"first means: of the clusters of k-means, or of the samples nearest to samples drawn at random"`
	Floor      float64 `toml:"floor" want:"in (0,0.5)" doc:"least distance of a mean from 0 and 1"`
	Iterations int     `toml:"iterations" want:"> 0" doc:"maximum number of iterations of each fit"`
	Tolerance  float64 `toml:"tolerance" want:">= 0" doc:"stop when an iteration raises the log-likelihood of a sample by less than this, in nats"`
	Restarts   int     `toml:"restarts" want:"> 0" doc:"fits from different random starts, the best of which is the result"`
}

func init() {
	Registry.Register("bmm", "mixture of Bernoulli distributions, fitted by expectation maximisation",
		func() Method {
			return &BMM{Components: 100, Init: "kmeans", Floor: 1e-3, Iterations: 100, Tolerance: 1e-3, Restarts: 1}
		})
}

func (s *BMM) Describe() Fitting {
	return Fitting{Name: "bmm", Measures: measuresOfDensities, Units: s.Components, Iterations: s.Iterations, Restarts: s.Restarts, Absolute: true,
		Sizes: func(images, pixels int) error {
			return cmp.Or(atMostImages(s.Components, images), Bounded(s.Components, "means", pixels))
		}}
}

func (s *BMM) New(shape []int, seed uint64) (Model, error) {
	return newMixture(s, shape, seed, s.Init, s.Tolerance, func(b Base) family {
		return &bernoulli{components: b.units, pixels: b.pixels, floor: s.Floor, p: make([]float64, b.units*b.pixels)}
	})
}

// bernoulli is the family of the components: T(x) = x, eta = log p/(1 - p).
type bernoulli struct {
	components, pixels int
	floor              float64
	p                  []float64 // means, components x pixels
}

func (b *bernoulli) begin(m *em) error {
	for i := range b.p { // of components without images
		b.p[i] = min(max(m.origin[i%b.pixels], b.floor), 1-b.floor)
	}
	clear(m.origin) // the values themselves are the statistics
	return unitInterval(m.x)
}

func (b *bernoulli) features() int { return b.pixels }

func (b *bernoulli) expand(dst, rows []float64, n int) { copy(dst, rows) }

func (b *bernoulli) natural(eta, constants []float64) error {
	for k := range constants {
		constants[k] = 0
		for d := range b.pixels {
			p := b.p[k*b.pixels+d]
			if !(p > 0 && p < 1) {
				return fmt.Errorf("component %d, value %d: got the mean %v, want one in (0,1)", k, d, p)
			}
			left := math.Log1p(-p)
			eta[k*b.pixels+d] = math.Log(p) - left
			constants[k] += left
		}
	}
	return nil
}

func (b *bernoulli) maximise(counts, sums []float64) {
	for k, count := range counts {
		if count < fewest {
			continue
		}
		for d := range b.pixels {
			b.p[k*b.pixels+d] = min(max(sums[k*b.pixels+d]/count, b.floor), 1-b.floor)
		}
	}
}

// held implements family. It returns no components, because pixels that are always 0 or 1 are common.
func (b *bernoulli) held() ([]int, string) { return nil, "" }

func (b *bernoulli) scores(p *ir.Module, x *ir.Value) (*ir.Value, []float64) {
	eta, constants := make([]float64, len(b.p)), make([]float64, b.components)
	_ = b.natural(eta, constants) // the parameters of a fitted model are sound
	logits := parameter(p, "logits", []int{b.components, b.pixels}, vectors.Narrow(eta))
	return &ir.Value{Op: ir.Product{TransB: true}, Args: []*ir.Value{x, logits}, Shape: []int{x.Shape[0], b.components}}, constants
}

func (b *bernoulli) values() map[string][]float64 { return map[string][]float64{"means": b.p} }

func (b *bernoulli) means() ([]float64, bool) { return b.p, true }

func (b *bernoulli) free() int { return b.components * b.pixels }

func (b *bernoulli) sampler() func(row []float64, component int, r *rand.Rand) {
	return func(row []float64, component int, r *rand.Rand) {
		for j, p := range b.p[component*b.pixels : (component+1)*b.pixels] {
			row[j] = 0
			if r.Float64() < p {
				row[j] = 1
			}
		}
	}
}

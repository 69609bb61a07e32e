package data

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"tessera/config/part"
	"tessera/internal/random"
)

func init() {
	Registry.Register("superposition", "generated sparse sums of more known directions than dimensions, correlated; the true parts", func() Source {
		return &Superposition{Features: 256, Values: 64, Count: 20_000, Active: 4, Group: 4, Correlation: 0.3, Noise: 0.02, Seed: 1}
	})
	Registry.Register("hierarchy", "generated sums of known directions of which some imply others, such as word and noun; the true parts", func() Source {
		return &Hierarchy{Parents: 16, Children: 3, Values: 80, Count: 20_000, Active: 3, Implied: 0.8, Noise: 0.02, Seed: 1}
	})
}

// Superposition is a generated data set of vectors that are sparse sums of known directions, as activations of networks are believed
// to be. Direction k is a random unit vector, one of the true parts, and
//
//	x = sum over the active features k of m_k d_k + noise,    m_k uniform in [0.5, 1.5)
//
// Every feature is active with the probability active/features. Those of a group of consecutive features are correlated: a feature
// is active if sqrt(c) u + sqrt(1 - c) e > t with normal u of the group and e of the feature, and the correlation c. Equal keys
// give equal vectors; a larger set begins with the vectors of a smaller one.
//
// Source: Sharkey, Braun and Millidge, Taking features out of superposition with sparse autoencoders, 2022.
type Superposition struct {
	Features    int     `toml:"features" want:"in [1,100000]" doc:"number of directions, the true parts"`
	Values      int     `toml:"values" want:"in [1,100000]" doc:"number of values of a sample, the dimensions"`
	Count       int     `toml:"count" want:"in [1,10000000]" doc:"number of samples"`
	Active      float64 `toml:"active" want:"> 0" doc:"mean number of active features of a sample"`
	Group       int     `toml:"group" want:"> 0" doc:"number of consecutive features that are correlated with each other"`
	Correlation float64 `toml:"correlation" want:"in [0,1)" doc:"correlation of the normal variables whose size decides which features of a group are active"`
	Noise       float64 `toml:"noise" want:">= 0" doc:"standard deviation of the normal noise of every value"`
	Seed        uint64  `toml:"seed" doc:"seed of directions and samples; independent of the run's seed, so that all runs see the same samples"`
}

func (s *Superposition) Check() error {
	if s.Active >= float64(s.Features) {
		return part.KeyErrorf("active", "got %g, want less than the %d features", s.Active, s.Features)
	}
	return nil
}

func (s *Superposition) Shape(Dirs) ([]int, bool) { return []int{s.Values}, true }

func (s *Superposition) Load(ctx context.Context, _ Dirs, _ Need) (*Set, error) {
	least := distuv.UnitNormal.Quantile(1 - s.Active/float64(s.Features))
	kinds := slices.Repeat([]string{"feature"}, s.Features)
	return sums(ctx, "superposition", s.Values, s.Count, kinds, s.Noise, s.Seed, func(active []bool, r *rand.Rand) {
		shared := 0.0
		for k := range active {
			if k%s.Group == 0 {
				shared = r.NormFloat64()
			}
			active[k] = math.Sqrt(s.Correlation)*shared+math.Sqrt(1-s.Correlation)*r.NormFloat64() > least
		}
	})
}

// Hierarchy is a generated data set of vectors that are sums of known directions, of which some imply others. Every one of the
// parents has a number of children, and active features are drawn so: a parent with the probability active/parents and, if it is, with
// the probability implied one of its children, each as often as another. Directions are random unit vectors, the true parts: first
// the parents, then the children of the first one, and so on. Sizes and noise are those of superposition.
//
// A sparse code is cheaper if a unit stands for a child and its parent together, and the unit of the parent keeps silent: absorption.
// The metric parts_absorbed counts such atoms. Source: Chanin et al., A is for absorption, 2024.
type Hierarchy struct {
	Parents  int     `toml:"parents" want:"in [1,10000]" doc:"number of features that others imply"`
	Children int     `toml:"children" want:"in [1,1000]" doc:"number of features that imply each parent, of which at most one is active"`
	Values   int     `toml:"values" want:"in [1,100000]" doc:"number of values of a sample, the dimensions"`
	Count    int     `toml:"count" want:"in [1,10000000]" doc:"number of samples"`
	Active   float64 `toml:"active" want:"> 0" doc:"mean number of active parents of a sample"`
	Implied  float64 `toml:"implied" want:"in [0,1]" doc:"probability that a child of an active parent is active"`
	Noise    float64 `toml:"noise" want:">= 0" doc:"standard deviation of the normal noise of every value"`
	Seed     uint64  `toml:"seed" doc:"seed of directions and samples; independent of the run's seed, so that all runs see the same samples"`
}

func (s *Hierarchy) Check() error {
	if s.Active > float64(s.Parents) {
		return part.KeyErrorf("active", "got %g, want at most the %d parents", s.Active, s.Parents)
	}
	return nil
}

func (s *Hierarchy) Shape(Dirs) ([]int, bool) { return []int{s.Values}, true }

func (s *Hierarchy) Load(ctx context.Context, _ Dirs, _ Need) (*Set, error) {
	kinds := make([]string, s.Parents*(1+s.Children))
	for k := range kinds {
		if kinds[k] = ParentKind; k >= s.Parents {
			kinds[k] = ChildKind
		}
	}
	return sums(ctx, "hierarchy", s.Values, s.Count, kinds, s.Noise, s.Seed, func(active []bool, r *rand.Rand) {
		clear(active)
		for k := range s.Parents {
			active[k] = r.Float64() < s.Active/float64(s.Parents)
			if child := s.Parents + k*s.Children + r.IntN(s.Children); r.Float64() < s.Implied {
				active[child] = active[k]
			}
		}
	})
}

// Kinds of the true parts of a hierarchy. The parts are P parents, then equally many children of the first parent, the second, ...
const (
	ParentKind = "parent"
	ChildKind  = "child"
)

// sums draws directions, one for each kind, and samples that are sums of those that draw marks.
func sums(ctx context.Context, name string, width, count int, kinds []string, noise float64, seed uint64, draw func(active []bool, r *rand.Rand)) (*Set, error) {
	size, err := generatedSize(name, count, width)
	if err != nil {
		return nil, err
	}
	parts := make([][]float32, len(kinds))
	for k := range parts {
		r := random.Stream(seed, name+" directions", uint64(k))
		direction, square := make([]float64, width), 0.0
		for j := range direction {
			direction[j] = r.NormFloat64()
			square += direction[j] * direction[j]
		}
		parts[k] = make([]float32, width)
		for j, v := range direction {
			parts[k][j] = float32(v / math.Sqrt(square))
		}
	}
	values, active := make([]float32, size), make([]bool, len(kinds))
	for i := range count {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r := random.Stream(seed, name, uint64(i))
		draw(active, r)
		row := values[i*width : (i+1)*width]
		for k, on := range active {
			if !on {
				continue
			}
			m := float32(0.5 + r.Float64())
			for j, v := range parts[k] {
				row[j] += m * v
			}
		}
		for j := range row {
			row[j] += float32(noise * r.NormFloat64())
		}
	}
	return known(name, []int{width}, values, parts, kinds)
}

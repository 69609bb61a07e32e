package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"time"

	"tessera/classical"
	"tessera/data"
)

// The samples of mixtureContests: 64 clusters of 50,000 samples of 32 values.
const (
	mixtureSamples    = 50000
	mixtureValues     = 32
	mixtureComponents = 64
	mixtureBatch      = 1024
)

// mixtureContests returns the contests of one iteration of expectation maximisation and of one pass of k-means over
// mini-batches, between scikit-learn and Tessera. Both compute mixtures in float64 and k-means in float32.
func (s settings) mixtureContests() (contests []contest) {
	rows := sync.OnceValues(func() ([]float32, error) {
		x := mixtureRows()
		return x, data.WriteImages(filepath.Join(s.temporary, "mixture.npy"), []int{mixtureValues}, x)
	})
	for _, c := range []struct {
		name   string
		method classical.Method
		steps  int
	}{
		{"gmm full", &classical.GMM{Components: mixtureComponents, Covariance: "full", Init: "random", Floor: 1e-6, Iterations: 100, Restarts: 1}, 5},
		{"gmm diagonal", &classical.GMM{Components: mixtureComponents, Covariance: "diagonal", Init: "random", Floor: 1e-6, Iterations: 100, Restarts: 1}, 10},
		{"kmeans batches", &classical.KMeans{Components: mixtureComponents, Batch: mixtureBatch, Iterations: 100, Restarts: 1}, 10},
	} {
		contests = append(contests, contest{
			name: c.name,
			peer: func() (result, error) {
				if _, err := rows(); err != nil {
					return result{}, err
				}
				return s.sklearn(c.name, "--codes", filepath.Join(s.temporary, "mixture.npy"), "--iterations", fmt.Sprint(c.steps))
			},
			ours: func() (result, error) {
				x, err := rows()
				if err != nil {
					return result{}, err
				}
				return steps(c.method, x, c.steps)
			},
		})
	}
	return contests
}

// steps returns the time of one iteration, measured after the first two.
func steps(method classical.Method, x []float32, count int) (r result, err error) {
	ctx := context.Background()
	images, err := classical.NewMatrix(x, mixtureValues)
	if err != nil {
		return r, err
	}
	m, err := method.New([]int{mixtureValues}, 1)
	if err != nil {
		return r, err
	}
	if err := m.Begin(ctx, images); err != nil {
		return r, err
	}
	var began time.Time
	for i := range 2 + count {
		if i == 2 {
			began = time.Now()
		}
		p, err := m.Step(ctx)
		if err != nil {
			return r, err
		}
		r.score = p.Objective * mixtureValues
	}
	r.ms = 1e3 * time.Since(began).Seconds() / float64(count)
	return r, nil
}

// mixtureRows draws the samples. Each cluster has a centre, and a standard deviation for each value.
func mixtureRows() []float32 {
	rng := rand.New(rand.NewPCG(1, 2))
	centres, spreads := make([]float64, mixtureComponents*mixtureValues), make([]float64, mixtureComponents*mixtureValues)
	for i := range centres {
		centres[i], spreads[i] = 2*rng.NormFloat64(), 0.5+rng.Float64()
	}
	x := make([]float32, mixtureSamples*mixtureValues)
	for i := range mixtureSamples {
		at := rng.IntN(mixtureComponents) * mixtureValues
		for j := range mixtureValues {
			x[i*mixtureValues+j] = float32(centres[at+j] + spreads[at+j]*rng.NormFloat64())
		}
	}
	return x
}

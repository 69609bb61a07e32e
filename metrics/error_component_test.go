package metrics

import (
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"tessera/internal/expect"
)

// residuals measures error_component of a model that reconstructs nothing, so that its residuals are the images.
func residuals(t *testing.T, images []float32, pixels int) Value {
	t.Helper()
	s := Subject{Shape: []int{pixels}, Units: 1, Images: len(images) / pixels, Atoms: &Atoms{Shape: []int{pixels}, Count: 1, Values: make([]float32, pixels)}}
	return added(t, metricOf("error_component"), s, Batch{Images: images, Outputs: make([]float32, len(images))})[0]
}

// One direction with two thirds of the energy, noise in all: the eigenvector of the even rows, measured on the odd ones.
func TestErrorComponentEqualsTheEigenvector(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 1))
	const n, d = 301, 12
	images, even, odd := make([]float32, n*d), mat.NewSymDense(d, nil), 0.0
	for i := range n {
		strength := r.NormFloat64()
		for j := range d {
			images[i*d+j] = float32(0.2*r.NormFloat64() + strength*float64(j)/30)
		}
	}
	row := func(i int) *mat.VecDense {
		v := mat.NewVecDense(d, nil)
		for j := range d {
			v.SetVec(j, float64(images[i*d+j]))
		}
		return v
	}
	for i := 0; i < n; i += 2 {
		even.SymRankOne(even, 1, row(i))
	}
	var eigen mat.EigenSym
	var all mat.Dense
	expect.Equal(t, eigen.Factorize(even, true), true)
	eigen.VectorsTo(&all)
	along := 0.0
	for i := 1; i < n; i += 2 {
		p := mat.Dot(row(i), all.ColView(d-1))
		along += p * p
		odd += mat.Dot(row(i), row(i))
	}
	expect.Near(t, residuals(t, images, d).Number, along/odd, 1e-4)
	expect.Equal(t, along/odd > 0.5, true, "the planted direction")
}

func TestErrorComponentOfNoiseAndOfNoError(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 2))
	expect.Near(t, residuals(t, normal(r, 1000*50), 50).Number, 1.0/50, 0.01, "noise")
	expect.Equal(t, residuals(t, make([]float32, 40), 4).Missing, "there is no error")
	expect.Equal(t, residuals(t, []float32{1, 2}, 2).Missing, "there is one sample")
}

// Of 4,001 samples every third is measured. All lie along one direction, the others do not.
func TestErrorComponentIsOfEvenlySpacedSamples(t *testing.T) {
	images := make([]float32, 4001*2)
	for i := range 4001 {
		images[2*i+min(1, i%3)] = 1
	}
	expect.Near(t, residuals(t, images, 2).Number, 1, 1e-12)
}

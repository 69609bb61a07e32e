package metrics

import (
	"context"
	"math/rand/v2"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/fit"
)

// memory is a coder that does no work, so that the benchmark measures only the evaluation.
type memory struct {
	*affine
	codes, images []float32
}

func (m memory) Encode(images []float32) ([]float32, error) {
	return m.codes[:len(images)/784*m.units], nil
}
func (m memory) Decode(codes []float32) ([]float32, error) {
	return m.images[:len(codes)/m.units*784], nil
}
func (m memory) WithAtoms(*Atoms) (Coder, error) { return m, nil }

func BenchmarkEvaluate10000(b *testing.B) {
	r := rand.New(rand.NewPCG(7, 1))
	c := memory{newAffine(r, []int{28, 28}, 100), uniform(r, batchSize*100), normal(r, batchSize*784)}
	images := uniform(r, 10_000*784)
	for b.Loop() {
		fatal.If(b, expect.Err(Evaluate(context.Background(), c, Sample{Images: images}, nil)))
	}
}

func BenchmarkJaccard(b *testing.B) {
	r := rand.New(rand.NewPCG(2, 3))
	atoms := &Atoms{Shape: []int{28, 28}, Count: 100, Values: uniform(r, 78400)}
	codes := uniform(r, JaccardImages*100)
	for b.Loop() {
		fatal.If(b, expect.Err(meanJaccard(atoms, codes)))
	}
}

func BenchmarkSVM(b *testing.B) {
	r := rand.New(rand.NewPCG(3, 3))
	features, labels := clouds(r, 8_000, 100, 10)
	p, err := fit.Of("svm", features, 100, labels)
	fatal.If(b, err)
	for b.Loop() {
		fatal.If(b, expect.Err(p.SVM(context.Background(), 1, fit.Tolerance)))
	}
}

func BenchmarkLinearProbe(b *testing.B) {
	r := rand.New(rand.NewPCG(3, 3))
	features, labels := clouds(r, 8_000, 100, 10)
	for b.Loop() {
		p, err := fit.Of("svm", features, 100, labels)
		fatal.If(b, err)
		p.Scale(p.Subset(nil))
		p.Centre(p.Subset(nil))
		fatal.If(b, expect.Err(p.Logistic(context.Background(), 1)))
	}
}

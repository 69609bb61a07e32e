package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkElementwise32 runs every kernel on a tile of the engine's size, which stays in the L1 cache.
func BenchmarkElementwise32(b *testing.B) {
	const n = 1024
	r := rand.New(rand.NewPCG(1, 2))
	var x [3][]float32
	for i := range x {
		x[i] = make([]float32, n)
		sample(r, x[i], false)
	}
	dst := make([]float32, n)
	for _, set := range elementwiseSets() {
		for _, k := range invocations(set) {
			b.Run(k.field+"/"+set.Name, func(b *testing.B) {
				for b.Loop() {
					k.run(dst, x, 0.5, 2)
				}
				arrays := k.inputs
				if !k.reduces {
					arrays++
				}
				seconds := b.Elapsed().Seconds() / float64(b.N)
				b.ReportMetric(float64(4*n*arrays)/seconds/1e9, "GB/s")
				b.ReportMetric(n/seconds/1e9, "Gelements/s")
			})
		}
	}
}

// BenchmarkSteps runs the optimizers on a layer of 784 x 100.
func BenchmarkSteps(b *testing.B) {
	const n = 784 * 100
	var x [4][]float32
	for _, s := range stepSets() {
		for _, rule := range rules {
			b.Run(fmt.Sprintf("%s/%s", rule.name, s.name), func(b *testing.B) {
				r := rand.New(rand.NewPCG(1, 2))
				for i := range x {
					x[i] = make([]float32, n)
					sample(r, x[i], false)
				}
				for i := range n {
					x[2][i], x[3][i] = x[2][i]*x[2][i], x[3][i]*x[3][i]
				}
				for b.Loop() {
					rule.run(s, x[0], x[1], x[2], x[3], 1000)
				}
				b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gelements/s")
			})
		}
	}
}

func BenchmarkFromBytes32(b *testing.B) {
	const n = 784
	src, dst := make([]uint8, n), make([]float32, n)
	for _, set := range elementwiseSets() {
		b.Run(set.Name, func(b *testing.B) {
			for b.Loop() {
				set.FromBytes(dst, src)
			}
			b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gelements/s")
		})
	}
}

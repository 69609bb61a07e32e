package engine

import (
	"testing"

	"tessera/graph"
	"tessera/kernel"
	"tessera/parallel/team"
)

// BenchmarkEncode encodes batches of 1000 images in memory with the shallow encoder, as a library call, and for
// comparison computes that encoder's matrix product alone, with the same kernels and team.
func BenchmarkEncode(b *testing.B) {
	const images = 1000
	team := team.New(2)
	defer team.Close()
	perSecond := func(b *testing.B) { b.ReportMetric(float64(b.N)*images/b.Elapsed().Seconds(), "images/s") }
	for _, spec := range shipped(b) {
		if spec.Name != "shallow" {
			continue
		}
		m, err := graph.New(spec, shapeOf(b, spec))
		if err != nil {
			b.Fatal(err)
		}
		coder := graph.NewCoder(m, Backend{Team: team})
		pixels, units := m.Pixels(), m.Units()
		batch, codes := make([]float32, images*pixels), make([]float32, images*units)
		for i := range batch {
			batch[i] = float32(i%256) / 255
		}
		b.Run("encode", func(b *testing.B) {
			for b.Loop() {
				if _, err := coder.Encode(batch); err != nil {
					b.Fatal(err)
				}
			}
			perSecond(b)
		})
		b.Run("product", func(b *testing.B) {
			gemm, weight := kernel.Float32().Gemm, m.Parameters[0].Data
			work := func(thread int) {
				from, to := images*thread/2, images*(thread+1)/2
				gemm(false, false, to-from, units, pixels, 1, batch[from*pixels:], pixels, weight, units, 0, codes[from*units:], units)
			}
			for b.Loop() {
				team.Do(work)
			}
			perSecond(b)
		})
	}
}
